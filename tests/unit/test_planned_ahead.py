"""Ways that are planned before they are needed, and the order of steps of a repair in place."""

from __future__ import annotations

from dataclasses import replace

from controller.ahead import Ahead
from controller.config import Config
from controller.desired import Desired
from controller.planning import Goal, Planned, planned
from controller.transition import Transition
from topologies import load
from topologies.failures import Failures

FABRIC = load("torus,3,3")
DESIRED = Desired.compute(Config(fabric="torus,3,3"), FABRIC)


def _ready() -> Transition:
    transition = Transition(DESIRED)
    for switch in FABRIC.switches:
        transition.confirm(switch.name)
    return transition


def _confirm_all(transition: Transition) -> None:
    for name in transition.waiting:
        transition.confirm(name)


def _cut(transition: Transition, *links: str) -> Planned:
    transition.aim(DESIRED, Failures.of(FABRIC, links))
    task = transition.task()
    assert task is not None
    way = planned(task)
    transition.accept(way)
    return way


def _in_place() -> str:
    """Return a link whose cut takes a step before the new rules."""
    task = _ready().idle_task
    assert task is not None
    for link in FABRIC.links:
        way = planned(replace(task, goal=Goal(DESIRED, Failures.of(FABRIC, [link.name]))))
        if way.change.in_place:
            return link.name
    raise AssertionError("no link is repaired in place")


LINK = _in_place()


def test_each_link_is_planned_once_and_found_when_it_fails() -> None:
    ahead, transition = Ahead(), _ready()
    goals: list[Goal] = []
    while (task := ahead.next(transition.idle_task)) is not None:
        goals.append(task.goal)
        ahead.keep(task, planned(task) if len(goals) == 1 else None)
    assert [goal.failures.names for goal in goals] == [(link.name,) for link in FABRIC.links]
    transition.aim(DESIRED, goals[0].failures)
    task = transition.task()
    assert task is not None
    assert (found := ahead.find(task)) is not None
    assert found.change.rules_changed == planned(task).change.rules_changed


def test_ways_from_other_rules_are_not_used() -> None:
    ahead, transition = Ahead(), _ready()
    task = ahead.next(transition.idle_task)
    assert task is not None
    ahead.keep(task, planned(task))
    _cut(transition, LINK)
    while not transition.is_there:
        transition.begin()
        _confirm_all(transition)
        if transition.is_draining:
            transition.drained()
    transition.drained()
    idle = transition.idle_task
    assert idle is not None
    assert ahead.find(replace(idle, goal=task.goal)) is None
    back = ahead.next(idle)
    assert back is not None
    assert back.goal.failures.names == (), "first what happens if the link returns"


def test_new_rules_are_installed_when_all_switches_drop_what_leads_to_the_link() -> None:
    transition = _ready()
    way = _cut(transition, LINK)
    first = set(transition.begin())
    assert first
    assert not transition.is_due
    assert not transition.is_serving
    _confirm_all(transition)
    assert transition.is_due, "nothing is to be waited for"
    transition.begin()
    _confirm_all(transition)
    assert transition.is_serving
    assert transition.is_there == (len(way.change.steps) == 2)


def test_a_link_that_returns_during_the_first_step_ends_the_change() -> None:
    transition = _ready()
    _cut(transition, LINK)
    transition.begin()
    transition.link_returned()
    _confirm_all(transition)
    assert not transition.is_there
    assert transition.begin() == {}, "the steps that are left are not proven with the link"
    transition.aim(DESIRED, Failures())
    task = transition.task()
    assert task is not None
    assert len(task.undrained) == 1
    assert task.plan is None
    way = planned(task)
    transition.accept(way)
    while not transition.is_there:
        transition.begin()
        _confirm_all(transition)
        if transition.is_draining:
            transition.drained()
    assert transition.problem is None


def test_a_link_that_returns_later_does_not_matter() -> None:
    transition = _ready()
    _cut(transition, LINK)
    transition.begin()
    _confirm_all(transition)
    transition.link_returned()
    assert transition.is_due
    assert transition.begin()
