"""Trials of proofs for fabrics of routers: what is accepted is right, as other code finds out.

The tests beside ``proofs`` run few of them, ``python -m tests.prove_proofs routes`` thousands.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from knotless.base.errors import ProofError
from knotless.cli.commands.check.proof import write_imported_proof
from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from tests.support import table_trials
from tests.support.linux_dumps import write_linux
from tests.support.proof_trials import climbed_ranks, with_files_of
from tests.support.proofs import judge
from tests.support.route_damage import CHANGES
from tests.support.route_folders import (
    RouteFolder,
    classes,
    head_of,
    priority_of,
    proof_of_routes,
)
from tests.support.router_dumps import RouterNet, plain_qos
from tests.support.router_nets import (
    add_stale_routes,
    clos,
    leaf_spine,
    random_net,
    with_uplinks,
)
from tests.support.table_trials import write_damaged

FORMS = ("sonic", "flat", "redis", "frr", "text", "linux")
OUTSIDE = "T2-*"
"""The devices behind uplinks."""


def drawn_net(rng: random.Random) -> RouterNet:
    """Return a fabric, safe or not, with networks on some links, loopbacks and default routes."""
    kind = rng.choice(["leaf-spine", "clos", "random", "random"])
    if kind == "leaf-spine":
        net = leaf_spine(rng.randint(2, 4), rng.randint(1, 3))
    elif kind == "clos":
        net = clos(2, rng.randint(1, 2), rng.randint(1, 2), rng.randint(1, 2))
    else:
        net = random_net(rng.randrange(1 << 30))
        # Packets that change their priority are not covered: a test of their own says so.
        net.qos = {router: plain_qos(net.ports(router)) for router in net.routers}
    if rng.random() < 0.5:
        add_link_networks(net, rng)
    if rng.random() < 0.4:
        add_loopbacks(net, rng)
    if rng.random() < 0.3:
        add_stale_routes(net, rng)
    if rng.random() < 0.4:
        for router, port in with_uplinks(net, rng.sample(net.routers, rng.randint(1, 2))):
            if rng.random() < 0.5:
                net.routes[router]["0.0.0.0/0"] = [("203.0.113.1", port)]
    return net


def add_link_networks(net: RouterNet, rng: random.Random) -> None:
    """Give cables a network, of which both ends have an address, and others a route to some."""
    in_lag = {(router, port) for (router, _), ports in net.lags.items() for port in ports}
    for number, (a, b) in enumerate(net.cables):
        if {a, b} & in_lag or rng.random() < 0.3:
            continue
        length = rng.choice([31, 30, 29])
        network = ipaddress.IPv4Network(f"10.200.{number}.0/{length}")
        first = 0 if length == 31 else 1
        for (router, port), place in ((a, first), (b, first + 1)):
            interfaces = net.more.setdefault(router, {}).setdefault("INTERFACE", {})
            interfaces[f"{port}|{network[place]}/{length}"] = {}
            net.routes[router][str(network)] = [("", port)]
            if rng.random() < 0.3:
                net.routes[router][f"{network[place]}/32"] = [("", port)]
        for router in net.routers:
            towards = [
                port
                for (name, port), (far, _) in sorted(net.peers.items())
                if name == router and far in (a[0], b[0])
            ]
            if router not in (a[0], b[0]) and towards and rng.random() < 0.4:
                net.routes[router][str(network)] = [("169.254.3.1", towards[0])]


def add_loopbacks(net: RouterNet, rng: random.Random) -> None:
    """Give routers an address of their own, to which their neighbours have a route."""
    for number, home in enumerate(net.routers):
        address = f"10.210.0.{number}/32"
        loopbacks = net.more.setdefault(home, {}).setdefault("LOOPBACK_INTERFACE", {})
        loopbacks[f"Loopback0|{address}"] = {}
        if rng.random() < 0.5:
            net.routes[home][address] = [("", "Loopback0")]
        for (router, port), (far, _) in sorted(net.peers.items()):
            if far == home and rng.random() < 0.7:
                net.routes[router][address] = [("169.254.4.1", port)]


def write_net(net: RouterNet, folder: Path, rng: random.Random) -> tuple[Path, Sequence[str]]:
    """Write the files of a fabric, in any form; returns patterns of neighbours that are no routers.

    Only some forms have such neighbours.
    """
    outside = [OUTSIDE] if any("DEVICE_NEIGHBOR" in tables for tables in net.more.values()) else []
    form = rng.choice(FORMS[:-1] if outside else FORMS)
    return (write_linux(net, folder) if form == "linux" else net.write(folder, form)), outside


def proven(source: Path, file: Path, hosts: Sequence[str] = ()) -> tuple[Path, str]:
    """Write the proof of a fabric; returns the folder that it is about, and its text.

    Neighbours with names that fit the patterns ``hosts`` are no routers of the fabric.
    Raises ProofError if the product does not write one.
    """
    imported = read_paths([str(source)], hosts)
    written = write_imported_proof(str(file), imported, verdict_of_imported(imported))
    return Path(written.rules), file.read_text()


def trial_of_fabric(scratch: Path, rng: random.Random) -> tuple[str, Path, str]:
    """Write a fabric and the proof of its verdict, and judge that.

    Returns what it claims, the folder that it is about, and the proof. Asserts that the claim is
    accepted or replayed, and is what packets find that are followed.
    """
    net = drawn_net(rng)
    folder = scratch / "proof.rules"
    try:
        source, outside = write_net(net, scratch / "net", rng)
        folder, proof = proven(source, scratch / "proof", outside)
    except ProofError as error:
        return f"not written: {str(error)[:60]}", folder, ""
    judgement = judge(folder, proof)
    wrong = RouteFolder(folder).fault()
    if "\nclaim safe\n" in proof:
        assert judgement.accepted, judgement.text
        assert not wrong, wrong
        assert net.judged() == (True, 0)
        return "safe", folder, proof
    assert judgement.replayed, judgement.text
    assert wrong == "a cycle", wrong
    return "cycle", folder, proof


def trial_of_routes(intact: Path, proof: str, folder: Path, rng: random.Random) -> str:
    """Damage the routes of a proof; judge them with its evidence, and with new evidence.

    Returns whether they were accepted. Asserts that what is accepted is right, as packets find that
    are followed one by one, and that what is refused with the best evidence is not.
    """
    names = write_damaged(intact, folder, CHANGES, rng)
    proofs = [with_files_of(proof, folder), proof_of_routes(folder, proof)]
    accepted = [judge(folder, each).accepted for each in proofs]
    wrong = RouteFolder(folder).fault()
    if any(accepted):
        assert not wrong, (names, wrong)
        return "accepted with the old evidence" if accepted[0] else "accepted with new evidence"
    return "refused, and wrong" if wrong else "refused, and nothing is wrong for hosts"


def trial_of_cyclic_routes(folder: Path, proof: str, rng: random.Random) -> int:
    """Judge a fabric that can deadlock with proofs that say otherwise; returns how many.

    Asserts that none is accepted.
    """
    fabric = RouteFolder(folder)
    suffix = priority_of(proof)
    edges = sorted(fabric.waits())
    lines = classes(fabric)
    proofs = [proof_of_routes(folder, proof)]
    for _ in range(4):
        rank = climbed_ranks(edges, rng, 40)
        evidence = ["claim safe", f"bound {max(rank.values())}"]
        evidence += [f"rank {name}{suffix} {number}" for name, number in rank.items()]
        for chosen in (lines, [line for line in lines if rng.random() < 0.9], _wider(lines, rng)):
            proofs.append("\n".join([*head_of(folder, proof), *evidence, *chosen]) + "\n")
    for each in proofs:
        assert judge(folder, each).status == 1, each
    return len(proofs)


def _wider(lines: list[str], rng: random.Random) -> list[str]:
    """Return classes of which some have a shorter prefix."""

    def widened(line: str) -> str:
        network = ipaddress.IPv4Network(line.split()[1])
        if rng.random() > 0.2 or not network.prefixlen:
            return line
        return f"class {network.supernet()}"

    return [*map(widened, lines)]


first_with = partial(table_trials.first_with, trial_of_fabric)
"""Return a folder of routes and its proof: others are drawn until one has this claim."""
