"""Steps while a switch is missing, or another one is in its place: what may it hold?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from knotless.base.errors import PlanError
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.inherited import inherited_rules
from knotless.controller.updates.planning import UpdateTask, plan_update
from knotless.controller.updates.state import UpdateState
from knotless.forwarding.openflow.rules import NO_RULES, SwitchRules
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES, Failures
from tests.support.transitions import confirm_all

FABRIC = load("ring,4")
DESIRED = DesiredState.compute(Config(fabric="ring,4"), FABRIC)
OLDER = DESIRED.rules["s2"]
"""They close a cycle together with what the others get after the cut."""
REFUSAL = "no proven steps as long as s2 may forward by older rules"


@pytest.fixture
def update() -> UpdateState:
    state = UpdateState(DESIRED)
    confirm_all(state)
    return state


def task_after_cut(state: UpdateState, *, failed: str = "s4-s1") -> UpdateTask:
    state.aim(DESIRED, Failures.from_names(FABRIC, [failed]))
    state.quiescent()
    task = state.task()
    assert task is not None
    return task


def read_another(state: UpdateState) -> None:
    """Take over while a switch without rules has taken the place of s2."""
    held = {**DESIRED.rules, "s2": NO_RULES}
    inherited = inherited_rules(DESIRED, NO_FAILURES, held, FABRIC)
    state.inherit(inherited, unread={"s2": NO_RULES})
    for name in ("s1", "s3", "s4"):
        state.confirm(name)


def test_what_was_read_of_another_switch_does_not_replace_what_is_known(
    update: UpdateState,
) -> None:
    """Also when another one is read again: the switch counts as failed until it was read."""
    for _ in range(3):
        read_another(update)
    assert task_after_cut(update, failed="s2").unread == {"s2": (OLDER, NO_RULES)}


def test_the_right_switch_ends_the_doubt(update: UpdateState) -> None:
    read_another(update)
    update.confirm("s2")
    task = task_after_cut(update)
    assert task.unread == {}
    assert plan_update(task).change.proven


def test_a_switch_whose_place_is_contested_forwards_by_what_it_has_confirmed(
    update: UpdateState,
) -> None:
    update.doubt("s2")
    task = task_after_cut(update)
    assert task.unread == {"s2": (OLDER,)}
    with pytest.raises(PlanError, match=REFUSAL):
        plan_update(task)


def test_a_switch_may_hold_what_it_was_sent_and_has_not_confirmed(update: UpdateState) -> None:
    for _ in range(2):
        update.sent("s2", NO_RULES)
    update.doubt("s2")
    assert task_after_cut(update).unread == {"s2": (OLDER, NO_RULES)}


def test_nothing_is_known_of_a_switch_that_has_held_no_rules_of_ours() -> None:
    state = UpdateState(DESIRED)
    state.doubt("s2")
    for name in ("s1", "s3", "s4"):
        state.confirm(name)
    state.progress.confirm("s2")
    assert task_after_cut(state).unread == {}


@pytest.mark.parametrize(
    ("kept", "is_safe"),
    [
        ((NO_RULES,), True),
        ((OLDER,), False),
        ((NO_RULES, OLDER), False),
        ((OLDER, NO_RULES), False),
    ],
)
def test_steps_are_proven_beside_all_that_a_switch_may_hold(
    kept: tuple[SwitchRules, ...], *, is_safe: bool, update: UpdateState
) -> None:
    task = replace(task_after_cut(update), unread={"s2": kept})
    if is_safe:
        assert plan_update(task).change.proven
    else:
        with pytest.raises(PlanError, match=REFUSAL):
            plan_update(task)
