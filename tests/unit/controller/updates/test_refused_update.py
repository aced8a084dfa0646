"""A change of which there is no proof while packets of older rules are under way."""

from __future__ import annotations

import pytest

from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.planning import UpdateTask, plan_update
from knotless.controller.updates.state import UpdateState
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES, Failures
from tests.support.transitions import confirm_all

FABRIC = load("ring,4")
DESIRED = DesiredState.compute(Config(fabric="ring,4"), FABRIC)
CUT = Failures.from_names(FABRIC, [FABRIC.links[0].name])
REASON = "no order of steps could be proven for this change"


def task_of(transition: UpdateState) -> UpdateTask:
    task = transition.task()
    assert task is not None
    return task


@pytest.fixture
def mended() -> UpdateState:
    """Return a transition after a cut, whose link is back while packets of before are there."""
    transition = UpdateState(DESIRED)
    confirm_all(transition)
    transition.aim(DESIRED, CUT)
    transition.accept(plan_update(task_of(transition)))
    while not transition.is_there:
        assert transition.begin()
        confirm_all(transition)
    assert len(transition.progress.in_flight) == 1
    transition.aim(DESIRED, NO_FAILURES)
    return transition


def test_it_waits_until_the_packets_have_left(mended: UpdateState) -> None:
    task = task_of(mended)
    assert mended.refuse(task, REASON)
    assert not mended.is_due
    mended.quiescent()
    assert mended.is_due
    assert plan_update(task_of(mended)).kind == "intact"


def test_packets_that_leave_while_it_is_planned_are_not_waited_for_again(
    mended: UpdateState,
) -> None:
    task = task_of(mended)
    reason = REASON
    mended.quiescent()
    assert not mended.refuse(task, reason)
    assert mended.is_due
    assert mended.problem is None
    assert plan_update(task_of(mended)).kind == "intact"


def test_a_goal_that_is_reached_again_is_no_problem(mended: UpdateState) -> None:
    """A link that is back is used again only later; until then its failure comes once more."""
    task = task_of(mended)
    assert mended.refuse(task, REASON)
    assert mended.problem
    mended.aim(DESIRED, CUT)
    assert mended.is_there
    assert mended.problem is None
    mended.aim(DESIRED, NO_FAILURES)
    assert mended.problem is None
    assert mended.is_due  # it is tried again


def test_the_problem_of_a_goal_stays_until_another_plan_is_known(mended: UpdateState) -> None:
    task = task_of(mended)
    assert mended.refuse(task, REASON)
    reason = mended.problem
    mended.aim(DESIRED, NO_FAILURES)
    mended.quiescent()
    assert mended.problem == reason
    mended.accept(plan_update(task_of(mended)))
    assert mended.problem is None
