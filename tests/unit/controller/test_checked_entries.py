"""With two planes, frames take the new one when cached entries of its VLANs have been checked."""

from __future__ import annotations

from knotless.base.flow_control import FlowControl
from knotless.controller.config import Config
from knotless.controller.desired import Desired
from knotless.controller.planning import planned
from knotless.controller.transition import Transition
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES
from tests.support.transitions import confirm_all

FABRIC = load("ring,4")
NOW, NEXT = (
    Desired.compute(
        Config(fabric="ring,4", engine="updown", flow_control=FlowControl.PFC, root=root), FABRIC
    )
    for root in ("s1", "s3")
)


def prepared(*, has_caches: bool) -> Transition:
    """Return a change of which all switches have confirmed the first step."""
    transition = Transition(NOW)
    transition.has_caches = has_caches
    confirm_all(transition)
    transition.aim(NEXT, NO_FAILURES)
    task = transition.task()
    assert task is not None
    way = planned(task)
    assert way.change.tier == 2
    transition.accept(way)
    assert transition.begin()
    assert not transition.is_checking  # switches are still at work
    confirm_all(transition)
    return transition


def test_the_next_step_waits_until_entries_are_checked() -> None:
    transition = prepared(has_caches=True)
    assert transition.is_checking
    assert not transition.is_due
    transition.checked()
    assert transition.is_due
    transition.begin()
    confirm_all(transition)
    # What has left the old plane is counted after the entries are checked: see AfterCaches.
    assert transition.is_draining
    assert not transition.is_checking


def test_switches_without_caches_have_nothing_to_check() -> None:
    transition = prepared(has_caches=False)
    assert not transition.is_checking
    assert transition.is_due
