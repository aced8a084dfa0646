"""The rules that all switches shall hold now, step by step towards a goal. Pure.

The goal is a function of the configuration and of what has failed, never of earlier repairs, so
that all controllers compute the same. What failures have cut is served before that
(:mod:`knotless.controller.updates.serving`). An :class:`UpdateState` leads there in the steps of
:mod:`knotless.verification.changes`. A step begins when all switches have confirmed the one before;
some steps end only when the packets of older rules have left the fabric: quiescence. Another goal
takes effect after the current step, or during quiescence if it serves what failures have cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping

from knotless.controller.desired import DesiredState
from knotless.controller.foreign_changes import RulesInFabric
from knotless.controller.reconcile import Changes, difference
from knotless.controller.updates.inherited import InheritedRules
from knotless.controller.updates.planning import (
    FabricUnion,
    Goal,
    InstalledPlan,
    UpdatePlan,
    UpdateTask,
)
from knotless.controller.updates.serving import admitting_plans, next_goals
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.forwarding.openflow.vlan_generations import (
    VlanGeneration,
    priorities_of,
    vlan_generation_of,
)
from knotless.routing.multicast import united
from knotless.routing.plan import Plan
from knotless.topologies.failures import Failures
from knotless.verification.changes.change import Step
from knotless.verification.changes.drops import dropped_rules
from knotless.verification.dependencies import longest_chain

_NO_RULES = SwitchRules(())


class UpdateState:
    """The update plan that is carried out, and how far it has come.

    Attributes
    ----------
    number : counts the steps; it is that of the rules of :meth:`wanted`.
    goal : where the steps shall lead.
    reached : where the steps of the last plan lead.
    union : everything that exists, with what has failed of it.
    problem : the reason for which the goal cannot be reached, one line, or None.
    overdue : the reason for which packets of older rules have not left for a long time, or None.
    plan : the update plan that was accepted last; None: the first rules are being installed.
    flow_control : that of the links.
    carrying : whether a link that counts as failed may still carry frames.
    is_settling : whether something has failed, returned or been drained a short time ago, so that
        routes which serve all pairs stay as they are.
    is_inherited : whether packets of older rules may be there that another controller has left.
    is_fresh : whether nothing is known of what switches hold: it was never read.
    purges_megaflows : whether cached entries of older rules are removed between steps, which
        :meth:`purged` reports.

    """

    def __init__(self, desired: DesiredState) -> None:
        rules, tags = desired.rules, desired.routed.host_tags()
        self.number = 0
        self.goal = self.reached = Goal(desired)
        self.union = FabricUnion(desired.fabric)
        self.problem: str | None = None
        self.overdue: str | None = None
        self.plan: UpdatePlan | None = None
        self.flow_control = desired.plan.flow_control
        self.carrying = self.is_settling = False
        self._held = Generation(dict(rules), tags)
        self._last_generation: tuple[Generation, VlanGeneration] | None = None
        self._in_flight: tuple[Generation, ...] = ()
        self._steps: deque[tuple[Step, Mapping[str, Changes]]] = deque()
        """The steps that are left, with the changes of each step in each switch."""
        self._dropped = self._dropped_before = 0
        """The pairs that the current step and the one before it drop at admission."""
        self._last: tuple[FabricRules, FabricRules, Mapping[str, Changes]] = ({}, {}, {})
        """The rules before and after the last step, and its changes in each switch."""
        self._step: Step | None = None
        self._first: Step | None = None
        self._waiting = set(rules)
        self._refused: tuple[Goal, Failures] | None = None
        self._declined: set[Goal] = set()
        """Goals to which no steps lead at the moment, and in place of which there are others."""
        self._reported = Failures()
        self._unavoided: set[str] = set()
        """Links that have failed since the last update that avoids them; they may have returned."""
        self.purges_megaflows = self._needs_purge = False
        self.is_fresh = True
        self._unread: dict[str, SwitchRules] = {}
        """The switches that are missing since the beginning, and what they may hold."""
        self._is_abandoned = self.is_inherited = self._is_optional = False
        self._unused: frozenset[str] | None = None
        """Links that may fail before inherited rules of no goal are changed; None: they may be."""
        self._first_plan: Plan | None = desired.routed
        self._replaced: tuple[InstalledPlan, ...] = ()
        """The plans by which frames were admitted when the last plan was accepted."""
        self._multicast = desired.plan.multicast
        """The groups of the rules that switches hold, and of those in flight."""

    def inherit(
        self,
        inherited: InheritedRules,
        *,
        is_quiescent: bool = False,
        unread: Collection[str] = (),
    ) -> None:
        """Go on from what another controller has left in the switches.

        Packets of its older rules may still be in the fabric: no step begins before all have left,
        unless the fabric ``is_quiescent``. The switches ``unread`` are missing, and may go on
        forwarding by what they are taken to hold.
        """
        self.number += 1
        self.goal = self.reached = inherited.goal
        self.plan, self.problem, self._refused, self._replaced = None, None, None, ()
        self._first_plan, self._held = inherited.plan, inherited.held
        self._multicast = inherited.goal.desired.plan.multicast
        self._in_flight = () if is_quiescent else (inherited.held,)
        self._steps.clear()
        self._step = self._first = None
        self._needs_purge = False
        self._dropped = self._dropped_before = dropped_rules(inherited.held.rules)
        self._waiting = set(inherited.held.rules)
        self._unread = {name: self.wanted(name) for name in unread}
        self.is_fresh, self._is_abandoned = False, inherited.plan is None
        self.is_inherited = not is_quiescent
        self._unused = inherited.unused

    def wanted(self, name: str) -> SwitchRules:
        """Return the rules that a switch shall hold now."""
        return self._held.rules.get(name, _NO_RULES)

    @property
    def in_fabric(self) -> RulesInFabric:
        """All rules by which packets may be forwarded now."""
        groups, held = self._multicast, self._held
        return RulesInFabric(self.union.fabric, self.flow_control, groups, self._in_flight, held)

    def changed_by_others(self, name: str, held: SwitchRules) -> None:
        """Take note that others had changed the rules of a switch, which packets may have met."""
        changed = Generation({**self._held.rules, name: held}, self._held.tags)
        self._in_flight = (*self._in_flight, changed)

    def changes(self, name: str, held: SwitchRules) -> Changes:
        """Return the changes of a switch that holds exactly the rules ``held``."""
        before, after, changes = self._last
        if after is self._held.rules and name in changes and before.get(name) == held:
            return changes[name]
        return difference(held, self.wanted(name))

    def extend(self, desired: DesiredState) -> None:
        """Take note that the fabric of the next goal exists as well; raises FabricError."""
        self.union = self.union.extended(desired.fabric)
        self._unused = None

    @property
    def steps_confirmed(self) -> int:
        """The steps of the last plan that all switches have confirmed."""
        steps = self.plan.change.steps if self.plan else ()
        return max(0, len(steps) - len(self._steps) - bool(self.waiting))

    @property
    def may_withdraw(self) -> bool:
        """Whether the fabric has changed, and nothing uses what goes away any more."""
        return self.union.staying is not None and self.is_there and not self._in_flight

    def withdraw(self) -> None:
        """Forget what is not in the fabric of the goal."""
        self.union = FabricUnion(self.goal.desired.fabric, self.goal.failures)
        switches = self.union.fabric.switches
        rules = {switch.name: self.wanted(switch.name) for switch in switches}
        self._held = Generation(rules, self._held.tags)
        self._unread = {name: held for name, held in self._unread.items() if name in rules}

    def died(self, names: Collection[str]) -> None:
        """Take note that these switches carry no frames: what they may hold does not matter."""
        dead = self._unread.keys() & set(names)
        for name in dead:
            del self._unread[name]
        if dead:
            self.problem = self._refused = None  # there may be proven steps now

    def aim(self, desired: DesiredState, failures: Failures) -> None:
        """Set the goal, with the failures of what exists. It takes effect with the next step.

        What returns before the last change is complete counts as failed until then, so that no
        frame is on it when it is used again. A link that has failed counts as failed until routes
        have avoided it: only when nothing but probes crosses it can its losses be counted. If there
        was no plan for that, it is tried again whenever something else is reported.
        """
        if failures != self._reported:
            self._reported, self.problem, self._refused = failures, None, None
            self._declined.clear()
        existing = {link.name for link in self.union.fabric.links}
        self._unavoided = (self._unavoided | set(failures.links)) & existing
        self._unavoided -= set(self.reached.failures.links)
        names = {*failures.names, *self._unavoided}
        if not self._is_settled:
            names |= set(self.reached.failures.names)
        before = self.goal, self.union.failures
        self.union = self.union.failed(names)
        goals = self._next_goals(Goal(desired, self.union.failures_in(desired.fabric)))
        self.goal, self._is_optional = goals[0], len(goals) > 1
        self.union = self.union.failed({*names, *self.goal.failures.names})
        if (self.goal, self.union.failures) != before:
            self.problem = self._refused = None

    def _next_goals(self, goal: Goal) -> tuple[Goal, ...]:
        """Return the goal, and what may be the next one in place of it, in order."""
        if self._is_abandoned or self.union.staying is not None:
            return (goal,)
        goals = next_goals(
            goal,
            self.reached,
            self.union.fabric,
            is_complete=self._is_settled,
            is_settling=self.is_settling,
        )
        return tuple(each for each in goals[:-1] if each not in self._declined) + goals[-1:]

    def may_have_lost(self, links: Iterable[str]) -> None:
        """Record that frames on links may have been lost, although nobody has seen them fail."""
        self._unavoided |= set(links) - set(self.reached.failures.links)

    @property
    def _is_settled(self) -> bool:
        """Whether all steps are complete."""
        return not (self.waiting or self._steps or self.awaits_quiescence)

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
        return bool(self.plan and self.plan.change.in_place)

    def confirm(self, name: str) -> None:
        """Record that a switch holds the rules of :meth:`wanted`."""
        self._waiting.discard(name)
        self._unread.pop(name, None)

    @property
    def waiting(self) -> frozenset[str]:
        """The switches that have not confirmed the current step; dead ones need not."""
        return frozenset(self._waiting - set(self.goal.failures.switches))

    @property
    def awaits_quiescence(self) -> bool:
        """Whether all switches have confirmed, and packets of older rules must leave first."""
        must = self.is_inherited or (self._step is not None and self._step.await_quiescence)
        return must and not self.waiting

    @property
    def awaits_purge(self) -> bool:
        """Whether all switches have confirmed, and cached entries must be removed next.

        The next step of a change with two planes sends frames into VLANs that may have been in use
        before. Entries of that time drop them, or forward them by rules of which no proof knows.
        """
        return self._needs_purge and not self.waiting

    def purged(self) -> None:
        """Record that no cached entries are left that are older than the current step."""
        self._needs_purge = False

    @property
    def is_due(self) -> bool:
        """Whether the next step can begin, or steps to another goal be planned."""
        if self.waiting or (self._is_amid_step and not self._is_urgent):
            return False
        return (bool(self._steps) and not self.awaits_quiescence) or self._has_other_goal

    @property
    def _is_amid_step(self) -> bool:
        """Whether all switches have confirmed the current step, and it has not ended yet."""
        return self.awaits_purge or (self.awaits_quiescence and not self._is_in_place)

    @property
    def _is_urgent(self) -> bool:
        """Whether pairs are to be served before the current step ends.

        Nobody knows by which rules older packets are there that another controller has left.
        """
        return self.goal.serves_first and self._has_other_goal and not self.is_inherited

    @property
    def _has_other_goal(self) -> bool:
        """Whether the steps do not lead to the goal, and nothing else has shown it unreachable."""
        if (self.goal, self.union.failures) == self._refused or self._stays:
            return False
        return self.goal != self.reached or self._is_abandoned

    @property
    def _stays(self) -> bool:
        """Whether inherited rules of no goal stay, because they lead to nothing that has failed."""
        dead = self.union.failures.dead_links(self.union.fabric)
        return self._unused is not None and {link.name for link in dead} <= self._unused

    @property
    def is_serving(self) -> bool:
        """Whether all frames take the new routes; all that is left is to remove what they had."""
        left = len(self._steps) - self.awaits_quiescence
        return not (self.waiting or left or self._is_abandoned) and self.goal == self.reached

    @property
    def dropping(self) -> int:
        """The number of pairs of hosts whose frames switches drop now, so that a step is safe."""
        return max(self._dropped, self._dropped_before) if self.waiting else self._dropped

    @property
    def generations_in_flight(self) -> int:
        """The number of older generations of rules that may still have packets in the fabric."""
        return len(self._in_flight)

    def quiescent(self) -> None:
        """Record that no packets are left that were sent before the current step was confirmed."""
        self._in_flight = ()
        if self.awaits_quiescence:
            self._step, self.is_inherited = None, False
        if self.is_there:
            self._multicast = self.reached.desired.plan.multicast
        self._refused, self._declined = None, set()  # with fewer generations there may be a proof

    @property
    def is_there(self) -> bool:
        """Whether all switches hold the rules of the goal."""
        return self._is_settled and self.goal == self.reached and not self._is_abandoned

    @property
    def pauses_between_switches(self) -> bool:
        """Whether links between switches pause. If not, older packets cannot hold up others."""
        return self.flow_control.switch_links.pauses

    def quiescence_rounds(self) -> tuple[int, bool]:
        """Return the number of rounds until the fabric is quiescent, and ``keeps_order``.

        See :class:`knotless.controller.updates.quiescence.CountedRounds`.

        Channels keep the order of frames if there is only one priority.
        """
        rounds = longest_chain(self._step.proof.mixed.dependencies) if self._step else None
        rules = [generation.rules for generation in (*self._in_flight, self._held)]
        priorities = frozenset[int]().union(*map(priorities_of, rules))
        return rounds or len(self._held.rules), len(priorities) <= 1

    @property
    def avoided(self) -> Failures:
        """The failures that the rules of the last plan avoid."""
        return self.reached.failures

    @property
    def has_plan(self) -> bool:
        """Whether the rules of :meth:`wanted` are those of a plan, or of a step to one."""
        return not self._is_abandoned

    @property
    def vlan_generation(self) -> VlanGeneration:
        """The VLAN generation of the rules of :meth:`wanted`; found once for each step."""
        if self._last_generation is None or self._last_generation[0] is not self._held:
            self._last_generation = (
                self._held,
                vlan_generation_of(self._held.rules, self._held.tags),
            )
        return self._last_generation[1]

    @property
    def idle_task(self) -> UpdateTask | None:
        """The task of which all steps are done; None during a change."""
        is_idle = self.is_there and not (self._in_flight or self._unread)
        is_idle = is_idle and self.union.staying is None
        return self._task(self.goal, self.union) if is_idle else None

    def task(self) -> UpdateTask | None:
        """Return what is to be planned, if the goal is not the one that the steps lead to."""
        if not self.is_due or not self._has_other_goal:
            return None
        return self._task(self.goal, self.union)

    @property
    def _held_plan(self) -> Plan | None:
        """The plan whose rules all switches hold; None while they hold those of a step."""
        if not self._is_settled or self._is_abandoned:
            return None
        if self.plan is None:
            return self._first_plan
        return self.plan.new_plan

    @property
    def _installed(self) -> tuple[InstalledPlan, ...]:
        """The plans by which frames are admitted now, the most likely one first.

        Before cached entries are removed, no frame may be sent into a new VLAN generation.
        """
        if self._is_abandoned:
            return ()
        if (held := self._held_plan) is not None:
            return (InstalledPlan(held, self.vlan_generation),)
        if self.plan is None or self.awaits_purge:
            return self._replaced
        return admitting_plans(self.plan, len(self._steps), self._replaced)

    def task_to(self, desired: DesiredState) -> UpdateTask | None:
        """Return what would be planned for another desired state; None while a change goes on.

        What its fabric adds counts as working. Raises FabricError if both cannot exist together.
        """
        if not self._is_settled:
            return None
        union = self.union.extended(desired.fabric)
        return self._task(Goal(desired, union.failures_in(desired.fabric)), union)

    def _task(self, goal: Goal, union: FabricUnion) -> UpdateTask:
        return UpdateTask(
            goal=goal,
            held=self._held,
            in_flight=self._in_flight,
            flow_control=self.flow_control,
            plan=self._held_plan,
            union=None if union.staying is None else union,
            carrying=self.carrying,
            unread=dict(self._unread),
            multicast=self._multicast,
            installed=self._installed,
            is_amid_step=self._is_amid_step,
            is_optional=self._is_optional and goal is self.goal,
        )

    def refuse(self, task: UpdateTask, reason: str) -> bool:
        """Record that a task has no solution: switches keep what they hold.

        A change in place goes on: after its first step, too many frames are dropped. Returns False
        if packets of older rules have left since the task was planned: there may be one now.
        """
        if len(task.in_flight) != self.generations_in_flight:
            return False
        if task.is_optional:
            self._declined.add(task.goal)
            return False
        self.problem, self._refused = reason, (task.goal, task.failures)
        if not task.in_flight:
            self._unavoided.clear()
        if self._steps and not self._is_in_place:
            self._steps.clear()
            self._is_abandoned = True
        return True

    def accept(self, plan: UpdatePlan) -> None:
        """Take the steps of a plan, in place of those that are left of the last one."""
        self._replaced = self._installed
        if self.awaits_quiescence:  # the steps take the packets of older rules into account
            self._step = None
        self._needs_purge, self._declined = False, set()
        self.plan, self.problem, self._refused = plan, None, None
        self.reached = plan.goal
        self._multicast = united(self._multicast, plan.change.multicast)
        self._is_abandoned, self._unused = False, None
        self._steps = deque(zip(plan.change.steps, plan.differences, strict=True))
        self._first = plan.change.steps[0] if plan.change.steps else None

    def _count(self, step: Step) -> int:
        return self.plan.change.count(step.dropped) if self.plan else 0

    def begin(self) -> Mapping[str, SwitchRules]:
        """Begin the next step, and return the rules of the switches that it changes.

        A step without changes, or no step at all, changes nothing.
        """
        if not self.is_due or not self._steps:
            return {}
        self._step, changes = self._steps.popleft()
        before, self._held = self._held, Generation(self._step.rules, self._step.tags)
        self._dropped_before, self._dropped = self._dropped, self._count(self._step)
        self._last = (before.rules, self._held.rules, changes)
        self._in_flight = (*self._in_flight, before)
        self.number += 1
        is_prepared = bool(self._steps) and not (self._step.await_quiescence or self._is_in_place)
        self._needs_purge = self.purges_megaflows and is_prepared
        by_name = self._step.rules.items()
        changed = {
            name: rules for name, rules in by_name if before.rules.get(name, _NO_RULES) != rules
        }
        self._waiting = set(changed)
        return changed
