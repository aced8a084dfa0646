"""The way to a goal: the repair of the configured plan, and proven steps to its rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_

from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.controller.desired import Desired
from knotless.controller.existing import Existing
from knotless.controller.steps import Changes, difference
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.routing.plan import Plan
from knotless.routing.repair import Repair, repair
from knotless.topologies.drained import Avoided, avoided
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import NO_FAILURES, Failures, host_parts, usable
from knotless.verification.changes.change import Change, Installed
from knotless.verification.changes.compact import compact
from knotless.verification.changes.proof import Circumstances
from knotless.verification.changes.tiers import plan_change, plan_in_place
from knotless.verification.failover import diverted


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
    """The way to a goal: the repair of its plan, and the steps to that.

    ``differences`` are, for each step, the changes of each switch that holds exactly the rules of
    the step before.
    """

    goal: Goal
    repair: Repair | None
    change: Change
    differences: tuple[Mapping[str, Changes], ...]

    @property
    def rules_changed(self) -> int:
        """The rules and groups that switches are told to add, modify or delete, in total."""
        parts = (
            step for of in self.differences for changes in of.values() for step in changes.steps
        )
        return sum(map(len, parts))

    @property
    def kind(self) -> str:
        """What became of the plan: ``intact``, or the kind of :class:`routing.repair.Repair`."""
        return self.repair.kind if self.repair else "intact"


@dataclass(frozen=True)
class Task:
    """The input of :func:`planned`: what switches hold, and where to go.

    ``existing`` is given while the fabric changes: there is more than in the fabric of the goal, or
    switches hold rules of another one.
    """

    goal: Goal
    held: Generation
    undrained: tuple[Generation, ...]
    flow_control: FlowControl
    """That of the links."""
    plan: Plan | None = None
    """What the rules implement that switches hold, if they hold exactly those of a plan."""
    existing: Existing | None = None

    @property
    def whole(self) -> Fabric:
        """Everything that exists, with what has failed."""
        return self.existing.fabric if self.existing else self.goal.desired.fabric

    @property
    def failures(self) -> Failures:
        """What has failed of :attr:`whole`."""
        return self.existing.failures if self.existing else self.goal.failures


def planned(task: Task) -> Planned:
    """Return the proven steps of a task; for a thread of its own, since it can take seconds.

    Raises
    ------
    PlanError
        There is no repair, no proven order of steps, or hosts would have to change their tags.

    """
    _refuse_to_separate(task)
    intact, whole, failures = task.goal.desired.plan, task.whole, task.failures
    unused = task.goal.avoided.failures
    repaired = repair(intact, unused) if unused else None
    plan = repaired.plan if repaired else intact
    if plan.host_tags() != task.held.tags:
        if task.existing:
            raise PlanError(
                "hosts that tag their frames would need new tags; restart the controller to change"
                " the fabric, or use 'tagging: switch'"
            )
        raise PlanError(
            "the hosts would have to change their VLAN tags, which the controller cannot do;"
            " use 'tagging: switch'"
        )
    older = (*task.undrained, task.held)
    *undrained, held = now = [_diverted(whole, failures, of) for of in older]
    if all(map(is_, now, older)):
        older = ()  # nothing is diverted
    before = Installed(
        usable(whole, failures),
        held.rules,
        task.flow_control,
        held.tags,
        intact.multicast,
        tuple(undrained),
        plan=task.plan if held is task.held and not task.existing else None,
        whole=whole if failures else None,
        staying=task.existing.staying if task.existing else None,
    )
    change = plan_change(before, plan)
    if failures and not _is_safe_if_links_return(change, whole, older):
        found = None if change.in_place else plan_in_place(before, plan)
        if found is not None and _is_safe_if_links_return(found, whole, older):
            change = found
        else:
            change = plan_change(replace(before, fabric=whole, plan=None), plan)
    small = compact(change)
    differences = _differences(task.held.rules, small)
    return Planned(task.goal, repaired, small, differences)


def _differences(held: FabricRules, change: Change) -> tuple[Mapping[str, Changes], ...]:
    """Return what each step changes in each switch."""
    found, nothing = [], SwitchRules(())
    for step in change.steps:
        names = (name for name, of in step.rules.items() if held.get(name) is not of)
        found.append(
            {name: difference(held.get(name, nothing), step.rules[name]) for name in names}
        )
        held = step.rules
    return tuple(found)


def _refuse_to_separate(task: Task) -> None:
    """Raise PlanError if hosts that stay need what goes away until something new works."""
    staying = None if task.existing is None else task.existing.staying
    if staying is None:
        return
    goal = task.goal
    now = host_parts(task.whole, task.failures)
    then = host_parts(goal.desired.fabric, goal.failures)
    first: dict[int, tuple[str, int]] = {}
    for host, part in zip(goal.desired.fabric.hosts, then, strict=True):
        if host.name not in staying:
            continue
        other, known = first.setdefault(now[task.whole.host_index[host.name]], (host.name, part))
        if known != part:
            raise PlanError(
                f"without what is to be removed, {other} and {host.name} could not reach each other"
                f" before this works: {', '.join(goal.failures.names)}"
            )


def _diverted(fabric: Fabric, failures: Failures, of: Generation) -> Generation:
    """Return what switches do by themselves in failures, if they hold these rules."""
    rules = diverted(fabric, of.rules, failures)
    return of if rules is of.rules else Generation(rules, of.tags)


def _is_safe_if_links_return(change: Change, fabric: Fabric, older: tuple[Generation, ...]) -> bool:
    """Tell whether no step can deadlock if links that are down carry frames again before its end.

    Rules of older generations may still forward to them. A change in place is abandoned if they
    return during its first step; after that, no rule forwards to them. The proofs have what
    switches do during the failures; before and after these they do ``older``, if that differs.
    """
    circumstances = Circumstances(fabric, change.before.flow_control, change.before.multicast)
    steps = change.steps[:1] if change.in_place else change.steps
    generations = ((*older, *step.proof.generations) for step in steps)
    return all(circumstances.judge(of).outcome.acyclic for of in generations)
