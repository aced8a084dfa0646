"""UGAL's plans: every choice arrives, their union has no cycle, and virtual channels are few."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import PlanError
from knotless.cli.main import main
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.compiler import compile_state
from knotless.routing.choices.source_choices import SourceChoices
from knotless.routing.plan import Plan, make_plan
from knotless.routing.plan_json import plan_to_json
from knotless.topologies import Fabric, load
from knotless.topologies.formats.files import to_json
from knotless.traffic.multipath import analyse_multipath
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
    thinned,
    without_a_switch,
)
from tests.support.reference import Node
from tests.support.reference_plans import SourceChoices as ReferencePaths
from tests.support.reference_plans import node_called, waits_of

DRAGONFLY, DRAGONFLY_PLUS = "dragonfly,a=4,h=2,p=2", "dragonflyplus,l=4,s=4,h=2,p=4"
INTACT = st.one_of(dragonflies(), dragonflies_plus(), hyperxs(), of_diameter_2())
FABRICS = st.one_of(INTACT, thinned(INTACT), cut(INTACT), without_a_switch(INTACT), graphs())


def run(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(arguments))


def reference_of(plan: Plan) -> ReferencePaths:
    return ReferencePaths(to_json(plan.fabric), plan_to_json(plan, {}))


def switch_pairs(fabric: Fabric) -> list[tuple[str, str]]:
    homes = sorted({host.switch for host in fabric.hosts})
    return [(a, b) for a in homes for b in homes if a != b]


def paths_of(plan: Plan) -> list[tuple[Node, ...]]:
    reference = reference_of(plan)
    return [path for pair in switch_pairs(plan.fabric) for path in reference.paths(*pair)]


def waits_by_core(plan: Plan) -> set[tuple[Node, Node]]:
    """Return the waits of unicasts in the state."""
    state = state_of_plan(plan)
    switches = len(plan.fabric.hosts)
    rows = state.dependencies[state.dependencies[:, 5] < switches]

    def node(channel: int, priority: int) -> Node:
        return node_called(plan.channels.name(channel, priority))

    return {(node(a, p), node(b, q)) for a, p, b, q in rows[:, :4].tolist()}


def waits_of_trees(plan: Plan) -> set[tuple[Node, Node]]:
    trees, vcs, channels = plan.routes.tree_channels, plan.routes.tree_priorities, plan.channels

    def node(source: int, to: int) -> Node:
        return node_called(channels.name(int(trees[source, to]), int(vcs[source, to])))

    return {
        (node(source, above), node(source, to))
        for source, to in np.argwhere(trees >= 0).tolist()
        if trees[source, above := int(channels.tail[trees[source, to]])] >= 0
    }


@pytest.mark.examples(0.6)
@given(FABRICS)
def test_every_choice_arrives_and_their_union_cannot_deadlock(fabric: Fabric) -> None:
    try:
        plan = make_plan(fabric, "ugal")
    except PlanError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert "virtual channels" in refused or "lacks links" in refused
        return
    paths = paths_of(plan)  # each arrives, and passes no switch twice
    waits = waits_of(paths)
    assert waits_by_core(plan) >= waits - waits_of_trees(plan)
    assert waits_by_core(plan) <= waits
    assert not has_cycle(waits | waits_of_trees(plan))
    verdict = verdict_of(state_of_plan(plan), "pfc")
    assert (verdict.ok, verdict.acyclic, verdict.safe) == (True, True, True)
    assert (verdict.undelivered, verdict.broadcasts_undelivered, verdict.problems) == (0, 0, [])
    tree_vcs = 1 + int(plan.routes.tree_priorities.max(initial=0))
    assert plan.vcs == max([tree_vcs, *(1 + vc for path in paths for _, _, vc in path)])
    longest = max([0, *(len(path) for path in paths)])
    assert verdict.max_switches == 1 + longest or len(fabric.hosts) == 1


@pytest.mark.examples(0.3)
@given(INTACT)
def test_virtual_channels_of_intact_fabrics_are_those_of_the_literature(fabric: Fabric) -> None:
    plan = make_plan(fabric, "ugal")
    family = fabric.name.partition(",")[0]
    most = {"dragonfly": 3, "dragonflyplus": 2, "slimfly": 4, "polarfly": 4, "fullmesh": 2}
    assert plan.vcs <= most.get(family, 8)
    # The direct path is a shortest path of its form, and comes first.
    choices = plan.choice
    assert isinstance(choices, SourceChoices)
    reference = reference_of(plan)
    for source, to in switch_pairs(fabric):
        of_pair = reference.paths(source, to)
        at, goal = fabric.switch_index[source], fabric.switch_index[to]
        assert len(of_pair) == choices.sizes[goal, at]
        assert len(set(of_pair)) >= min(2, len(of_pair))


@pytest.mark.thin(4)
@pytest.mark.parametrize(
    ("spec", "vcs", "labels", "paths"),
    [
        (DRAGONFLY, 3, 1 + 9, 1 + 7),  # Kim 2008
        ("dragonfly,a=8,h=4,p=4", 3, 1 + 33, 1 + 31),
        ("dragonfly,a=4,h=2,p=2,g=5", 3, 1 + 5, 1 + 3),
        (DRAGONFLY_PLUS, 2, 1 + 9, 1 + 7),  # Shpiner 2017
        ("slimfly,5", 4, 1 + 50, 44),  # Besta 2014
        ("slimfly,7", 4, 1 + 98, 1 + 96),
        ("polarfly,7", 4, 1 + 57, 52),  # Lakhotia 2022
        ("fullmesh,8", 2, 1 + 8, 1 + 6),
        ("hyperx,S=8", 2, 1 + 8, 1 + 6),
        ("fullmesh,5,K=2", 2, 1 + 5, 1 + 3),
        ("hyperx,S=4x4", 4, 1 + 16, 1 + 14),
        ("flat,4", 1, 2, 0),
    ],
)
def test_virtual_channels_labels_and_paths(spec: str, vcs: int, labels: int, paths: int) -> None:
    plan = make_plan(load(spec), "ugal")
    assert (plan.vcs, plan.vlan_count, str(plan.flow_control)) == (
        vcs,
        labels,
        "pfc" if vcs > 1 else "pause",
    )
    assert plan.choice.sizes.max() == paths
    assert CheckedPlan(plan).verdict.ok
    if vcs > 1:
        message = f"ugal needs {vcs} virtual channels on .*, {vcs - 1} are allowed"
        with pytest.raises(PlanError, match=message):
            make_plan(load(spec), "ugal", vcs=vcs - 1)
    make_plan(load(spec), "ugal", max_vlans=labels)
    if labels > 1:
        with pytest.raises(PlanError, match=f"more than {labels - 1} VLANs"):
            make_plan(load(spec), "ugal", max_vlans=labels - 1)


@pytest.mark.parametrize("spec", ["torus,8,8", "ring,10", "mesh,6,6"])
def test_a_large_diameter_is_refused_in_one_line(spec: str) -> None:
    with pytest.raises(PlanError, match="twice the diameter; 8 are possible: adaptive"):
        make_plan(load(spec), "ugal")


@pytest.mark.parametrize("spec", [DRAGONFLY, DRAGONFLY_PLUS, "slimfly,3", "fullmesh,4"])
def test_without_its_virtual_channels_a_plan_is_unsafe_with_a_witness(spec: str) -> None:
    plan = make_plan(load(spec), "ugal")
    assert isinstance(plan.choice, SourceChoices)
    tables = plan.choice.tables
    never = replace(tables, rises=np.zeros_like(tables.rises))
    broken = replace(plan, choice=replace(plan.choice, tables=never))
    assert has_cycle(waits_of(paths_of(broken)))
    verdict = verdict_of(state_of_plan(broken), "pfc")
    assert (verdict.safe, verdict.acyclic) == (False, False)
    assert verdict.witnesses
    assert all(name.endswith("/0") for name in verdict.cycle)
    # Under PAUSE, the virtual channels of a link stop together.
    assert not verdict_of(state_of_plan(plan), "pause").safe


def test_direct_paths_alone_need_fewer_virtual_channels() -> None:
    plan = make_plan(load(DRAGONFLY), "ugal")
    reference = reference_of(plan)
    direct = [reference.paths(*pair)[0] for pair in switch_pairs(plan.fabric)]
    assert max(vc for path in direct for _, _, vc in path) == 1
    lengths = [len(path) for path in direct]
    minimal = make_plan(load(DRAGONFLY), "dragonfly")
    pairs = switch_pairs(plan.fabric)
    at = plan.fabric.hosts_at
    ends = [(next(iter(at[a].values())), next(iter(at[b].values()))) for a, b in pairs]
    assert lengths == [len(minimal.path(a.name, b.name)) - 1 for a, b in ends]


def test_a_damaged_dragonfly_uses_what_remains_or_says_what_is_missing() -> None:
    fabric = load(DRAGONFLY)
    between = [link for link in fabric.links if {link.a, link.b} == {"s1", "s2"}]
    assert len(between) == 1
    local = replace(fabric, links=tuple(link for link in fabric.links if link not in between))
    with pytest.raises(PlanError, match="ugal has no path from s1 to s2 on .* lacks links"):
        make_plan(local, "ugal")
    gone = without_global(fabric)
    with pytest.raises(PlanError, match="ugal has no path from s. to .* lacks links"):
        make_plan(gone, "ugal")
    # With several links between two groups, one can be missing.
    fewer = load("dragonfly,a=4,h=2,p=2,g=5")
    plan = make_plan(without_global(fewer), "ugal")
    assert CheckedPlan(plan).verdict.ok
    assert plan.vcs == 3


def without_global(fabric: Fabric) -> Fabric:
    """Return a dragonfly with four switches in a group without its first global link."""
    group = {switch.name: number // 4 for number, switch in enumerate(fabric.switches)}
    first = next(link for link in fabric.links if group[link.a] != group[link.b])
    return replace(fabric, links=tuple(link for link in fabric.links if link is not first))


@pytest.mark.parametrize("spec", [DRAGONFLY, DRAGONFLY_PLUS, "slimfly,3", "fullmesh,5"])
@pytest.mark.parametrize("pattern", ["shift:3", "uniform", "permutation"])
def test_loads_are_those_of_all_paths(spec: str, pattern: str) -> None:
    plan = make_plan(load(spec), "ugal")
    found = analyse_multipath(plan, pattern_named(pattern), seed=1, seeds=2)
    reference, hosts = reference_of(plan), plan.fabric.hosts
    number = {name: place for place, name in enumerate(found.lines.names())}
    by_hand = {name: np.zeros(len(number)) for name in ("minimal", "valiant")}
    [flows] = pattern_named(pattern).phases(plan.fabric, 1)
    for source, to in flows.tolist():
        ends = hosts[source].switch, hosts[to].switch
        paths = reference.paths(*ends) if ends[0] != ends[1] else [()]
        around = paths[1:] or paths
        for loads, taken in zip(by_hand.values(), (paths[:1], around), strict=True):
            for path in taken:
                for switch, port, _ in path:
                    loads[number[f"{switch}:{port}"]] += 1 / len(taken)
    between = slice(found.lines.switch_lines)
    for name, loads in by_hand.items():
        np.testing.assert_allclose(found.loads[name][between], loads[between])
    half = (by_hand["minimal"] + by_hand["valiant"]) / 2
    np.testing.assert_allclose(found.loads["half"][between], half[between])
    assert found.metrics()["half_max_load"] == round(float(half[between].max()), 6)


def test_the_commands_and_their_json(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    done = run("plan", DRAGONFLY, "--engine", "ugal", "--json", "--out", str(file))
    summary = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (summary["safe"], summary["vcs"], summary["vlans"]) == (True, 3, 10)
    assert (summary["multipath"], summary["max_next_hops"]) == ("ugal", 8)
    assert "rules" not in summary
    listed = json.loads(file.read_text())
    assert listed["over"]["s1"]["s5"] == [2, 3, 4, 5, 6, 7, 8]
    assert listed["intermediate"]["s5"] == 1
    done = run("plan", DRAGONFLY, "--engine", "ugal", "--flow-control", "pause", "--json")
    assert (done.exit_code, json.loads(done.stdout)["safe"]) == (1, False)
    done = run("analyse", DRAGONFLY, "--engine", "ugal", "--pattern", "shift:8", "--json")
    values = json.loads(done.stdout)
    assert values["minimal_max_load"] == 8
    assert values["valiant_max_load"] < values["half_max_load"] < values["minimal_max_load"]


@pytest.mark.parametrize("spec", [DRAGONFLY, "fullmesh,5"])
def test_what_needs_rules_refuses_in_one_line(spec: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "rules")
    for words in (
        ("flows", spec, "--engine", "ugal", "--out", folder),
        ("export", "sonic", spec, "--engine", "ugal", "--out", folder),
        ("up", spec, "--engine", "ugal"),
        ("plan", spec, "--engine", "ugal", "--freeze"),
        ("plan", spec, "--engine", "ugal", "--multipath", "ecmp"),
        ("plan", spec, "--engine", "ugal", "--tagging", "host"),
        ("plan", spec, "--engine", "ugal", "--without", "s1"),
        ("analyse", spec, "--engine", "ugal", "--pattern", "shift:1", "--plot", "a.svg"),
    ):
        done = run(*words)
        assert done.exit_code == 2, words
        assert done.stderr.count("\n") == 1, done.stderr
    with pytest.raises(PlanError, match="lengths of their queues"):
        DesiredState.compute(Config(fabric=spec, engine="ugal"), load(spec))
    with pytest.raises(PlanError, match="would change their VLAN"):
        compile_state(state_of_plan(make_plan(load(spec), "ugal")))


def test_it_is_not_advised() -> None:
    answer = json.loads(run("advise", "fullmesh,5", "--engine", "ugal,updown", "--json").stdout)
    assert answer["engine"] == "updown"
    verdicts = {row["engine"]: row["verdict"] for row in answer["engines"]}
    assert verdicts["ugal"] == "no OpenFlow rules exist for it: it can be simulated"
