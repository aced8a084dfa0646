"""What an update leads to: what failures have cut is served first, and returns follow later."""

from __future__ import annotations

import pytest

from knotless.base.errors import PlanError
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.outage import outage_now
from knotless.controller.updates.planning import Goal, UpdatePlan, plan_update
from knotless.controller.updates.report import routes_as_json
from knotless.controller.updates.serving import next_goals
from knotless.controller.updates.state import UpdateState
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES, Failures
from knotless.verification.changes.record import change_record

MESH = load("mesh,3,3")
DESIRED = DesiredState.compute(Config(fabric="mesh,3,3"), MESH)
DRAINED = DesiredState.compute(Config(fabric="mesh,3,3"), MESH, ("s8-s9",))
FIRST, SECOND = "s1-s2", "s5-s6"


def failed(*names: str) -> Failures:
    return Failures.from_names(MESH, names)


def goals(goal: Goal, reached: Goal, *, done: bool = True, calm: bool = False) -> tuple[Goal, ...]:
    return next_goals(goal, reached, MESH, is_complete=done, is_settling=not calm)


ONE, BOTH = Goal(DESIRED, failed(FIRST)), Goal(DESIRED, failed(FIRST, SECOND))
SERVED = Goal(DESIRED, failed(FIRST, SECOND), serves_first=True)
INTACT = Goal(DESIRED)


def test_the_first_failure_of_the_configured_plan_needs_no_return() -> None:
    assert goals(ONE, INTACT) == (ONE,)
    assert goals(Goal(DRAINED, failed(FIRST)), Goal(DRAINED))[0].serves_first


def test_a_further_failure_is_served_first() -> None:
    assert goals(BOTH, ONE) == (SERVED, BOTH)
    amid = Goal(DESIRED, failed(FIRST), serves_first=True)
    assert goals(ONE, INTACT, done=False) == (amid, ONE)
    drained = Goal(DRAINED, failed(FIRST))
    assert goals(drained, INTACT) == (amid, drained), "the request of an operator comes after it"


def test_routes_that_serve_all_stay_until_failures_have_settled() -> None:
    assert goals(BOTH, SERVED) == (SERVED,)
    assert goals(INTACT, ONE) == (ONE,)
    assert goals(BOTH, SERVED, done=False, calm=True) == (SERVED,), "they are served first"
    assert goals(BOTH, SERVED, calm=True) == (BOTH, SERVED)
    assert goals(INTACT, SERVED, calm=True) == (INTACT,)
    assert goals(Goal(DRAINED), ONE) == (Goal(DRAINED),)


def test_a_link_that_returns_is_used_at_once_if_nothing_else_connects_hosts() -> None:
    corner = Goal(DESIRED, failed("s1-s2", "s1-s4"))
    assert goals(ONE, corner) == (ONE,)
    assert goals(Goal(DESIRED, failed("s1-s4")), ONE) == (Goal(DESIRED, failed("s1-s4")),)


@pytest.fixture
def update() -> UpdateState:
    state = UpdateState(DESIRED)
    state.is_settling = True
    confirm(state)
    return state


def confirm(state: UpdateState) -> None:
    for switch in MESH.switches:
        state.confirm(switch.name)


def planned(state: UpdateState) -> UpdatePlan:
    task = state.task()
    assert task is not None
    return plan_update(task)


def take(state: UpdateState, plan: UpdatePlan) -> None:
    state.accept(plan)
    while not state.is_there:
        state.begin()
        confirm(state)
        if state.progress.awaits_quiescence:
            state.quiescent()
    state.quiescent()


def test_pairs_are_down_from_their_failure_until_a_step_has_served_them(
    update: UpdateState,
) -> None:
    assert outage_now(update, None, 1.0) is None
    update.aim(DESIRED, failed(FIRST))
    unknown = outage_now(update, None, 2.0)
    assert unknown is not None
    assert (unknown.pairs, unknown.since_s) == (None, 2.0)
    plan = planned(update)
    assert plan.repair is not None
    update.accept(plan)
    known = outage_now(update, unknown, 3.0)
    assert known is not None
    assert known.pairs == known.most == plan.repair.moved > 0
    assert known.as_json(3.5) == {
        "pairs": known.pairs,
        "seconds": 1.5,
        "until_step": plan.change.served_by_step,
    }
    for number in range(1, len(plan.change.steps) + 1):
        update.begin()
        assert outage_now(update, known, 4.0) == known, "switches have not confirmed the step"
        confirm(update)
        if plan.change.down[number] == 0:
            break
    assert outage_now(update, known, 5.0) is None
    proof = change_record(plan.change)
    assert (proof["down_pairs"], proof["down_until_step"]) == (plan.change.down[0], number)


def test_a_plan_that_is_refused_leaves_nobody_knows_how_many_down(update: UpdateState) -> None:
    update.aim(DESIRED, failed(FIRST))
    task = update.task()
    assert task is not None
    update.refuse(task, "there is no proven order of steps")
    outage = outage_now(update, None, 2.0)
    assert outage is not None
    assert outage.pairs is None


def test_the_routes_of_repairs_stay_if_others_would_drop_frames_until_all_is_mended(
    update: UpdateState,
) -> None:
    for count in (1, 2):
        update.aim(DESIRED, failed(*(FIRST, SECOND)[:count]))
        take(update, planned(update))
    shown = routes_as_json(update)
    assert (shown["serves_first"], shown["settling"], shown["changing"]) == (True, True, False)
    assert update.task() is None
    update.is_settling = False
    update.aim(DESIRED, failed(FIRST, SECOND))
    task = update.task()
    assert task is not None
    assert task.goal == BOTH
    with pytest.raises(PlanError, match="would drop frames"):
        plan_update(task)
    assert not update.refuse(task, "it would drop frames")
    update.aim(DESIRED, failed(FIRST, SECOND))
    assert (update.reached, update.is_there, update.problem) == (SERVED, True, None)
    update.aim(DESIRED, NO_FAILURES)
    plan = planned(update)
    assert not plan.change.dropped
    take(update, plan)
    assert update.reached == INTACT
    assert routes_as_json(update)["serves_first"] is False


def begun(state: UpdateState, *names: str) -> None:
    """Begin the next step of the repair of these failures; no switch confirms it."""
    state.aim(DESIRED, failed(*names))
    state.accept(planned(state))
    assert state.begin()


def test_a_failure_is_served_although_a_switch_has_not_confirmed_the_step_before(
    update: UpdateState,
) -> None:
    """Its step is proven beside both generations of rules that the switch may hold."""
    intact = update.in_fabric.held
    begun(update, FIRST)
    repaired, late = update.in_fabric.held, min(update.progress.waiting)
    for name in update.progress.waiting - {late}:
        update.confirm(name)
    update.aim(DESIRED, failed(FIRST, SECOND))
    assert update.is_due
    plan = planned(update)
    assert plan.goal == SERVED
    assert plan.change.serves_at_once
    rules = [generation.rules for generation in plan.change.steps[0].proof.generations]
    assert intact.rules in rules
    assert repaired.rules in rules
    update.accept(plan)
    changed = update.begin()
    assert update.progress.waiting == {late, *changed}, (
        "it holds the rules of one of three generations"
    )
    for name in changed.keys() - {late}:
        update.confirm(name)
    assert not update.is_serving
    update.confirm(late)
    assert update.is_serving


def test_a_failure_that_cannot_be_served_yet_is_tried_again_when_the_step_is_confirmed(
    update: UpdateState,
) -> None:
    begun(update, FIRST)
    update.aim(DESIRED, failed(FIRST, SECOND))
    task = update.task()
    assert task is not None
    assert task.is_amid_step
    assert not update.refuse(task, "it cannot be served before this step ends")
    assert (update.is_due, update.problem, update.progress.has_plan) == (False, None, True)
    update.aim(DESIRED, failed(FIRST, SECOND))
    assert not update.is_due, "nothing has changed"
    confirm(update)
    again = update.task()
    assert again is not None
    assert again.goal == SERVED
    # A reason that was true before all had confirmed says nothing.
    assert not update.refuse(task, "it cannot be served before this step ends")
    assert update.is_due


def test_a_plan_that_arrives_when_all_have_confirmed_begins_all_the_same(
    update: UpdateState,
) -> None:
    begun(update, FIRST)
    update.aim(DESIRED, failed(FIRST, SECOND))
    plan = planned(update)
    confirm(update)
    take(update, plan)
    assert update.reached == SERVED


def test_what_is_drained_does_not_overtake_a_step(update: UpdateState) -> None:
    begun(update, FIRST)
    update.aim(DRAINED, failed(FIRST))
    assert not update.is_due
    assert update.task() is None


def test_the_first_rules_are_not_overtaken() -> None:
    """Nobody knows what switches hold that have not confirmed them."""
    state = UpdateState(DESIRED)
    state.aim(DESIRED, failed(FIRST))
    assert not state.is_due
