"""Adaptive plans: delivered and safe on generated fabrics, and what damage makes of them."""

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
from knotless.base.flow_control import FlowControl
from knotless.base.switch_settings import read
from knotless.cli.main import main
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.compiler import compile_state
from knotless.routing.plan import Plan, make_plan
from knotless.routing.plan_json import plan_to_json
from knotless.topologies import Fabric, load
from knotless.topologies.formats.files import to_json
from knotless.verification.check import Verdict, verdict_of
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.dependencies import blocking_steps, removal_order, waits_of
from knotless.verification.verdict_parts import ACYCLIC, ESCAPE
from tests.support.fabric_strategies import (
    cluster_fabrics,
    graphs,
    grids,
    hyperxs,
    without_a_switch,
)
from tests.support.fabric_strategies import cut as without_links
from tests.support.fabric_strategies import thinned as without_hosts
from tests.support.reference import Node, greatest_blocking_set
from tests.support.reference_plans import NextHops, Packet, node_called

FABRICS = st.one_of(
    grids(),
    graphs(),
    hyperxs(),
    without_hosts(without_links(grids())),
    without_hosts(without_a_switch(grids())),
    without_links(hyperxs()),
    cluster_fabrics(),
    without_a_switch(cluster_fabrics()),
)


def run(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(arguments))


def without_escape(plan: Plan) -> Plan:
    """Return the plan with the next hops on virtual channel 0 alone."""
    assert plan.next_hops is not None
    sets = plan.next_hops.on_priority(0)
    none = np.zeros(len(sets.channels), dtype=np.uint8)
    return replace(plan, choice=plan.choice.with_next_hops(replace(sets, priorities=none)))


def on_one_vc(plan: Plan) -> Plan:
    """Return the plan with its escape on virtual channel 0, too."""
    assert plan.next_hops is not None
    none = np.zeros(len(plan.next_hops.channels), dtype=np.uint8)
    sets = replace(plan.next_hops, priorities=none)
    return replace(plan, choice=plan.choice.with_next_hops(sets))


def reference_of(plan: Plan) -> NextHops:
    return NextHops(to_json(plan.fabric), plan_to_json(plan, {}))


def switch_pairs(fabric: Fabric) -> list[tuple[str, str]]:
    hosts = fabric.hosts
    return sorted({(a.switch, b.switch) for a in hosts for b in hosts if a.switch != b.switch})


def blocked_by_hand(plan: Plan) -> set[Node]:
    """Return the greatest set that blocks itself under PFC, broadcasts included.

    By the reference interpreter; asserts that every choice arrives.
    """
    reference = reference_of(plan)
    for at, goal in switch_pairs(plan.fabric):
        assert reference.outcomes((at, 0), Packet(goal)) == {(goal,)}
    waits = set(reference.waits)
    trees, priorities, tail = plan.routes.tree_channels, plan.routes.tree_priorities, plan.channels
    for source, to in np.argwhere(trees >= 0).tolist():
        above = int(tail.tail[trees[source, to]])
        if trees[source, above] >= 0:
            ends = [(source, above), (source, to)]
            held, requested = (
                node_called(plan.channels.name(int(trees[end]), int(priorities[end])))
                for end in ends
            )
            waits.add((held, frozenset([requested])))
    return greatest_blocking_set(waits)


def blocked_by_core(plan: Plan) -> set[Node]:
    """Return the same by the state, and check the certificate of what is not blocked."""
    state = state_of_plan(plan)
    _, edges, waits = waits_of(state, FlowControl.PFC)
    order = removal_order(edges, waits)
    all_waits = [(holds, [requests]) for holds, requests in edges.tolist()]
    all_waits += [(wait.holds, wait.requests) for wait in waits]
    held = {holds for holds, _ in all_waits}
    removed: set[int] = set()
    for node in order:
        for holds, requests in all_waits:
            assert holds != node or any(r in removed or r not in held for r in requests)
        removed.add(node)
    steps = blocking_steps(edges, waits)
    members = {step.holds for step in steps}
    assert bool(steps) == (removed < held)
    for step in steps:
        assert (step.holds, step.requests) in all_waits
        assert set(step.requests) <= members
    return {node_called(plan.channels.name(*divmod(node, 16))) for node in held - removed}


def judged(plan: Plan) -> Verdict:
    """Return the verdict under PFC, which the reference interpreter must confirm."""
    verdict = verdict_of(state_of_plan(plan), "pfc")
    blocked = blocked_by_hand(plan)
    assert blocked_by_core(plan) == blocked
    assert verdict.safe is (not blocked)
    assert {node_called(name) for name in verdict.blocked} <= blocked
    assert len(verdict.witnesses) == len(verdict.blocked)
    return verdict


@pytest.mark.examples(0.4)
@given(FABRICS, st.sampled_from([None, 2, 3]))
def test_everything_arrives_and_nothing_can_deadlock(fabric: Fabric, vcs: int | None) -> None:
    plan = make_plan(fabric, "adaptive", vcs=vcs)
    verdict = judged(plan)
    assert verdict.ok
    assert (verdict.undelivered, verdict.broadcasts_undelivered, verdict.problems) == (0, 0, [])
    assert verdict.theorem == (ACYCLIC if verdict.acyclic else ESCAPE)
    assert plan.vcs <= (vcs or 3)
    summary = CheckedPlan(plan).summary()
    assert summary["safe"] is True
    assert summary["minimal"] is True or (plan.next_hops is not None and plan.next_hops.stays)
    if plan.vcs == 1:
        assert verdict.acyclic


@pytest.mark.examples(0.4)
@given(FABRICS, st.sampled_from([without_escape, on_one_vc]))
def test_damaged_plans_are_judged_as_the_interpreter_does(fabric: Fabric, damage: object) -> None:
    plan = make_plan(fabric, "adaptive")
    assert callable(damage)
    damaged = damage(plan)
    if damage is on_one_vc and plan.next_hops is not None and plan.next_hops.stays:
        return  # without a virtual channel of their own, frames leave a longer path again
    verdict = judged(damaged)
    if plan.vcs == 1:
        assert verdict.safe


@pytest.mark.parametrize("spec", ["ring,6", "mesh,3,3", "torus,4,4", "torus,5,5", "hyperx,S=3x3"])
@pytest.mark.parametrize("damage", [without_escape, on_one_vc])
def test_without_its_escape_a_plan_is_unsafe_with_a_witness(spec: str, damage: object) -> None:
    assert callable(damage)
    verdict = judged(damage(make_plan(load(spec), "adaptive")))
    assert not verdict.safe
    assert verdict.theorem is None
    assert "CAN DEADLOCK under PFC" in verdict.text
    names = set(verdict.blocked)
    for witness in verdict.witnesses:
        assert witness.held in names
        assert set(witness.wanted.split(" or ")) <= names


@pytest.mark.parametrize("spec", ["ring,6", "mesh,3,3", "torus,4,4", "hyperx,S=3x3"])
def test_frames_that_move_at_random_freeze_only_without_the_escape(spec: str) -> None:
    plan = make_plan(load(spec), "adaptive")
    pairs = switch_pairs(plan.fabric)
    assert not any(reference_of(plan).freezes(pairs, seed, frames=400) for seed in range(12))
    broken = reference_of(without_escape(plan))
    assert any(broken.freezes(pairs, seed, frames=400) for seed in range(12))


@pytest.mark.parametrize("spec", ["ring,6", "mesh,3,3", "torus,4,4", "hyperx,S=3x3"])
def test_an_escape_does_not_help_where_priorities_pause_together(spec: str) -> None:
    plan = make_plan(load(spec), "adaptive")
    state = state_of_plan(plan)
    verdict = verdict_of(state, "pause")
    assert (verdict.safe, verdict.acyclic, verdict.theorem) == (False, False, None)
    assert verdict.blocked == verdict.cycle
    assert verdict_of(state, "none").safe


POOL = """
lossless: [0, 1]
pools:
  shared: {side: ingress, bytes: 100000, headroom_bytes: 100000}
ingress:
  - {priorities: [0, 1], pool: shared, reserved_bytes: %d, alpha: 1, headroom_bytes: 9000}
"""


@pytest.mark.parametrize(("reserve", "safe"), [(1522, True), (1521, False)])
def test_nor_where_ingress_buffers_have_no_reserve(
    reserve: int,
    safe: bool,
    tmp_path: Path,
) -> None:
    (tmp_path / "switch.yaml").write_text(POOL % reserve)
    switches = read(tmp_path / "switch.yaml")
    checked = CheckedPlan(make_plan(load("torus,4,4"), "adaptive"), switches)
    verdict = checked.verdict
    assert (verdict.safe, verdict.acyclic) == (safe, False), verdict.text
    assert verdict.theorem == (ESCAPE if safe else None)
    assert bool(verdict.witnesses) is not safe


def test_what_no_switch_pauses_is_free_for_ever(tmp_path: Path) -> None:
    plan = without_escape(make_plan(load("ring,6"), "adaptive"))
    for lossless, safe in ((0, False), (3, True)):
        (tmp_path / "switch.yaml").write_text(f"lossless: [{lossless}]\n")
        assert CheckedPlan(plan, read(tmp_path / "switch.yaml")).verdict.safe is safe


@pytest.mark.parametrize(
    ("spec", "vcs", "stays"),
    [
        ("fattree2,4", 1, False),
        ("clos3,4", 1, False),
        ("fullmesh,6", 1, False),
        ("mesh,4,4", 2, False),
        ("torus,4,4", 2, False),
        ("torus,3,4,2", 2, False),
        ("torus,5,5", 3, False),
        ("hyperx,S=4x4", 2, False),
        ("irregular-b", 2, True),
        ("dragonfly,a=4,h=2,p=2", 2, True),
    ],
)
def test_virtual_channels(spec: str, vcs: int, stays: bool) -> None:
    plan = make_plan(load(spec), "adaptive")
    assert plan.next_hops is not None
    assert (plan.vcs, plan.next_hops.stays) == (vcs, stays)
    if vcs > 1:
        with pytest.raises(PlanError, match="needs 2 virtual channels on .*, 1 are allowed"):
            make_plan(load(spec), "adaptive", vcs=1)


def test_a_set_has_the_shortest_paths_first_and_the_escape_last() -> None:
    plan = make_plan(load("torus,5,5"), "adaptive")
    assert plan.next_hops is not None
    # From s1 to s8 two steps of x and one of y: x first, on the second VC of a ring not wrapped.
    names = [plan.channels.name(*hop) for hop in plan.next_hops.hops_at(0, 7)]
    assert sorted(names[:2]) == ["s1:2/0", "s1:4/0"]
    assert names[2:] == ["s1:2/2"]
    # From s5 to s7 the path passes the wrap-around link: the first VC until then.
    assert [plan.channels.name(*hop) for hop in plan.next_hops.hops_at(4, 6)][-1] == "s5:2/1"
    assert [plan.channels.name(*hop) for hop in plan.next_hops.hops_at(5, 6)][-1] == "s6:2/2"


def test_the_command_and_its_json(tmp_path: Path) -> None:
    done = run("plan", "torus,4,4", "--engine", "adaptive", "--json")
    summary = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (summary["acyclic"], summary["safe"], summary["theorem"]) == (False, True, ESCAPE)
    assert summary["cycle"]
    assert summary["blocked"] == []
    assert "rules" not in summary
    done = run("plan", "torus,4,4", "--engine", "adaptive", "--flow-control", "pause", "--json")
    assert (done.exit_code, json.loads(done.stdout)["safe"]) == (1, False)
    done = run("plan", "torus,4,4", "--engine", "adaptive", "--explain")
    assert "no set of these can block itself: the 112 that packets hold" in done.stdout
    done = run("analyse", "torus,4,4", "--engine", "adaptive", "--pattern", "shift:5", "--json")
    assert json.loads(done.stdout)["split_max_load"] <= 2
    file = tmp_path / "plan.json"
    assert run("plan", "ring,4", "--engine", "adaptive", "--out", str(file)).exit_code == 0
    assert json.loads(file.read_text())["next_hops"]["s1"]["s3"][-1] == "s1:2/1"


@pytest.mark.parametrize("spec", ["torus,4,4", "fattree2,4"])
def test_what_needs_rules_refuses_in_one_line(spec: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "rules")
    for words in (
        ("flows", spec, "--engine", "adaptive", "--out", folder),
        ("export", "sonic", spec, "--engine", "adaptive", "--out", folder),
        ("up", spec, "--engine", "adaptive"),
        ("plan", spec, "--engine", "adaptive", "--freeze"),
        ("plan", spec, "--engine", "adaptive", "--multipath", "ecmp"),
        ("plan", spec, "--engine", "adaptive", "--tagging", "host"),
        ("plan", spec, "--engine", "adaptive", "--without", "s1"),
    ):
        done = run(*words)
        assert done.exit_code == 2, words
        assert done.stderr.count("\n") == 1, done.stderr
    with pytest.raises(PlanError, match="OpenFlow switches choose on arrival"):
        compile_state(state_of_plan(make_plan(load(spec), "adaptive")))


def test_no_engine_without_rules_is_advised() -> None:
    answer = json.loads(run("advise", "torus,4,4", "--engine", "adaptive,updown", "--json").stdout)
    assert answer["engine"] == "updown"
    verdicts = {row["engine"]: row["verdict"] for row in answer["engines"]}
    assert verdicts["adaptive"] == "no OpenFlow rules exist for it: it can be simulated"
