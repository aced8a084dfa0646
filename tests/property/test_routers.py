"""Fabrics of IP routers read from files: verdicts of an oracle, and what is missing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import add_stale_routes, random_net, with_uplinks

FORMS = ("sonic", "flat", "redis", "frr", "older", "text")


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


@pytest.mark.seeds(200)
def test_random_fabrics_agree_with_packets_followed_one_by_one(seed: int, tmp_path: Path) -> None:
    net = random_net(seed)
    verdict = judged(net.write(tmp_path, FORMS[seed % len(FORMS)]))
    acyclic, lost = net.judged()
    if _first_halves(net):
        # Destinations are then parts of the networks, of which the oracle sees one.
        assert acyclic or verdict.acyclic is False
    else:
        assert (verdict.acyclic, verdict.undelivered) == (acyclic, lost), verdict
        assert verdict.missing == []
    names = [step.held for step in verdict.witnesses]
    assert names == verdict.cycle


def any_address_agrees(seed: int, folder: Path) -> bool | None:
    """Compare a verdict with that of packets followed one by one, to any address.

    Routers have default routes and others to nobody, ports to devices without files, or both.
    Returns the verdict.
    """
    net, rng = random_net(seed), random.Random(seed)  # noqa: S311
    if seed % 3:
        add_stale_routes(net, rng)
    uplinks = []
    if seed % 3 != 1:
        uplinks = with_uplinks(net, sorted(rng.sample(net.routers, rng.randint(1, 2))))
    verdict = judged(net.write(folder, ("sonic", "flat", "redis")[seed % 3]))
    assert verdict.acyclic is net.acyclic_for_all(uplinks), verdict
    assert verdict.unread == [f"{router}:{port}" for router, port in uplinks]
    assert [step.held for step in verdict.witnesses] == verdict.cycle
    senders = {f"{host[0]}-{host[1]}" for host in net.hosts} | {*verdict.unread}
    assert {step.source for step in verdict.witnesses} <= senders
    if not _first_halves(net):
        assert verdict.undelivered == net.judged()[1]
    return verdict.acyclic


@pytest.mark.seeds(60)
def test_default_routes_and_unread_ports_agree_with_packets_followed_one_by_one(
    seed: int, tmp_path: Path
) -> None:
    any_address_agrees(seed, tmp_path)


def _first_halves(net: RouterNet) -> bool:
    return any("/25" in prefix for routes in net.routes.values() for prefix in routes)
