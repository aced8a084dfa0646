"""Layers: each is a complete routing, their union has no cycle, and a hash chooses among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import PlanError
from knotless.cli.main import main
from knotless.forwarding.from_plan import state_of_plan
from knotless.routing.choices.layers import Layers
from knotless.routing.engine import engines
from knotless.routing.plan import Plan, make_plan
from knotless.routing.plan_json import plan_to_json
from knotless.topologies import Fabric, load
from knotless.traffic.contention import Lines, contention
from knotless.traffic.multipath import HashedLines, analyse_multipath, split_loads
from knotless.traffic.patterns import pattern_named
from knotless.verification.check import verdict_of
from knotless.verification.checked_plan import CheckedPlan
from tests.support.cycles import has_cycle
from tests.support.fabric_strategies import (
    cut,
    dragonflies,
    dragonflies_plus,
    graphs,
    hyperxs,
    of_diameter_2,
    without_a_switch,
)
from tests.support.hashed_frames import simulated_on_paths
from tests.support.reference import Node
from tests.support.reference_plans import node_called, waits_of

SMALL = st.one_of(hyperxs(), of_diameter_2())
CASES = st.one_of(
    st.tuples(st.one_of(SMALL, cut(SMALL), without_a_switch(SMALL)), st.just("valiant")),
    st.tuples(dragonflies(), st.just("dragonfly-valiant")),
    st.tuples(dragonflies_plus(), st.just("dragonflyplus-valiant")),
    st.tuples(graphs(), st.sampled_from(["updown", "prefix", "lturn", "rturn", "dl"])),
)


def layered(spec: str, engine: str, layers: int, seed: int = 0, **choices: Any) -> Plan:
    return make_plan(
        load(spec), engine, multipath="layers", layers=layers, hash_seed=seed, **choices
    )


def run(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(arguments))


def paths_of(plan: Plan) -> list[dict[tuple[str, str], tuple[Node, ...]]]:
    """Return the paths of each layer by host and destination switch, as the JSON lists them."""
    listed: list[Any] = plan_to_json(plan, {})["layers"]  # type: ignore[assignment]
    return [
        {
            (host, to): tuple(node_called(name) for name in path)
            for source in layer["sources"]
            for host in source["hosts"]
            for to, path in source["paths"].items()
        }
        for layer in listed
    ]


def check_paths(fabric: Fabric, paths: dict[tuple[str, str], tuple[Node, ...]]) -> None:
    """Assert that every host has a path to every other switch with hosts, by the cables."""
    peer = {}
    for link in fabric.links:
        peer[link.a, link.a_port] = link.b
        peer[link.b, link.b_port] = link.a
    home = {host.name: host.switch for host in fabric.hosts}
    ends = {(name, to) for name, at in home.items() for to in home.values() if to != at}
    assert paths.keys() == ends
    for (host, to), path in paths.items():
        at = home[host]
        for switch, port, _ in path:
            assert switch == at
            at = peer[switch, port]
        assert at == to


def waits_of_trees(plan: Plan) -> set[tuple[Node, Node]]:
    state = state_of_plan(plan)
    rows = state.dependencies[state.dependencies[:, 5] >= len(plan.fabric.hosts)]
    return {(node(plan, a, p), node(plan, b, q)) for a, p, b, q in rows[:, :4].tolist()}


def node(plan: Plan, channel: int, priority: int) -> Node:
    return node_called(plan.channels.name(channel, priority))


@pytest.mark.examples(0.4)
@given(CASES, st.integers(1, 6))
def test_each_layer_is_complete_and_their_union_cannot_deadlock(
    case: tuple[Fabric, str], layers: int
) -> None:
    fabric, engine = case
    refused = ""
    try:
        plan = make_plan(fabric, engine, multipath="layers", layers=layers)
    except PlanError as error:
        refused = str(error)
    if refused:
        assert "virtual channels" in refused or "lacks links" in refused
        return
    found = paths_of(plan)
    assert len(found) == layers
    for paths in found:
        check_paths(fabric, paths)
    waits = waits_of(path for paths in found for path in paths.values())
    state = state_of_plan(plan)
    by_core = {
        (node(plan, a, p), node(plan, b, q)) for a, p, b, q in state.dependencies[:, :4].tolist()
    }
    assert by_core == waits | waits_of_trees(plan)
    assert not has_cycle(by_core)
    verdict = verdict_of(state, "pfc")
    assert (verdict.ok, verdict.acyclic, verdict.undelivered) == (True, True, 0)
    assert verdict.broadcasts_undelivered == 0
    used = {vc for paths in found for path in paths.values() for _, _, vc in path}
    assert plan.vcs == 1 + max(used | {int(plan.routes.tree_priorities.max(initial=0))})


@pytest.mark.parametrize(
    ("spec", "engine", "layers", "vcs", "paths"),
    [
        ("slimfly,5", "valiant", 4, 4, 4),
        ("polarfly,4", "valiant", 5, 4, 5),
        ("fullmesh,8", "valiant", 6, 2, 6),
        ("dragonfly,a=4,h=2,p=2", "dragonfly-valiant", 7, 3, 7),
        ("dragonflyplus,l=2,s=2,h=2,p=2", "dragonflyplus-valiant", 3, 2, 3),
        ("torus,4,4", "updown", 4, 4, 4),  # a root and a virtual channel each
        ("irregular-a", "lturn", 3, 3, 3),
    ],
)
def test_virtual_channels_and_paths(
    spec: str, engine: str, layers: int, vcs: int, paths: int
) -> None:
    plan = layered(spec, engine, layers)
    assert plan.vcs == vcs
    assert isinstance(plan.choice, Layers)
    assert plan.choice.sizes.max() == paths
    assert (layered(spec, engine, 1).vlan_count < plan.vlan_count) or engine == "updown"
    assert plan.vlan_count == plan.choice.vlans.max() - 1
    with pytest.raises(PlanError, match=f"more than {plan.vlan_count - 1} VLANs"):
        layered(spec, engine, layers, max_vlans=plan.vlan_count - 1)


def test_one_layer_is_the_plan_itself() -> None:
    plan = make_plan(load("slimfly,3"), "valiant")
    one = make_plan(load("slimfly,3"), "valiant", multipath="layers", layers=1)
    assert (one.routes.channels == plan.routes.channels).all()
    assert state_of_plan(one).difference(state_of_plan(plan)) == ""


def test_layers_that_close_a_cycle_have_virtual_channels_of_their_own() -> None:
    plan = layered("torus,4,4", "updown", 4)
    starts = [{vc for path in paths.values() for _, _, vc in path} for paths in paths_of(plan)]
    assert starts == [{0}, {1}, {2}, {3}]
    on_one = [
        tuple((*node[:2], 0) for node in path)
        for paths in paths_of(plan)
        for path in paths.values()
    ]
    assert has_cycle(waits_of(on_one))
    with pytest.raises(PlanError, match="layer 3 of 4 closes a cycle .* each of 2 virtual"):
        layered("torus,4,4", "updown", 4, vcs=2)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize(("spec", "engine"), [("slimfly,3", "valiant"), ("torus,4,4", "updown")])
def test_a_seed_takes_the_channels_that_it_takes_in_the_simulator(
    spec: str, engine: str, seed: int
) -> None:
    plan = layered(spec, engine, 4, seed)
    result = simulated_on_paths(plan, HashedLines(plan, seed))
    assert result.summary()["order"] == "kept"


def test_equal_splitting_of_all_pairs_is_what_exploration_finds() -> None:
    for spec, engine in (("slimfly,3", "valiant"), ("irregular-a", "updown")):
        plan = layered(spec, engine, 3)
        lines = Lines(plan)
        (flows,) = pattern_named("uniform").phases(plan.fabric, 1)
        split = split_loads(lines, flows)["split"]
        assert split[: lines.switch_lines] == pytest.approx(state_of_plan(plan).loads)


def test_metrics_are_those_of_the_seeds() -> None:
    plan, pattern = layered("fullmesh,6,hosts=3", "valiant", 4), pattern_named("shift:3")
    found = analyse_multipath(plan, pattern, seed=1, seeds=9)
    loads = [
        contention(HashedLines(plan, seed), pattern.phases(plan.fabric, 1)).max_channel_load
        for seed in range(9)
    ]
    assert found.metrics()["hashed_max_load_worst"] == max(loads)
    (flows,) = pattern.phases(plan.fabric, 1)
    split = split_loads(Lines(plan), flows)["split"][: len(plan.channels)]
    assert found.metrics()["split_max_load"] == round(float(split.max()), 6)


def test_the_command_and_its_json(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    words = ("slimfly,3", "--engine", "valiant", "--multipath", "layers", "--json")
    done = run("plan", *words, "--layers", "5", "--out", str(file))
    summary = json.loads(done.stdout)
    assert (done.exit_code, summary["layers"], summary["max_next_hops"]) == (0, 5, 5)
    assert "rules" not in summary
    assert len(json.loads(file.read_text())["layers"]) == 5
    assert json.loads(run("plan", *words).stdout)["layers"] == 4
    done = run("analyse", *words, "--pattern", "shift:3", "--seeds", "3")
    assert json.loads(done.stdout)["seeds"] == 3


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("plan", "--engine", "sbp", "--multipath", "layers"), "no other paths for other layers"),
        (("plan", "--engine", "ugal", "--multipath", "layers"), "has a choice of its own"),
        (("plan", "--engine", "valiant", "--layers", "2"), "needs --multipath layers"),
        (
            ("plan", "--engine", "valiant", "--multipath", "layers", "--layers", "0"),
            "layers: 0 is not at least 1",
        ),
        (
            ("plan", "--engine", "valiant", "--multipath", "layers", "--layers", "65"),
            "layers: 65 is not at most 64",
        ),
        (
            ("plan", "--engine", "valiant", "--multipath", "layers", "--tagging", "host"),
            "needs one path for each pair",
        ),
        (("plan", "--engine", "valiant", "--multipath", "layers", "--explain"), "one path for"),
        (("flows", "--engine", "valiant", "--multipath", "layers", "--out", "x"), "no rules"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(words: tuple[str, ...], text: str) -> None:
    command, *options = words
    done = run(command, "slimfly,3", *options)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert text in done.stderr


@pytest.mark.parametrize("engine", [name for name, one in engines().items() if one.has_layers])
def test_engines_with_layers_have_several_paths(engine: str) -> None:
    specs = {
        "dragonfly-valiant": "dragonfly,a=3,h=1,p=1",
        "dragonflyplus-valiant": "dragonflyplus,l=2,s=2,h=2,p=1",
        "valiant": "fullmesh,5",
    }
    plan = layered(specs.get(engine, "torus,4,4"), engine, 2)
    assert isinstance(plan.choice, Layers)
    assert plan.choice.sizes.max() == 2
    assert CheckedPlan(plan).verdict.ok
