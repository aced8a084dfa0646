"""The next target of an update: the goal, or first the pairs that failures have cut. Pure.

The goal is a function of the configured plan and of all that has failed. After a second failure it
moves pairs that the first repair has moved before, and takes two VLAN generations. So a failure is
answered from the plan that is installed, and the goal follows when failures have settled.
"""

from __future__ import annotations

from collections.abc import Sequence

from knotless.controller.updates.planning import Goal, InstalledPlan, UpdatePlan
from knotless.forwarding.openflow.vlan_generations import vlan_generation_of
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures, host_parts

_MAX_PLANS = 3
"""Plans that may admit frames, if one failure follows the other: more are not tried."""


def next_goals(
    goal: Goal, reached: Goal, fabric: Fabric, *, is_complete: bool, is_settling: bool
) -> tuple[Goal, ...]:
    """Return where the next steps may lead, the best first, from the plan of ``reached``.

    ``goal`` is that of the configuration and of what has failed, and ``fabric`` what exists.
    ``is_complete``: all steps to ``reached`` are. While ``is_settling``, routes that serve all
    pairs stay; and as long as something has failed, if a return would drop frames.
    """
    if goal == reached:
        return (goal,)
    both = Failures.from_names(fabric, {*goal.failures.names, *reached.failures.names})
    if _separate_more(fabric, both, goal.failures):
        return (goal,)  # what has returned is needed at once
    is_same = goal.desired is reached.desired
    if goal.failures.dead_links(fabric) - reached.failures.dead_links(fabric):
        if is_complete and is_same and not reached.after(both).serves_first:
            return (goal,)
        return Goal(reached.desired, both, serves_first=True), goal
    if not is_same:
        return (goal,)
    if is_settling or (reached.serves_first and not is_complete):
        return (reached,)
    return (goal, reached) if goal.failures else (goal,)


def admitting_plans(
    update: UpdatePlan, steps_left: int, replaced: Sequence[InstalledPlan]
) -> tuple[InstalledPlan, ...]:
    """Return the plans by which frames are admitted amid an update, the most likely one first.

    ``replaced`` are those by which they were when it began: with two VLAN generations they are
    until the second step.
    """
    steps = update.change.steps
    if not steps:
        return tuple(replaced)
    new = InstalledPlan(update.new_plan, vlan_generation_of(steps[-1].rules, steps[-1].tags))
    is_switched_over = steps_left < max(1, len(steps) - 1)
    both = (new, *replaced) if is_switched_over else (*replaced, new)
    return both[:_MAX_PLANS]


def _separate_more(fabric: Fabric, more: Failures, fewer: Failures) -> bool:
    """Return whether some hosts cannot reach each other only because more has failed."""
    return more != fewer and host_parts(fabric, more) != host_parts(fabric, fewer)
