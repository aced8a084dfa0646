"""With two planes, frames take the new one when cached entries of its VLANs have been checked."""

from __future__ import annotations

from knotless.base.flow_control import FlowControl
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.planning import plan_update
from knotless.controller.updates.state import UpdateState
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES
from tests.support.transitions import confirm_all

FABRIC = load("ring,4")
NOW, NEXT = (
    DesiredState.compute(
        Config(fabric="ring,4", engine="updown", flow_control=FlowControl.PFC, root=root), FABRIC
    )
    for root in ("s1", "s3")
)


def prepared(*, has_caches: bool) -> UpdateState:
    """Return a change of which all switches have confirmed the first step."""
    transition = UpdateState(NOW)
    transition.progress.purges_megaflows = has_caches
    confirm_all(transition)
    transition.aim(NEXT, NO_FAILURES)
    task = transition.task()
    assert task is not None
    update = plan_update(task)
    assert update.change.tier == 2
    transition.accept(update)
    assert transition.begin()
    assert not transition.progress.awaits_purge  # switches are still at work
    confirm_all(transition)
    return transition


def test_the_next_step_waits_until_entries_are_checked() -> None:
    transition = prepared(has_caches=True)
    assert transition.progress.awaits_purge
    assert not transition.is_due
    transition.purged()
    assert transition.is_due
    transition.begin()
    confirm_all(transition)
    # What has left the old plane is counted after the entries are checked: see AfterPurge.
    assert transition.progress.awaits_quiescence
    assert not transition.progress.awaits_purge


def test_switches_without_caches_have_nothing_to_check() -> None:
    transition = prepared(has_caches=False)
    assert not transition.progress.awaits_purge
    assert transition.is_due
