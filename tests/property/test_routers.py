"""Fabrics of IP routers read from files: verdicts of an oracle, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.importers.paths import read_paths
from knotless.verification.imported import ImportedVerdict, verdict_of_imported
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import random_net

FORMS = ("sonic", "flat", "redis", "frr", "older", "text")


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


@pytest.mark.parametrize("seed", range(200))
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


def _first_halves(net: RouterNet) -> bool:
    return any("/25" in prefix for routes in net.routes.values() for prefix in routes)
