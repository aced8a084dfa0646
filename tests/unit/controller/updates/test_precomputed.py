"""Ways that are planned before they are needed, and the order of steps of a repair in place."""

from __future__ import annotations

import random
from copy import copy
from dataclasses import replace

from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.reconcile import difference
from knotless.controller.updates.planning import Goal, UpdatePlan, plan_update
from knotless.controller.updates.precomputed import PrecomputedRepairs, plan_ahead
from knotless.controller.updates.state import UpdateState
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.topologies import load
from knotless.topologies.failures import Failures
from tests.support.transitions import confirm_all

FABRIC = load("torus,3,3")
DESIRED = DesiredState.compute(Config(fabric="torus,3,3"), FABRIC)


def _ready() -> UpdateState:
    transition = UpdateState(DESIRED)
    for switch in FABRIC.switches:
        transition.confirm(switch.name)
    return transition


def _cut(transition: UpdateState, *links: str) -> UpdatePlan:
    transition.aim(DESIRED, Failures.from_names(FABRIC, links))
    task = transition.task()
    assert task is not None
    update = plan_update(task)
    transition.accept(update)
    return update


def _in_place() -> str:
    """Return a link whose cut takes a step before the new rules."""
    task = _ready().idle_task
    assert task is not None
    for link in FABRIC.links:
        update = plan_update(
            replace(task, goal=Goal(DESIRED, Failures.from_names(FABRIC, [link.name])))
        )
        if update.change.in_place:
            return link.name
    raise AssertionError("no link is repaired in place")


LINK = _in_place()


def _finish(transition: UpdateState) -> None:
    """Take all steps of a change."""
    while not transition.is_there or transition.progress.in_flight:
        if transition.is_due:
            transition.begin()
        confirm_all(transition)
        transition.quiescent()


def _plan_next(ahead: PrecomputedRepairs, transition: UpdateState) -> Goal | None:
    """Plan one way ahead, and return its goal; None: all are known."""
    task = ahead.next(transition.idle_task)
    if task is None:
        return None
    ahead.keep(task, ahead.packing.pack(plan_ahead(task)))
    return task.goal


def test_each_link_is_planned_once_and_found_when_it_fails() -> None:
    ahead, transition = PrecomputedRepairs(), _ready()
    assert ahead.as_json(transition.idle_task) == {"ways": 0, "complete": False}
    goals: list[Goal] = []
    while (goal := _plan_next(ahead, transition)) is not None:
        goals.append(goal)
    assert [goal.failures.names for goal in goals] == [(link.name,) for link in FABRIC.links]
    assert ahead.as_json(transition.idle_task) == {"ways": len(goals), "complete": True}
    for goal in goals:
        failing = copy(transition)
        failing.aim(DESIRED, goal.failures)
        task = failing.task()
        assert task is not None
        precomputed, expected = ahead.find(task), plan_update(task)
        assert precomputed is not None
        assert precomputed.goal == expected.goal
        assert precomputed.change.tier == expected.change.tier
        steps = [[step.rules for step in update.change.steps] for update in (precomputed, expected)]
        assert steps[0] == steps[1]


def test_a_way_refers_to_the_rules_that_switches_hold() -> None:
    ahead, transition = PrecomputedRepairs(), _ready()
    goal = _plan_next(ahead, transition)
    assert goal is not None
    held = transition.idle_task
    assert held is not None
    transition.aim(DESIRED, goal.failures)
    task = transition.task()
    assert task is not None
    update = ahead.find(task)
    assert update is not None
    assert update.goal.desired is DESIRED
    assert update.change.before.rules is held.held.rules
    first = update.change.steps[0].rules
    assert {first[name] is rules for name, rules in held.held.rules.items()} == {True, False}


def test_ways_from_other_rules_are_not_used() -> None:
    ahead, transition = PrecomputedRepairs(), _ready()
    task = ahead.next(transition.idle_task)
    assert task is not None
    assert _plan_next(ahead, transition) == task.goal
    _cut(transition, LINK)
    _finish(transition)
    idle = transition.idle_task
    assert idle is not None
    assert ahead.find(replace(idle, goal=task.goal)) is None
    second = ahead.next(idle)
    assert second is not None
    assert second.goal.serves_first, "a second failure is answered from what is installed"
    assert set(second.goal.failures.names) > {LINK}


def test_ways_are_kept_until_switches_have_the_same_rules_again() -> None:
    ahead, transition = PrecomputedRepairs(), _ready()
    while _plan_next(ahead, transition):
        pass
    for round_ in range(4):
        _cut(transition, LINK)
        _finish(transition)
        ahead.next(transition.idle_task)
        transition.aim(DESIRED, Failures())
        task = transition.task()
        assert task is not None
        transition.accept(plan_update(task))
        _finish(transition)
        left = 0
        while _plan_next(ahead, transition):
            left += 1
        # Routes change between two planes, so the second time is the first with other rules.
        assert left == (len(FABRIC.links) if round_ == 0 else 0)


def test_the_intact_plan_is_recognised_in_each_plane_after_any_link() -> None:
    fabric = load("torus,4,4,hosts=4")
    desired = DesiredState.compute(Config(fabric="torus,4,4,hosts=4"), fabric)
    ahead, transition = PrecomputedRepairs(), UpdateState(desired)
    for switch in fabric.switches:
        transition.confirm(switch.name)
    rng, seen = random.Random(1), list[Generation]()  # noqa: S311 - repeatable, not secret
    for _ in range(10):
        task = ahead.next(transition.idle_task)
        assert task is not None
        is_known = bool(ahead.as_json(transition.idle_task)["ways"])
        assert is_known == (task.held in seen)
        if not is_known:
            seen.append(task.held)
            ahead.keep(task, b"a way")
        for failures in (Failures.from_names(fabric, [rng.choice(fabric.links).name]), Failures()):
            transition.aim(desired, failures)
            task = transition.task()
            assert task is not None
            transition.accept(plan_update(task))
            _finish(transition)
            ahead.next(transition.idle_task)
    # Two planes, each with the same priorities as the one before, or with others.
    assert len(seen) == 4


def test_what_a_step_changes_in_a_switch_depends_on_what_it_holds() -> None:
    transition = _ready()
    update = _cut(transition, LINK)
    nothing = SwitchRules(())
    for changes in update.differences:
        before = {name: transition.progress.wanted(name) for name in changes}
        transition.begin()
        assert set(changes) == set(transition.progress.waiting)
        for name, held in before.items():
            wanted = transition.progress.wanted(name)
            assert transition.progress.changes(name, held) is changes[name]
            assert changes[name] == difference(held, wanted)
            assert transition.progress.changes(name, nothing) == difference(nothing, wanted)
        confirm_all(transition)


def test_new_rules_are_installed_when_all_switches_drop_what_leads_to_the_link() -> None:
    transition = _ready()
    update = _cut(transition, LINK)
    first = set(transition.begin())
    assert first
    assert not transition.is_due
    assert not transition.is_serving
    confirm_all(transition)
    assert transition.is_due, "nothing is to be waited for"
    transition.begin()
    confirm_all(transition)
    assert transition.is_serving
    assert transition.is_there == (len(update.change.steps) == 2)


def test_a_link_that_returns_during_the_first_step_ends_the_change() -> None:
    transition = _ready()
    _cut(transition, LINK)
    transition.begin()
    transition.progress.link_returned()
    confirm_all(transition)
    assert not transition.is_there
    assert transition.begin() == {}, "the steps that are left are not proven with the link"
    transition.aim(DESIRED, Failures())
    task = transition.task()
    assert task is not None
    assert len(task.in_flight) == 1
    assert task.plan is None
    update = plan_update(task)
    transition.accept(update)
    while not transition.is_there:
        transition.begin()
        confirm_all(transition)
        if transition.progress.awaits_quiescence:
            transition.quiescent()
    assert transition.problem is None


def test_a_link_that_returns_later_does_not_matter() -> None:
    transition = _ready()
    _cut(transition, LINK)
    transition.begin()
    confirm_all(transition)
    transition.progress.link_returned()
    assert transition.is_due
    assert transition.begin()
