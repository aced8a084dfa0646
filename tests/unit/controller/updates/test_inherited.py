"""The rules that a starting controller finds: kept, stepped away from, or replaced at once."""

from __future__ import annotations

import pytest

from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.inherited import (
    inherited_rules,
    replaced_if_unsafe,
    unused_links,
)
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES, Failures

FABRIC = load("ring,4")
SAFE = DesiredState.compute(Config(fabric="ring,4", engine="updown"), FABRIC)
UNSAFE = DesiredState.compute(
    Config(fabric="ring,4", engine="minimal", select="low-port", allow_deadlock=True), FABRIC
)


@pytest.mark.parametrize(("desired", "held"), [(SAFE, UNSAFE), (UNSAFE, SAFE)])
def test_rules_that_can_deadlock_are_replaced_at_once(
    desired: DesiredState, held: DesiredState
) -> None:
    inherited = inherited_rules(desired, NO_FAILURES, held.rules, FABRIC)
    assert inherited.plan is None
    replaced = replaced_if_unsafe(inherited, FABRIC)
    assert replaced.is_replaced
    assert replaced.plan is desired.routed
    assert replaced.held.rules == desired.rules


def test_what_has_failed_is_avoided_at_once_too() -> None:
    failed = Failures.from_names(FABRIC, ["s1-s2"])
    inherited = inherited_rules(SAFE, failed, UNSAFE.rules, FABRIC)
    replaced = replaced_if_unsafe(inherited, FABRIC)
    assert replaced.goal.failures == failed
    assert "s1:2-s2:3" in unused_links(FABRIC, replaced.held.rules)


def test_safe_rules_of_no_goal_stay_until_there_are_proven_steps() -> None:
    held = {**SAFE.rules, "s2": SwitchRules(SAFE.rules["s2"].rules[:-1])}
    inherited = inherited_rules(SAFE, NO_FAILURES, held, FABRIC)
    assert inherited.plan is None
    assert replaced_if_unsafe(inherited, FABRIC) is inherited
