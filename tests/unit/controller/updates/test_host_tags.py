"""Hosts that tag their frames go on with the tags that they were given, whatever fails."""

from __future__ import annotations

import pytest

from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.planning import plan_update
from knotless.controller.updates.state import UpdateState
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES, Failures
from tests.support.transitions import confirm_all


@pytest.mark.parametrize("spec", ["ring,4", "mesh,3,2"])
def test_no_repair_asks_hosts_for_other_tags(spec: str) -> None:
    """In another VLAN generation, what hosts send would not be admitted any more."""
    fabric = load(spec)
    desired = DesiredState.compute(Config(fabric=spec, tagging="host"), fabric)
    for link in fabric.links:
        update = UpdateState(desired)
        confirm_all(update)
        for failures in (Failures.from_names(fabric, [link.name]), NO_FAILURES):
            update.aim(desired, failures)
            task = update.task()
            assert task is not None
            plan = plan_update(task)
            assert [step.tags for step in plan.change.steps if step.tags != task.held.tags] == []
            update.accept(plan)
            while not update.is_there:
                update.begin()
                confirm_all(update)
                update.purged()
                update.quiescent()
