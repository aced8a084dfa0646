"""The way to a goal: the repair of the configured plan, and proven steps to its rules. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from common.errors import PlanError
from controller.desired import Desired
from forwarding.openflow.reader import Generation
from routing.plan import Plan
from routing.repair import Repair, repair
from topologies.drained import Avoided, avoided
from topologies.fabric import Fabric
from topologies.failures import NO_FAILURES, Failures, usable
from verification.changes.change import Change, Installed
from verification.changes.compact import compact
from verification.changes.proof import Circumstances
from verification.changes.tiers import plan_change, plan_in_place


@dataclass(frozen=True)
class Goal:
    """What the fabric shall do: the configured plan, repaired for what has failed or is drained."""

    desired: Desired
    failures: Failures = NO_FAILURES

    @cached_property
    def avoided(self) -> Avoided:
        """What routes avoid; frames may still be on drained links, which is not so if they fail."""
        return avoided(self.desired.fabric, self.failures, self.desired.drained)


@dataclass(frozen=True)
class Planned:
    """The way to a goal: the repair of its plan, and the steps to that."""

    goal: Goal
    repair: Repair | None
    change: Change

    @property
    def kind(self) -> str:
        """What became of the plan: ``intact``, or the kind of :class:`routing.repair.Repair`."""
        return self.repair.kind if self.repair else "intact"


@dataclass(frozen=True)
class Task:
    """The input of :func:`planned`: what switches hold, and where to go."""

    goal: Goal
    held: Generation
    undrained: tuple[Generation, ...]
    flow_control: str
    """That of the links."""
    plan: Plan | None = None
    """What the rules implement that switches hold, if they hold exactly those of a plan."""


def planned(task: Task) -> Planned:
    """Return the proven steps of a task; for a thread of its own, since it can take seconds.

    Raises
    ------
    PlanError
        There is no repair, no proven order of steps, or hosts would have to change their tags.

    """
    intact = task.goal.desired.plan
    unused = task.goal.avoided.failures
    repaired = repair(intact, unused) if unused else None
    plan = repaired.plan if repaired else intact
    if plan.host_tags() != task.held.tags:
        raise PlanError(
            "the hosts would have to change their VLAN tags, which the controller cannot do;"
            " use 'tagging: switch'"
        )
    before = Installed(
        usable(intact.fabric, task.goal.failures),
        task.held.rules,
        task.flow_control,
        task.held.tags,
        intact.multicast,
        task.undrained,
        plan=task.plan,
        whole=intact.fabric if task.goal.failures else None,
    )
    change = plan_change(before, plan)
    if task.goal.failures and not _is_safe_if_links_return(change, intact.fabric):
        found = None if change.in_place else plan_in_place(before, plan)
        if found is not None and _is_safe_if_links_return(found, intact.fabric):
            change = found
        else:
            change = plan_change(replace(before, fabric=intact.fabric, plan=None), plan)
    return Planned(task.goal, repaired, compact(change))


def _is_safe_if_links_return(change: Change, fabric: Fabric) -> bool:
    """Tell whether no step can deadlock if links that are down carry frames again before its end.

    Rules of older generations may still forward to them. A change in place is abandoned if they
    return during its first step; after that, no rule forwards to them.
    """
    circumstances = Circumstances(fabric, change.before.flow_control, change.before.multicast)
    steps = change.steps[:1] if change.in_place else change.steps
    return all(circumstances.judge(step.proof.generations).verdict.acyclic for step in steps)
