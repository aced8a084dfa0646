"""A change of which there is no proof while packets of older rules are under way."""

from __future__ import annotations

import pytest

from knotless.base.errors import PlanError
from knotless.controller.config import Config
from knotless.controller.desired import Desired
from knotless.controller.planning import Task, planned
from knotless.controller.transition import Transition
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES, Failures
from tests.support.transitions import confirm_all

FABRIC = load("ring,4")
DESIRED = Desired.compute(Config(fabric="ring,4"), FABRIC)
CUT = Failures.of(FABRIC, [FABRIC.links[0].name])


def task_of(transition: Transition) -> Task:
    task = transition.task()
    assert task is not None
    return task


@pytest.fixture
def mended() -> Transition:
    """Return a transition after a cut, whose link is back while packets of before are there."""
    transition = Transition(DESIRED)
    confirm_all(transition)
    transition.aim(DESIRED, CUT)
    transition.accept(planned(task_of(transition)))
    while not transition.is_there:
        assert transition.begin()
        confirm_all(transition)
    assert transition.undrained == 1
    transition.aim(DESIRED, NO_FAILURES)
    return transition


def refusal(task: Task) -> str:
    with pytest.raises(PlanError) as raised:
        planned(task)
    return str(raised.value)


def test_it_waits_until_the_packets_have_left(mended: Transition) -> None:
    task = task_of(mended)
    assert mended.refuse(task, refusal(task))
    assert not mended.is_due
    mended.drained()
    assert mended.is_due
    assert planned(task_of(mended)).kind == "intact"


def test_packets_that_leave_while_it_is_planned_are_not_waited_for_again(
    mended: Transition,
) -> None:
    task = task_of(mended)
    reason = refusal(task)
    mended.drained()
    assert not mended.refuse(task, reason)
    assert mended.is_due
    assert mended.problem is None
    assert planned(task_of(mended)).kind == "intact"
