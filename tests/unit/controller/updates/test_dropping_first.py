"""Two-phase repairs whose first step drops what leads to failed links, in case these return."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from knotless.base.flow_control import FlowControl
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.planning import UpdatePlan, plan_update
from knotless.controller.updates.state import UpdateState
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules, Group, Output, Rule, SwitchRules
from knotless.routing.given_paths import with_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.fabric import Host, Link, Switch
from knotless.topologies.failures import Failures, usable
from knotless.verification.changes.in_place import without_ports
from knotless.verification.changes.proof import ProofContext
from tests.support.transitions import confirm_all

MESH = load("mesh,3,3")
DESIRED = DesiredState.compute(Config(fabric="mesh,3,3"), MESH)
FIRST, SECOND = "s6-s9", "s1-s4"
PORTS = {("s1", 3), ("s4", 4)}
"""Of the second link that fails."""


def fail(state: UpdateState, *names: str) -> UpdatePlan:
    state.aim(DESIRED, Failures.from_names(MESH, names))
    task = state.task()
    assert task is not None
    plan = plan_update(task)
    state.accept(plan)
    return plan


@pytest.fixture
def update() -> UpdateState:
    """Return the state after a first failure, whose repair is complete."""
    state = UpdateState(DESIRED)
    state.is_settling = True
    confirm_all(state)
    fail(state, FIRST)
    while not state.is_there:
        state.begin()
        confirm_all(state)
    state.quiescent()
    return state


def _sends(rules: FabricRules) -> set[tuple[str, int]]:
    """Return the ports to which rules of the output table and groups send."""
    return {
        (name, action.port)
        for name, held in rules.items()
        for actions in (
            *(rule.actions for rule in held.rules),
            *(bucket for group in held.groups for bucket in group.buckets),
        )
        for action in actions
        if isinstance(action, Output)
    }


def test_a_further_failure_is_served_before_older_packets_have_left(update: UpdateState) -> None:
    assert _sends(update.progress.held.rules) >= PORTS
    change = fail(update, FIRST, SECOND).change
    assert (change.drops_first, change.in_place, change.tier) == (True, False, 2)
    assert change.proven
    assert change.serves_at_once
    assert [step.await_quiescence for step in change.steps] == [False, True, False]
    for step in change.steps[:2]:
        assert not _sends(step.rules) & PORTS


def test_other_steps_are_planned_if_a_link_returns_during_the_first_one(
    update: UpdateState,
) -> None:
    fail(update, FIRST, SECOND)
    assert update.begin()
    update.progress.link_returned()
    confirm_all(update)
    assert not update.progress.has_plan
    assert update.task() is not None


def test_a_link_that_returns_after_the_first_step_changes_nothing(update: UpdateState) -> None:
    fail(update, FIRST, SECOND)
    assert update.begin()
    confirm_all(update)
    update.progress.link_returned()
    assert update.progress.has_plan
    assert update.progress.is_next_due


def test_a_link_that_may_carry_frames_all_the_time_is_no_failure_of_this_kind(
    update: UpdateState,
) -> None:
    update.aim(DESIRED, Failures.from_names(MESH, [FIRST, SECOND]))
    task = update.task()
    assert task is not None
    change = plan_update(replace(task, carrying=True)).change
    assert change.proven
    assert not change.drops_first


def test_it_is_not_taken_if_packets_from_before_the_failure_could_close_a_cycle(
    update: UpdateState, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = []

    def is_acyclic_without(_: ProofContext, empty: set[Link], __: list[Generation]) -> bool:
        judged.append({link.name for link in empty})
        return False

    monkeypatch.setattr(ProofContext, "is_acyclic_without", is_acyclic_without)
    change = fail(update, FIRST, SECOND).change
    assert judged[0] == {"s1:3-s4:4"}
    assert change.proven
    assert not change.drops_first


def test_packets_that_have_crossed_a_link_before_it_failed_still_wait() -> None:
    """The only packets that close the cycle of a ring come over a link that is down now."""
    ring = load("ring,3")
    pendant = Link("s1", 9, "s4", 2)
    fabric = replace(
        ring,
        grid=None,
        switches=(*ring.switches, Switch("s4", 4)),
        hosts=(*ring.hosts, Host("h4", "02:00:00:00:04:01", "10.0.4.1", "s4", 1)),
        links=(*ring.links, pendant),
    )
    plan = make_plan(fabric, "updown")
    names = list(fabric.switch_index)
    between = dict(
        zip(
            zip(plan.channels.tail.tolist(), plan.channels.head.tolist(), strict=True),
            range(len(plan.channels)),
            strict=True,
        )
    )
    ways = ["s2 s3 s1", "s3 s1 s2", "s4 s1 s2 s3", "s1 s2", "s1 s3", "s2 s3", "s3 s1", "s1 s4"]
    given = {
        (way[0], way[-1]): [(between[ends], 0) for ends in pairwise(way)]
        for way in ([names.index(name) for name in text.split()] for text in ways)
    }
    rules = Generation(compile_rules(with_paths(plan, given)))
    whole = ProofContext(fabric, FlowControl.PAUSE)
    down = Failures.from_names(fabric, [pendant.name])
    assert ProofContext(usable(fabric, down), FlowControl.PAUSE).judge([rules]).outcome.acyclic
    assert not whole.is_acyclic_without({pendant}, [rules])
    assert whole.is_acyclic_without({ring.links[0]}, [rules])
    assert not whole.is_acyclic_without((), [rules])


def test_nothing_else_is_dropped_with_what_leads_to_a_port() -> None:
    match = ()
    held = SwitchRules(
        (Rule(3, 1, match, (Output(2), Output(3))), Rule(3, 0, match, (Output(3),), goto=4)),
        (Group(1, ((Output(2),), (Output(3),))), Group(2, ((Output(2),), (Output(3),)), (2, 3))),
    )
    left = without_ports({"s1": held, "s2": held}, {("s1", 2)})
    assert left["s2"] is held
    assert left["s1"].rules == (Rule(3, 1, match, (Output(3),)), held.rules[1])
    assert left["s1"].groups == (Group(1, ((Output(3),),)), held.groups[1])
