"""Verdicts on failures: each is that of the same fabric read after the failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError, RuleError
from knotless.cli.main import main
from knotless.importers.fabric import TableFabric
from knotless.importers.paths import read_paths
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.verification.colour_refinement import colours
from knotless.verification.failure_models import EngineModel, TablesModel
from knotless.verification.failures import (
    Failure,
    FailureModel,
    FailureTable,
    failure_sets,
    single_failures,
)
from knotless.verification.imported import verdict_of_imported
from tests.support.classical_deadlocks import bounce, dual_tor
from tests.support.infiniband_dumps import random_subnet
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import clos, leaf_spine, random_net, shortest_paths


def read(net: RouterNet, folder: Path) -> TableFabric:
    return tables_in(net.write(folder))


def tables_in(folder: Path) -> TableFabric:
    imported = read_paths([folder])
    assert isinstance(imported, TableFabric)
    return imported


def evaluate_failures(imported: TableFabric, reaction: str, max_failed: int) -> FailureTable:
    return evaluated(TablesModel(imported, reaction), max_failed)


def evaluated(model: FailureModel, max_failed: int) -> FailureTable:
    table = FailureTable(model, max_failed, 1)
    assert list(table.evaluate()) == table.verdicts
    return table


def without(net: RouterNet, failed: tuple[str, ...], *, reroute: bool) -> RouterNet:
    """Return the network after a failure; without rerouting, dead next hops leave their sets."""
    dead = {name for name in failed if "-" not in name}
    cut = {tuple(end.split(":", 1)) for name in failed if "-" in name for end in name.split("-")}
    gone = [c for c in net.cables if c[0] in cut or c[1] in cut or {c[0][0], c[1][0]} & dead]
    ports = {end for cable in gone for end in cable}
    lags = {
        lag: [port for port in members if (lag[0], port) not in ports]
        for lag, members in net.lags.items()
    }
    left = RouterNet([c for c in net.cables if c not in gone], lags=lags, qos=net.qos)
    left.hosts = {end: text for end, text in net.hosts.items() if end[0] not in dead}
    kept = {router: routes for router, routes in net.routes.items() if router not in dead}
    if reroute:
        left.routes = {router: {} for router in kept}
        shortest_paths(left)
        return left

    def alive(router: str, port: str) -> bool:
        return (router, port) not in ports and lags.get((router, port)) != []

    left.routes = {
        router: {
            prefix: [hop for hop in hops if alive(router, hop[1])]
            for prefix, hops in routes.items()
        }
        for router, routes in kept.items()
    }
    for routes in left.routes.values():  # the kernel removes a route without next hops
        for prefix in [p for p, hops in routes.items() if not hops and net_has(net, p)]:
            del routes[prefix]
    return left


def net_has(net: RouterNet, prefix: str) -> bool:
    return any(routes.get(prefix) for routes in net.routes.values())


@pytest.mark.seeds(8)
def test_recomputed_routes_have_the_verdict_of_the_fabric_read_again(
    seed: int, tmp_path: Path
) -> None:
    net = random_net(seed)
    for routes in net.routes.values():  # the model has a destination for each half of a network
        for half in [prefix for prefix in routes if prefix.endswith("/25")]:
            del routes[half]
    table = evaluate_failures(read(net, tmp_path / "intact"), "bgp", 1)
    for number, verdict in enumerate(table.verdicts):
        left = without(net, verdict.failed, reroute=True)
        if len({end[0] for end in left.hosts}) < 2:
            continue
        again = verdict_of_imported(read(left, tmp_path / str(number)))
        if again.missing:
            continue  # a part without any priority settings of its own
        assert (verdict.acyclic, verdict.undelivered) == (again.acyclic, again.undelivered)


def test_two_failures_of_a_leaf_spine_fabric(tmp_path: Path) -> None:
    """A bounce needs two leaves that have lost different spines: 4 * 3 pairs of links."""
    table = evaluate_failures(read(leaf_spine(4, 2), tmp_path), "bgp", 2)
    assert (table.total, table.planned, len(table.verdicts)) == (105, 105, 105)
    unsafe = [verdict for verdict in table.verdicts if verdict.acyclic is False]
    assert len(unsafe) == 12
    for verdict in unsafe:
        assert all("leaf" in name and "spine" in name for name in verdict.failed)
        assert verdict.undelivered == 0
        assert len(verdict.cycle) == 4
        assert {step.held for step in verdict.witnesses} == set(verdict.cycle)
    assert table.worst in unsafe
    assert table.groups[0].count == 12
    assert evaluate_failures(read(leaf_spine(4, 2), tmp_path), "bgp-valley-free", 2).acyclic is True


@pytest.mark.parametrize(("reaction", "acyclic"), [("bgp", False), ("bgp-valley-free", True)])
def test_the_worst_failure_is_confirmed_by_reading_the_fabric_again(
    reaction: str, acyclic: bool, tmp_path: Path
) -> None:
    net = leaf_spine(4, 2)
    table = evaluate_failures(read(net, tmp_path / "intact"), reaction, 2)
    assert table.acyclic is acyclic
    worst = table.worst
    assert (worst is None) == acyclic
    if worst is not None:
        left = without(net, worst.failed, reroute=True)
        assert verdict_of_imported(read(left, tmp_path / "after")).cycle == worst.cycle


def test_a_clos_network_survives_single_failures(tmp_path: Path) -> None:
    table = evaluate_failures(read(clos(3, 2, 2, 2), tmp_path), "bgp", 1)
    assert (table.acyclic, table.differences) == (True, 0)
    assert len(table.verdicts) == 12 + 12 + 16
    assert sorted(group.count for group in table.groups) == [4, 6, 6, 12, 12]
    assert all(verdict.undelivered == 0 for verdict in table.verdicts)


def test_a_default_route_that_leads_back_up_is_followed(tmp_path: Path) -> None:
    """If spine0 has lost leaf0, its default route sends packets for leaf0 to leaf2, and up."""
    net = bounce()
    net.cables = leaf_spine(4, 2).cables
    shortest_paths(net)
    for spine, (home, other) in {
        "spine0": ("leaf0", "leaf2"),
        "spine1": ("leaf1", "leaf3"),
    }.items():
        port = next(p for (r, p), (other, _) in net.peers.items() if (r, other) == (spine, other))
        net.routes[spine]["0.0.0.0/0"] = [("169.254.0.9", port)]
        assert home != other
    table = evaluate_failures(read(net, tmp_path), "local", 2)
    by_name = {verdict.failed: verdict for verdict in table.verdicts}
    links = ("leaf0:Ethernet0-spine0:Ethernet0", "leaf1:Ethernet4-spine1:Ethernet4")
    for failed in (links[:1], links):
        left = without(net, failed, reroute=False)
        again = verdict_of_imported(read(left, tmp_path / str(len(failed))))
        assert by_name[failed].acyclic is again.acyclic
        assert by_name[failed].undelivered == again.undelivered > 0  # some go round for ever
    assert by_name[links].acyclic is False


@pytest.mark.seeds(6)
def test_static_routes_never_gain_a_dependency(seed: int, tmp_path: Path) -> None:
    imported = tables_in(random_subnet(seed).write(tmp_path))
    verdict = verdict_of_imported(imported)
    table = evaluate_failures(imported, "static", 1)
    assert table.intact.acyclic == verdict.acyclic
    assert table.intact.undelivered == verdict.undelivered
    if verdict.acyclic:
        assert table.acyclic is True
    with pytest.raises(RuleError, match="InfiniBand does not route by BGP"):
        TablesModel(imported, "bgp")


def test_a_tunnel_s_way_is_recomputed_too(tmp_path: Path) -> None:
    table = evaluate_failures(read(dual_tor(remapped=False), tmp_path / "plain"), "bgp", 1)
    assert table.acyclic is False
    again = evaluate_failures(read(dual_tor(remapped=True), tmp_path / "remapped"), "bgp", 1)
    assert again.acyclic is True


def test_our_engines_recompute() -> None:
    fabric = load("mesh,3,3")
    table = evaluated(EngineModel(fabric, PlanRequest.from_options(engine="updown")), 1)
    assert table.acyclic is True
    assert len(table.verdicts) == 12 + 9
    assert all(verdict.undelivered == 0 for verdict in table.verdicts)


def test_samples_are_drawn_with_a_seed(tmp_path: Path) -> None:
    imported = read(leaf_spine(4, 2), tmp_path)
    singles = single_failures(imported.fabric, imported.channels)
    total, planned, failures = failure_sets(singles, 2, 7, 20)
    assert (total, planned) == (105, 34)
    drawn = [failure.names for failure in failures]
    assert drawn == [failure.names for failure in failure_sets(singles, 2, 7, 20)[2]]
    assert len(set(drawn)) == 34
    with pytest.raises(KnotlessError, match="must be 1 or 2"):
        failure_sets(singles, 3, 1)


def test_equal_colours_are_what_no_neighbourhood_tells_apart(tmp_path: Path) -> None:
    imported = read(clos(3, 2, 2, 2), tmp_path)
    colour_of = dict(
        zip(imported.channels.names, colours(imported.fabric, imported.channels), strict=True)
    )
    assert len(set(colour_of.values())) == 3
    assert colour_of["pod0-leaf0"] == colour_of["pod2-leaf1"] != colour_of["pod0-agg0"]


def test_the_command_prints_a_certificate(tmp_path: Path) -> None:
    folder = str(leaf_spine(4, 2).write(tmp_path))
    done = CliRunner().invoke(main, ["check", folder, "--failures", "2"])
    assert done.exit_code == 1
    assert "CAN DEADLOCK after 12 of the 105 failures tried" in done.output
    assert "worst: " in done.output
    done = CliRunner().invoke(main, ["check", folder, "--failures", "1", "--json"])
    values = json.loads(done.output)
    assert done.exit_code == 0
    assert len(values["failures"]) == values["failures_tried"] == 14
    assert set(values["failures"][0]) == {"failed", "acyclic", "cycle", "undelivered"}
    assert values["failures_acyclic"] is True
    done = CliRunner().invoke(main, ["check", folder, "--failures", "1", "--react", "engine"])
    assert done.exit_code == 0
    assert "routing reacts: engine" in done.output


def test_rules_of_ours(tmp_path: Path) -> None:
    folder = str(tmp_path / "rules")
    run = CliRunner().invoke
    assert run(main, ["flows", "mesh,3,2", "--out", folder]).exit_code == 0
    done = run(main, ["check", folder, "--failures", "1", "--json"])
    values = json.loads(done.output)
    assert done.exit_code == 0
    assert (values["reaction"], values["failures_tried"]) == ("static", 7 + 6)
    lost = {" ".join(failure["failed"]): failure["undelivered"] for failure in values["failures"]}
    assert lost["s1"] == 2  # from h2 and h3, first along x, then down to h4
    assert lost["s1:2-s2:3"] > 0
    done = run(main, ["check", folder, "--failures", "1", "--react", "engine"])
    assert "13 failures tried" in done.output
    done = run(main, ["check", folder, "--failures", "1", "--react", "bgp"])
    assert (done.exit_code, "static or engine" in done.output) == (2, True)


def test_what_was_tried_before_an_interrupt_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(leaf_spine(3, 2).write(tmp_path))
    plain = TablesModel.evaluate
    calls = []

    def interrupted(self: TablesModel, failure: Failure) -> object:
        calls.append(failure)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return plain(self, failure)

    monkeypatch.setattr(TablesModel, "evaluate", interrupted)
    done = CliRunner().invoke(main, ["check", folder, "--failures", "1"])
    assert done.exit_code == 1
    assert "interrupted after 3 of 11 failures" in done.output
    assert "cannot deadlock after any of the 3 failures tried of 11" in done.output
