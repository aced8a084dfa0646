"""Backups: the choice, their rules, and what a controller makes of them. Failures: see property."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3

from knotless.base.errors import PlanError, RuleError
from knotless.base.flow_control import FlowControl
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.openflow.messages import encode
from knotless.controller.openflow.records import GROUP_DESC
from knotless.controller.openflow.replies import read_group
from knotless.controller.reconcile import FoundGroup, GroupChange
from knotless.controller.updates.planning import Goal, UpdateTask, plan_update
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.failover import cubes
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.reader import Generation, state_of_rules
from knotless.forwarding.openflow.rules import Group, Output, SwitchRules
from knotless.forwarding.openflow.unused_addresses import masks_of
from knotless.forwarding.openflow.vlan_generations import VlanGeneration, joined, rules_in
from knotless.routing.failover.reach import Reach
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.topologies.failures import Failures
from knotless.verification.changes.planner import between_plans
from knotless.verification.failover import coverage
from tests.support.cycles import has_cycle
from tests.support.openflow_messages import group_entry
from tests.support.ryu_messages import written_by_ryu


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(load("torus,3,3,hosts=2"), "dl", vcs=2, protection="fast-failover")


def test_rules_of_protected_plans_do_what_the_plan_says(plan: Plan) -> None:
    rules = compile_rules(plan)
    assert state_of_plan(plan).difference(state_of_rules(plan.fabric, rules)) == ""
    plain = compile_rules(make_plan(plan.fabric, "dl", vcs=2))
    assert plain.total < rules.total < 3 * plain.total
    assert rules.groups > plain.groups
    assert not rules.is_compiled_alike(plain)
    assert rules.is_compiled_alike(compile_rules(plan))
    assert rules.total == sum(len(switch_rules.rules) for switch_rules in rules.values())
    assert rules.groups == sum(len(switch_rules.groups) for switch_rules in rules.values())


def test_ofctl_text_is_read_back(plan: Plan) -> None:
    watched = 0
    for rules in compile_rules(plan).values():
        flows, groups = write(rules)
        assert parse(flows, groups) == rules
        watched += groups.count("watch_port:")
    assert watched > 0
    with pytest.raises(RuleError, match="watch_port"):
        parse("", "group_id=1,type=ff,bucket=actions=output:1")
    dumped = "group_id=1,type=ff,bucket=bucket_id:0,watch_port:2,actions=output:2"
    assert parse("", dumped).groups == (Group(1, ((Output(2),),), (2,)),)


def test_groups_are_encoded_as_by_ryu_and_read_back(plan: Plan) -> None:
    groups = {
        group
        for switch_rules in compile_rules(plan).values()
        for group in switch_rules.groups
        if group.watch
    }
    assert groups
    for group in groups:
        for change in (GroupChange("add", group), GroupChange("delete", group)):
            assert encode(change, 7) == written_by_ryu(change, 7)
        entry = group_entry(encode(GroupChange("add", group), 7))
        assert GROUP_DESC.read(entry).type == ofproto_v1_3.OFPGT_FF
        assert read_group(entry) == FoundGroup(group.group_id, group)


def test_only_the_first_bucket_whose_port_is_up_is_applied() -> None:
    group = Group(1, ((Output(2),), (Output(3),)), (2, 3))
    assert group.live() == Group(1, ((Output(2),),))
    assert group.live({2}) == Group(1, ((Output(3),),))
    assert group.live({2, 3}) == Group(1, ())
    plain = SwitchRules((), (Group(1, ((Output(2),),)),))
    assert plain.live({2}) is plain


def test_backups_move_to_another_vlan_generation_with_their_plan(plan: Plan) -> None:
    rules = compile_rules(plan)
    moved = rules_in(rules, VlanGeneration(1))
    expected = coverage(plan.fabric, rules, FlowControl.PFC)
    assert expected.acyclic
    assert expected.share == 1
    assert coverage(plan.fabric, moved, FlowControl.PFC) == expected
    assert coverage(plan.fabric, joined(rules, moved), FlowControl.PFC) == expected


def test_plans_without_room_or_proof_are_refused() -> None:
    with pytest.raises(PlanError, match="can deadlock, so no backup path"):
        compile_rules(make_plan(load("ring,5"), "minimal", protection="fast-failover"))


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("ring,4", {"engine": "dl", "vcs": 2}),
        ("torus,4,4", {"engine": "dor"}),
        ("mesh,3,3", {"engine": "updown"}),
    ],
)
def test_the_repair_takes_over_in_proven_steps(spec: str, options: dict[str, Any]) -> None:
    config = Config.model_validate({**options, "protection": "fast-failover"})
    desired = DesiredState.compute(config, load(spec))
    assert desired.summary["failover_acyclic"] is True
    flow_control = desired.plan.flow_control
    for name in ("s1-s2", "s2"):
        goal = Goal(desired, Failures.from_names(desired.fabric, [name]))
        held = Generation(desired.rules)
        change = plan_update(UpdateTask(goal, held, (), flow_control, desired.routed)).change
        assert change.steps
        for step in change.steps:
            assert step.proof.acyclic
            if change.tier < 3:
                assert step.proof.lost == 0
        first = change.steps[0].proof.generations[0].rules
        neighbour = next(rules for name, rules in first.items() if rules != desired.rules[name])
        assert not any(group.watch for group in neighbour.groups), "diverted packets count"
        if change.tier == 2:
            labelled = {
                r.key for switch_rules in desired.rules.values() for r in switch_rules.rules
            }
            kept = {
                r.key for switch_rules in change.steps[0].rules.values() for r in switch_rules.rules
            }
            assert labelled <= kept, "diverted packets find their rules until the last step"


def test_masks_match_what_they_shall_and_nothing_else() -> None:
    rng = random.Random(5)  # noqa: S311 - a sample, not a secret
    for _ in range(200):
        addresses = rng.sample(range(64), rng.randint(2, 20))
        place = rng.randint(1, len(addresses) - 1)
        masks = masks_of(addresses)
        parts = [(address & masks[address], masks[address]) for address in addresses]
        wanted, unwanted = parts[:place], parts[place:]
        matched = cubes(wanted, unwanted)
        assert len(matched) <= len(wanted)

        def matches(address: int, some: list[tuple[int, int]]) -> bool:
            return any(address & mask == value & mask for value, mask in some)

        others = cubes(unwanted, wanted, matched)
        for address in range(64):  # used ones, and unused ones that belong to them
            assert not (matches(address, matched) and matches(address, others))
            if matches(address, parts):
                assert matches(address, matched) is matches(address, wanted)
                assert matches(address, others) is matches(address, unwanted)
        for address in addresses:
            assert sum(matches(address, [part]) for part in parts) == 1


def test_a_growing_graph_refuses_just_the_edges_that_close_a_cycle() -> None:
    rng = random.Random(6)  # noqa: S311 - a sample, not a secret
    for _ in range(50):
        graph, edges = Reach.from_edges(9, ()), set[tuple[int, int]]()
        for _ in range(40):
            edge = (rng.randrange(9), rng.randrange(9))
            assert graph.closes(*edge) == has_cycle({*edges, edge})
            if not graph.closes(*edge):
                graph.add(*edge)
                edges.add(edge)
        assert Reach.from_edges(9, edges).after == graph.after
    with pytest.raises(ValueError, match="cycle"):
        Reach.from_edges(2, [(0, 1), (1, 0)])


def test_a_change_leaves_room_for_the_priority_of_backups() -> None:
    fabric = load("ring,5")
    one, other = (
        make_plan(fabric, engine, vcs=4, flow_control="pfc", protection="fast-failover")
        for engine in ("sbp", "dl")
    )
    for old, new in ((one, other), (other, one)):
        change = between_plans(old, new)
        assert all(step.proof.acyclic for step in change.steps)
        assert coverage(fabric, change.steps[-1].rules, FlowControl.PFC).acyclic


def test_a_change_to_the_same_routes_with_backups_installs_these() -> None:
    fabric = load("ring,4")
    bare, protected = (
        make_plan(fabric, "updown", protection=protection)
        for protection in ("none", "fast-failover")
    )
    for old, new in ((bare, protected), (protected, bare)):
        change = between_plans(old, new)
        assert change.steps[-1].rules == compile_rules(new)
        assert change.rules_changed > 0
    assert between_plans(protected, protected).tier == 0
