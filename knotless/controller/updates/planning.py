"""The update plan to a goal: the repair of the configured plan, and proven steps to it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_

from knotless.base.errors import FabricError, KnotlessError, PlanError, faults_in_one_line
from knotless.base.flow_control import FlowControl
from knotless.controller.desired import DesiredState
from knotless.controller.reconcile import Changes, difference
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import NO_RULES, FabricRules, SwitchRules
from knotless.forwarding.openflow.vlan_generations import VlanGeneration
from knotless.routing.multicast import MulticastGroup
from knotless.routing.plan import Plan
from knotless.routing.repair import Repair, repair
from knotless.topologies.drained import Avoided, avoided
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import NO_FAILURES, Failures, host_parts, usable
from knotless.topologies.union import described, hosts_of_both, removed, union
from knotless.verification.changes.change import Change, Installed, Step, compact
from knotless.verification.changes.outage import pairs_down
from knotless.verification.changes.planner import plan_change, plan_dropping_first, plan_in_place
from knotless.verification.changes.proof import ProofContext
from knotless.verification.failover import after_failover


@dataclass(frozen=True)
class FabricUnion:
    """All switches, hosts and links that exist, and what has failed of them.

    While a fabric changes that is the old one and the new one together. Parts that come are used
    when their rules are in place; parts that go away exist until no frame can be on them any more.

    ``staying`` are the hosts that were there when the fabric last was settled, and stay, by name.
    It is None while nothing comes or goes away.
    """

    fabric: Fabric
    failures: Failures = NO_FAILURES
    staying: frozenset[str] | None = None

    def extended(self, fabric: Fabric) -> FabricUnion:
        """Return it with the parts of another fabric, which is the new goal.

        Raises
        ------
        FabricError
            Not all of these parts can exist at the same time, or no host stays.

        """
        whole, staying = union(self.fabric, fabric), self.staying
        failures = Failures.from_names(whole, self.failures.names)
        if removed(self.fabric, fabric) or removed(fabric, self.fabric):
            both = hosts_of_both(self.fabric, fabric)
            staying = both if staying is None else staying & both
            if not staying:
                raise FabricError(
                    f"no host stays in {fabric.name}; restart the controller to begin with it"
                )
        return FabricUnion(whole, failures, staying)

    def failed(self, names: set[str]) -> FabricUnion:
        """Return it with these failures, and no others."""
        return replace(self, failures=Failures.from_names(self.fabric, names))

    def failures_in(self, fabric: Fabric) -> Failures:
        """Return what has failed of the fabric of a goal."""
        return self.failures if self.staying is None else self.failures.within(fabric)

    def leaving(self, fabric: Fabric) -> list[str]:
        """Return what exists and is not in a fabric, one text for each part."""
        return [described(part) for part in removed(self.fabric, fabric)]


@dataclass(frozen=True)
class Goal:
    """The configured plan, repaired for what has failed or is drained.

    ``serves_first``: the plan that is installed is repaired instead, so that only pairs of hosts
    move whose paths the failures have cut.
    """

    desired: DesiredState
    failures: Failures = NO_FAILURES
    serves_first: bool = False

    @cached_property
    def avoided(self) -> Avoided:
        """The parts that routes avoid; frames may be on drained links, but not on failed ones."""
        return avoided(self.desired.fabric, self.failures, self.desired.drained)

    def after(self, failures: Failures) -> Goal:
        """Return the goal when all switches hold the rules of this one, and more has failed.

        As long as the configured plan is installed as it is, both repairs are the same.
        """
        is_repaired = self.serves_first or bool(self.avoided.failures)
        return Goal(self.desired, failures, serves_first=is_repaired)


@dataclass(frozen=True)
class InstalledPlan:
    """A plan by which switches forward, and the VLAN generation of its rules."""

    plan: Plan
    vlan_generation: VlanGeneration


@dataclass(frozen=True)
class UpdatePlan:
    """The repair of a goal's plan, and the steps to the rules of that.

    ``differences`` are, for each step, the changes of each switch that holds exactly the rules of
    the step before.
    """

    goal: Goal
    repair: Repair | None
    change: Change
    differences: tuple[Mapping[str, Changes], ...]

    @property
    def new_plan(self) -> Plan:
        """The plan whose rules switches hold after the last step."""
        return self.repair.plan if self.repair else self.goal.desired.routed

    @property
    def rules_changed(self) -> int:
        """The rules and groups that switches are told to add, modify or delete, in total."""
        return sum(
            len(step)
            for by_switch in self.differences
            for changes in by_switch.values()
            for step in changes.steps
        )

    @property
    def summary(self) -> str:
        """One line for the log."""
        avoided = (*self.goal.failures.names, *self.goal.desired.drained)
        moved = f", {self.repair.moved} pairs of hosts moved" if self.repair else ""
        return (
            f"routes without {', '.join(avoided) or 'nothing'}: {self.kind}{moved}; tier"
            f" {self.change.tier}, {self.rules_changed} rules changed"
        )

    @property
    def kind(self) -> str:
        """``intact``, or the kind of the :class:`~knotless.routing.repair.Repair` of the plan."""
        return self.repair.kind if self.repair else "intact"


@dataclass(frozen=True)
class UpdateTask:
    """The input of :func:`plan_update`: what switches hold, and where to go.

    ``union`` is given while the fabric changes: there is more than in the fabric of the goal, or
    switches hold rules of another one. Packets of the generations ``in_flight`` may still be in the
    fabric. ``flow_control`` is that of the links. ``plan`` is the one whose rules switches hold, if
    they hold exactly those of a plan, or guards besides. ``carrying``: a link that counts as failed
    may still carry frames, because it has a carrier, and only probes say that it has failed.
    ``unread`` are switches that are missing, or in whose place another one may be connected, and
    all that they may hold: they do not take part in steps, and may go on forwarding by that.
    ``multicast`` are the groups of the rules that switches hold, and of those in flight.
    ``installed`` are the plans by which frames are admitted now, the most likely one first: more
    than one in the middle of an update. ``is_amid_step``: the current step has not ended.
    ``unconfirmed`` is how many of the last generations some switches have not confirmed, so that
    they may hold an older one. ``is_optional``: there is another goal if no step without dropped
    frames leads to this one.
    ``reported`` is what is known to carry no frames: :attr:`failures` also has links that carry
    frames again, but count as failed until the last change is complete or routes have avoided them.
    """

    goal: Goal
    held: Generation
    in_flight: tuple[Generation, ...]
    flow_control: FlowControl
    plan: Plan | None = None
    union: FabricUnion | None = None
    carrying: bool = False
    unread: Mapping[str, tuple[SwitchRules, ...]] = field(default_factory=dict)
    multicast: tuple[MulticastGroup, ...] = ()
    installed: tuple[InstalledPlan, ...] = ()
    is_amid_step: bool = False
    unconfirmed: int = 0
    is_optional: bool = False
    reported: Failures = NO_FAILURES

    @property
    def whole(self) -> Fabric:
        """Everything that exists, with what has failed."""
        return self.union.fabric if self.union else self.goal.desired.fabric

    @property
    def failures(self) -> Failures:
        """The failures of :attr:`whole`."""
        return self.union.failures if self.union else self.goal.failures


@faults_in_one_line("planning")
def plan_update(task: UpdateTask) -> UpdatePlan:
    """Return the update plan of a task; for a thread of its own, since it can take seconds.

    Raises
    ------
    PlanError
        There is no repair, no proven order of steps, or hosts would have to change their tags.
    FaultError
        An engine, or Knotless, fails: the line says how, the log where.

    """
    if task.goal.serves_first:
        return _plan_to_serve(task)
    _refuse_to_separate(task)
    unused = task.goal.avoided.failures
    repaired = repair(task.goal.desired.plan, unused) if unused else None
    plan = _plan_steps(task, repaired)
    if task.is_optional and plan.change.dropped:
        raise PlanError("all pairs are served, and the steps to other routes would drop frames")
    return plan


def _plan_to_serve(task: UpdateTask) -> UpdatePlan:
    """Return the update plan that moves the pairs that are cut, in one step if that is proven.

    If they must wait until packets of older rules have left, the goal is that of the configured
    plan where this takes fewer phases; and amid a step, all must wait for its end in any case.
    """
    plans, error = list[UpdatePlan](), PlanError("no plan is installed that could be repaired")
    for installed in task.installed:
        try:
            repaired = _repair_of_installed(installed.plan, task.goal.avoided.failures)
            plan = _plan_steps(task, repaired, installed)
        except KnotlessError as reason:
            error = PlanError(str(reason))
            continue
        if plan.change.serves_at_once:
            return plan
        plans.append(plan)
    if task.is_amid_step:
        raise PlanError("what failures have cut cannot be served before this step ends") from error
    goal = replace(task.goal, serves_first=False)
    try:
        plans.append(plan_update(replace(task, goal=goal, is_optional=False)))
    except KnotlessError as reason:
        error = PlanError(str(reason))
    if not plans:
        raise error
    return min(plans, key=lambda plan: plan.change.tier)


def _repair_of_installed(plan: Plan, unused: Failures) -> Repair:
    """Return the repair of an installed plan, in which what had failed before is unused already.

    Raises PlanError if others than the pairs that are cut would all have to move.
    """
    repaired = repair(replace(plan, failures=NO_FAILURES), unused)
    if repaired.kind in ("replanned", "updown"):
        raise PlanError("the failures leave no path beside those that are kept")
    return repaired


def _plan_steps(
    task: UpdateTask, repaired: Repair | None, installed: InstalledPlan | None = None
) -> UpdatePlan:
    """Return the steps to a repair of the configured plan, or of one that is ``installed``."""
    whole, failures = task.whole, task.failures
    plan = repaired.plan if repaired else task.goal.desired.plan
    if plan.host_tags() != task.held.tags:
        if task.union:
            raise PlanError(
                "hosts that tag their frames would need new tags; restart the controller to change"
                " the fabric, or use 'tagging: switch'"
            )
        raise PlanError(
            "the hosts would have to change their VLAN tags, which the controller cannot do;"
            " use 'tagging: switch'"
        )
    older = (*task.in_flight, task.held)
    *in_flight, held = now = [_after_failover(whole, failures, rules) for rules in older]
    if all(map(is_, now, older)):
        older = ()  # no backup path is in use
    unavoided = whole if older else _with_unavoided_failures(task)
    before = Installed(
        usable(whole, failures),
        held.rules,
        task.flow_control,
        held.tags,
        task.multicast,
        tuple(in_flight),
        plan=task.plan if held is task.held and not task.union else None,
        whole=unavoided if failures else None,
        staying=task.union.staying if task.union else None,
        vlan_generation=installed.vlan_generation if installed else None,
        admitting=installed.plan if installed and task.plan is None else None,
        held_lag=held.lag,
        lag=1 + task.unconfirmed,
        keeps_tags=True,
    )
    change = plan_change(before, plan)
    if failures and not _is_safe_with_links(change, task, unavoided, older):
        kinds = (plan_dropping_first,) if change.in_place else (plan_in_place, plan_dropping_first)
        others = (other for kind in kinds if (other := kind(before, plan)) is not None)
        safe = (other for other in others if _is_safe_with_links(other, task, unavoided, older))
        if (other := next(safe, None)) is not None:
            change = other
        else:
            change = plan_change(replace(before, fabric=unavoided, plan=None), plan)
            change = replace(change, down=pairs_down(change, before.fabric))
    _refuse_if_missing_may_deadlock(task, change)
    small = compact(change)
    differences = _differences(task.held.rules, small)
    return UpdatePlan(task.goal, repaired, small, differences)


def _differences(held: FabricRules, change: Change) -> tuple[Mapping[str, Changes], ...]:
    """Return what each step changes in each switch."""
    differences = []
    for step in change.steps:
        names = (name for name, rules in step.rules.items() if held.get(name) is not rules)
        differences.append(
            {name: difference(held.get(name, NO_RULES), step.rules[name]) for name in names}
        )
        held = step.rules
    return tuple(differences)


def _refuse_to_separate(task: UpdateTask) -> None:
    """Raise PlanError if hosts that stay need what goes away until something new works.

    They also need a link that goes away if it carries frames again and only counts as failed: those
    that would replace it may count as failed as well.
    """
    staying = None if task.union is None else task.union.staying
    if staying is None:
        return
    goal = task.goal
    now = host_parts(task.whole, task.reported)
    then = host_parts(goal.desired.fabric, goal.failures)
    first: dict[int, tuple[str, int]] = {}
    for host, part in zip(goal.desired.fabric.hosts, then, strict=True):
        if host.name not in staying:
            continue
        other, its_part = first.setdefault(now[task.whole.host_index[host.name]], (host.name, part))
        if its_part != part:
            raise PlanError(
                f"without what is to be removed, {other} and {host.name} could not reach each other"
                f" before this works: {', '.join(goal.failures.names)}"
            )


def _refuse_if_missing_may_deadlock(task: UpdateTask, change: Change) -> None:
    """Raise PlanError if a step is not proven together with what missing switches may hold."""
    if not task.unread:
        return
    count = max(map(len, task.unread.values()))
    kept = [
        {name: held[min(number, len(held) - 1)] for name, held in task.unread.items()}
        for number in range(count)
    ]
    context = ProofContext(task.whole, change.before.flow_control, change.groups)
    for step in change.steps:
        # Beside each generation they may hold any of theirs.
        generations = [
            Generation({**older.rules, **rules}, older.tags, older.lag * count + number)
            for older in step.proof.generations
            for number, rules in enumerate(kept)
        ]
        if not context.judge(generations).outcome.safe:
            names = ", ".join(task.unread)
            raise PlanError(
                f"there are no proven steps as long as {names} may forward by older rules; connect"
                " it, or take its links down"
            )


def _after_failover(fabric: Fabric, failures: Failures, held: Generation) -> Generation:
    """Return what switches do by themselves in failures, if they hold these rules."""
    rules = after_failover(fabric, held.rules, failures)
    return held if rules is held.rules else replace(held, rules=rules)


def _with_unavoided_failures(task: UpdateTask) -> Fabric:
    """Return the whole fabric without the failed links on which no frame can be.

    Where all switches hold the rules of a plan, none leads to what that avoids; and what was on
    failed links when they lost their carrier is gone.
    """
    if task.plan is None or task.carrying or task.unread or task.union:
        return task.whole
    avoided = set(task.plan.failures.names) & set(task.failures.names)
    return usable(task.whole, Failures.from_names(task.whole, avoided))


def _is_safe_with_links(
    change: Change, task: UpdateTask, unavoided: Fabric, older: tuple[Generation, ...]
) -> bool:
    """Tell whether no step can deadlock if failed links carry frames, or do so before its end.

    Rules of older generations may still forward to them. A change whose first step drops what leads
    to them is abandoned if they return during that step; after it, nothing is on them. But frames
    that have crossed a link that never was down are still there in the later steps, and so are
    those that have crossed others before. The proofs have what switches do during the failures;
    before and after these they do ``older``, if that differs.
    """
    context = ProofContext(unavoided, change.before.flow_control, change.groups)
    is_first = change.needs_links_down and not task.carrying
    steps = change.steps[:1] if is_first else change.steps

    def generations(step: Step) -> list[Generation]:
        # A port may return at any time, so a packet may meet the older ones after any other.
        now = (replace(each, lag=each.lag + len(older)) for each in step.proof.generations)
        return [*older, *now]

    if not all(context.judge(generations(step)).outcome.safe for step in steps):
        return False
    if not (is_first and change.drops_first):
        return True
    empty = task.failures.dead_links(unavoided)
    return all(context.is_acyclic_without(empty, generations(step)) for step in change.steps[1:])
