"""The rules that all switches shall hold now: from failures and new plans to proven steps. Pure.

The goal is a function of the configuration and of what has failed, never of earlier repairs, so
that all controllers compute the same. A :class:`Transition` leads there in the steps of
:mod:`knotless.verification.changes`. A step begins when all switches have confirmed the one before;
a step that must drain ends when the packets of older rules have left the fabric. A goal that
changes in the meantime takes effect after the current step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from knotless.controller.adopted import adopted
from knotless.controller.desired import Desired
from knotless.controller.existing import Existing
from knotless.controller.planning import Goal, Planned, Task
from knotless.controller.steps import Changes, difference
from knotless.controller.takeover import Found
from knotless.forwarding.openflow.planes import VLAN_BITS, Plane, plane_of, priorities_of
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.routing.plan import Plan
from knotless.topologies.failures import Failures
from knotless.verification.changes.change import Step
from knotless.verification.dependencies import longest_chain

_NO_RULES = SwitchRules(())


class Transition:
    """Where the fabric is on its way to its goal.

    ``problem`` is why the goal cannot be reached, one line, or None. ``planned`` is the last way
    that was taken. ``not_drained`` is why packets of older rules have not left for a long time, one
    line, or None. ``number`` counts the steps: it is that of the rules of :meth:`wanted`.
    ``flow_control`` is that of the links. ``has_caches`` is whether switches tell when they have
    checked the cached entries of older rules (:meth:`checked`).
    """

    def __init__(self, desired: Desired) -> None:
        rules, tags = desired.rules, desired.routed.host_tags()
        self.number = 0
        self.goal = self._reached = Goal(desired)
        self.existing = Existing(desired.fabric)
        self.problem: str | None = None
        self.not_drained: str | None = None
        self.planned: Planned | None = None
        self.flow_control = desired.plan.flow_control
        self._held = Generation(dict(rules), tags)
        self._known_plane: tuple[Generation, Plane] | None = None
        self._undrained: tuple[Generation, ...] = ()
        self._steps: deque[tuple[Step, Mapping[str, Changes]]] = deque()
        """What is left of the way, with what each step changes in each switch."""
        self._last: tuple[FabricRules, FabricRules, Mapping[str, Changes]] = ({}, {}, {})
        """The rules before and after the last step, and what it changes in each switch."""
        self._step: Step | None = None
        self._first: Step | None = None
        self._waiting = set(rules)
        self._refused: tuple[Goal, Failures] | None = None
        self.has_caches = self._is_unchecked = False
        self._is_fresh = True
        self._is_abandoned = self._is_inherited = False
        self._first_plan: Plan | None = desired.routed

    def inherit(self, found: Found) -> None:
        """Go on from what another controller has left in the switches.

        Packets of its older rules may still be in the fabric: no step begins before all have left.
        """
        self.number += 1
        self.goal = self._reached = found.goal
        self.planned, self.problem, self._refused = None, None, None
        self._first_plan, self._held, self._undrained = found.plan, found.held, (found.held,)
        self._steps.clear()
        self._step = self._first = None
        self._is_unchecked = False
        self._waiting = set(found.held.rules)
        self._is_fresh, self._is_abandoned, self._is_inherited = False, found.plan is None, True

    def adopt(self, name: str, found: SwitchRules) -> None:
        """Take the plane in which the first switch holds its rules already: see :func:`adopted`."""
        if self._is_fresh:
            self._is_fresh = False
            self._held = adopted(self._held, name, found) or self._held

    def wanted(self, name: str) -> SwitchRules:
        """Return the rules that a switch shall hold now."""
        return self._held.rules.get(name, _NO_RULES)

    def changes(self, name: str, held: SwitchRules) -> Changes:
        """Return the changes of a switch that holds exactly the rules ``held``."""
        before, after, known = self._last
        if after is self._held.rules and name in known and before.get(name) == held:
            return known[name]
        return difference(held, self.wanted(name))

    def extend(self, desired: Desired) -> None:
        """Take note that the fabric of the next goal exists as well; raises FabricError."""
        self.existing = self.existing.extended(desired.fabric)

    @property
    def may_withdraw(self) -> bool:
        """Whether the fabric has changed, and nothing uses what goes away any more."""
        return self.existing.staying is not None and self.is_there and not self._undrained

    def withdraw(self) -> None:
        """Forget what is not in the fabric of the goal."""
        self.existing = Existing(self.goal.desired.fabric, self.goal.failures)
        rules = {of.name: self.wanted(of.name) for of in self.existing.fabric.switches}
        self._held = Generation(rules, self._held.tags)

    def aim(self, desired: Desired, failures: Failures) -> None:
        """Set the goal, with the failures of what exists. It takes effect with the next step.

        What returns before the last change is complete counts as failed until then, so that no
        frame is on it when it is used again.
        """
        if not self._is_settled:
            names = {*failures.names, *self._reached.failures.names}
            failures = self.existing.failed(names).failures
        before = self.goal, self.existing.failures
        self.existing = replace(self.existing, failures=failures)
        self.goal = Goal(desired, self._failures_in(desired, self.existing))
        if (self.goal, failures) != before:
            self._refused = None  # what has failed and returned may have lost frames: see mended

    def _failures_in(self, desired: Desired, existing: Existing) -> Failures:
        is_all = existing.staying is None
        return existing.failures if is_all else existing.failures.within(desired.fabric)

    @property
    def _is_settled(self) -> bool:
        """Whether all steps are complete."""
        return not (self.waiting or self._steps or self.is_draining)

    def link_returned(self) -> None:
        """Record that a port has its carrier again: see :attr:`Change.in_place`.

        If a switch may still hold rules that lead to a failed link, the steps that are left are
        proven only without it; others are planned instead.
        """
        if self._is_in_place and self._steps and self._step is self._first and self.waiting:
            self._steps.clear()
            self._is_abandoned = True

    @property
    def _is_in_place(self) -> bool:
        return bool(self.planned and self.planned.change.in_place)

    def confirm(self, name: str) -> None:
        """Record that a switch holds the rules of :meth:`wanted`."""
        self._waiting.discard(name)

    @property
    def waiting(self) -> frozenset[str]:
        """The switches that have not confirmed the current step; dead ones need not."""
        return frozenset(self._waiting - set(self.goal.failures.switches))

    @property
    def is_draining(self) -> bool:
        """Whether all switches have confirmed, and packets of older rules must leave first."""
        must = self._is_inherited or (self._step is not None and self._step.drain)
        return must and not self.waiting

    @property
    def is_checking(self) -> bool:
        """Whether all switches have confirmed, and must check their cached entries next.

        The next step of a change with two planes sends frames into VLANs that may have been in use
        before. Entries of that time drop them, or forward them by rules of which no proof knows.
        """
        return self._is_unchecked and not self.waiting

    def checked(self) -> None:
        """Record that no cached entries are left that are older than the current step."""
        self._is_unchecked = False

    @property
    def is_due(self) -> bool:
        """Whether the next step can begin, or the way to another goal be planned."""
        if self.waiting or self.is_checking or (self.is_draining and not self._is_in_place):
            return False
        return (bool(self._steps) and not self.is_draining) or self._has_other_goal

    @property
    def _has_other_goal(self) -> bool:
        """Whether the steps do not lead to the goal, and nothing else has shown it unreachable."""
        if (self.goal, self.existing.failures) == self._refused:
            return False
        return self.goal != self._reached or self._is_abandoned

    @property
    def is_serving(self) -> bool:
        """Whether all frames take the new routes; all that is left is to remove what they had."""
        left = len(self._steps) - self.is_draining
        return not (self.waiting or left or self._is_abandoned) and self.goal == self._reached

    @property
    def undrained(self) -> int:
        """How many older generations of rules may still have packets in the fabric."""
        return len(self._undrained)

    def drained(self) -> None:
        """Record that no packets are left that were sent before the current step was confirmed."""
        self._undrained = ()
        if self.is_draining:
            self._step, self._is_inherited = None, False
        self._refused = None  # with fewer generations there may be a proof

    @property
    def is_there(self) -> bool:
        """Whether all switches hold the rules of the goal."""
        return self._is_settled and self.goal == self._reached and not self._is_abandoned

    @property
    def pauses_between_switches(self) -> bool:
        """Whether links between switches pause. If not, older packets cannot hold up others."""
        return self.flow_control.switch_links.pauses

    def drain_rounds(self) -> tuple[int, bool]:
        """Return the rounds of :class:`controller.draining.Draining` and its ``keeps_order``.

        Channels keep the order of frames if there is only one priority.
        """
        rounds = longest_chain(self._step.proof.mixed.dependencies) if self._step else None
        rules = [generation.rules for generation in (*self._undrained, self._held)]
        priorities = frozenset[int]().union(*map(priorities_of, rules))
        return rounds or len(self._held.rules), len(priorities) <= 1

    def mended(self, task: Task) -> Failures | None:
        """Return what has failed for the rules that switches hold, and returns with a task."""
        before = self.existing.failed(set(self._reached.failures.names)).failures
        back = set(before.names) - set(task.failures.names)
        return self.existing.failed(back).failures if back else None

    def as_json(self) -> dict[str, object]:
        """Return where the fabric is, for ``GET /status``.

        ``failed`` are the links and switches that the rules of the last plan avoid as failed,
        ``drained`` those that it avoids for maintenance. The rules add
        ``first_vlan`` and ``first_priority`` to VLANs and priorities of the plan: they are in a
        plane (:mod:`knotless.forwarding.openflow.planes`).
        """
        way, plane = self.planned, self._plane
        return {
            "failed": list(self._reached.failures.names),
            "drained": list(self._reached.desired.drained),
            "repair": way.kind if way else "intact",
            "tier": way.change.tier if way else None,
            "changing": not self.is_there,
            "leaving": self.existing.leaving(self.goal.desired.fabric),
            "first_vlan": plane.number << VLAN_BITS,
            "first_priority": plane.first_priority,
            "waiting_for": sorted(self.waiting),
            "older_rules": self.undrained,
        }

    @property
    def _plane(self) -> Plane:
        """The plane of the rules of :meth:`wanted`; found once for each step, from all rules."""
        if self._known_plane is None or self._known_plane[0] is not self._held:
            self._known_plane = self._held, plane_of(self._held.rules, self._held.tags)
        return self._known_plane[1]

    @property
    def idle_task(self) -> Task | None:
        """The task of which all steps are done; None during a change."""
        is_idle = self.is_there and not self._undrained and self.existing.staying is None
        return self._task(self.goal, self.existing) if is_idle else None

    def task(self) -> Task | None:
        """Return what is to be planned, if the goal is not the one that the steps lead to."""
        if not self.is_due or not self._has_other_goal:
            return None
        return self._task(self.goal, self.existing)

    @property
    def _held_plan(self) -> Plan | None:
        """The plan whose rules all switches hold; None while they hold those of a step."""
        if not self._is_settled or self._is_abandoned:
            return None
        if self.planned is None:
            return self._first_plan
        way = self.planned.repair
        return way.plan if way else self._reached.desired.routed

    def task_to(self, desired: Desired) -> Task | None:
        """Return what would be planned for another desired state; None while a change goes on.

        What its fabric adds counts as working. Raises FabricError if both cannot exist together.
        """
        if not self._is_settled:
            return None
        existing = self.existing.extended(desired.fabric)
        return self._task(Goal(desired, self._failures_in(desired, existing)), existing)

    def _task(self, goal: Goal, existing: Existing) -> Task:
        of = (self._held, self._undrained, self.flow_control, self._held_plan)
        return Task(goal, *of, None if existing.staying is None else existing)

    def refuse(self, task: Task, reason: str) -> bool:
        """Record that a task has no solution: switches keep what they hold.

        A change in place goes on: after its first step, too many frames are dropped. Returns False
        if packets of older rules have left since the task was planned: there may be one now.
        """
        if len(task.undrained) != self.undrained:
            return False
        self.problem, self._refused = reason, (task.goal, task.failures)
        if self._steps and not self._is_in_place:
            self._steps.clear()
            self._is_abandoned = True
        return True

    def accept(self, found: Planned) -> None:
        """Take the steps of a plan, in place of those that are left of the last one."""
        if self.is_draining:  # the steps take the packets of older rules into account
            self._step = None
        self.planned, self.problem, self._refused = found, None, None
        self._reached = found.goal
        self._is_abandoned = False
        self._steps = deque(zip(found.change.steps, found.differences, strict=True))
        self._first = found.change.steps[0] if found.change.steps else None

    def begin(self) -> Mapping[str, SwitchRules]:
        """Begin the next step, and return the rules of the switches that it changes.

        A step without changes, or no step at all, changes nothing.
        """
        if not self.is_due or not self._steps:
            return {}
        self._step, changes = self._steps.popleft()
        before, self._held = self._held, Generation(self._step.rules, self._step.tags)
        self._last = (before.rules, self._held.rules, changes)
        self._undrained = (*self._undrained, before)
        self.number += 1
        is_prepared = bool(self._steps) and not (self._step.drain or self._is_in_place)
        self._is_unchecked = self.has_caches and is_prepared
        rules = self._step.rules.items()
        changed = {name: of for name, of in rules if before.rules.get(name, _NO_RULES) != of}
        self._waiting = set(changed)
        return changed
