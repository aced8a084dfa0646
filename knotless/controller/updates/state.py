"""The goal, the steps to it, and what was tried in vain. Pure.

The goal is a function of the configuration and of what has failed, never of earlier repairs, so
that all controllers compute the same. What failures have cut is served before that
(:mod:`knotless.controller.updates.serving`). An :class:`UpdateState` leads there in the steps of
:mod:`knotless.verification.changes`. A step begins when all switches have confirmed the one before;
some steps end only when the packets of older rules have left the fabric: quiescence. Another goal
takes effect after the current step, or amid it if it serves what failures have cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from knotless.controller.desired import DesiredState
from knotless.controller.foreign_changes import RulesInFabric
from knotless.controller.updates.attempts import FailedAttempts
from knotless.controller.updates.inherited import InheritedRules
from knotless.controller.updates.planning import FabricUnion, Goal, UpdatePlan, UpdateTask
from knotless.controller.updates.progress import StepProgress
from knotless.controller.updates.serving import next_goals
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.routing.multicast import united
from knotless.topologies.failures import Failures

_MAX_IN_FLIGHT = 4
"""Generations that may have packets in the fabric before a step begins amid another one."""


class UpdateState:
    """The goal, and the update plan that leads there.

    Attributes
    ----------
    progress : how far the steps of the last update plan have come.
    goal : where the steps shall lead.
    reached : where the steps of the last plan lead.
    union : everything that exists, with what has failed of it.
    overdue : the reason for which packets of older rules have not left for a long time, or None.
    flow_control : that of the links.
    carrying : whether a link that counts as failed may still carry frames.
    is_settling : whether something has failed, returned or been drained a short time ago, so that
        routes which serve all pairs stay as they are.
    is_fresh : whether nothing is known of what switches hold: it was never read.

    """

    def __init__(self, desired: DesiredState) -> None:
        held = Generation(dict(desired.rules), desired.routed.host_tags())
        self.progress = StepProgress(held, desired.routed)
        self.goal = self.reached = Goal(desired)
        self.union = FabricUnion(desired.fabric)
        self.overdue: str | None = None
        self.flow_control = desired.plan.flow_control
        self.carrying = self.is_settling = self._is_optional = False
        self.is_fresh = True
        self._attempts = FailedAttempts()
        self._reported = Failures()
        self._unavoided: set[str] = set()
        """Links that have failed since the last update that avoids them; they may have returned."""
        self._may_hold: dict[str, tuple[SwitchRules, ...]] = {}
        """By switch: the rules that it has confirmed last, and those that it was sent since."""
        self._unread = set[str]()
        """The switches that are missing, or in whose place another one may have been read."""
        self._unused: frozenset[str] | None = None
        """Links that may fail before inherited rules of no goal are changed; None: they may be."""
        self._multicast = desired.plan.multicast
        """The groups of the rules that switches hold, and of those in flight."""

    def inherit(
        self,
        inherited: InheritedRules,
        *,
        is_quiescent: bool = False,
        unread: Mapping[str, SwitchRules] = MappingProxyType({}),
    ) -> None:
        """Go on from what another controller has left in the switches.

        Packets of its older rules may still be in the fabric: no step begins before all have left,
        unless the fabric ``is_quiescent``. The switches ``unread`` are missing, or another one may
        have been read in their place: they may go on forwarding by these rules, by those that were
        inherited, or by what they have confirmed or were sent before.
        """
        self._aim_at(inherited.goal)
        self.reached = inherited.goal
        self._attempts.retry()
        self.progress.inherit(inherited.held, inherited.plan, is_quiescent=is_quiescent)
        self._multicast = inherited.goal.desired.plan.multicast
        before, self._may_hold = self._may_hold, {}
        self._unread = set(unread)
        for name, rules in unread.items():
            self._may_hold[name] = before.get(name, ())
            self.sent(name, rules)
        for name, rules in inherited.held.rules.items():
            self.sent(name, rules)
        self.is_fresh, self._unused = False, inherited.unused

    # --- the fabric ----------------------------------------------------------------------------

    @property
    def in_fabric(self) -> RulesInFabric:
        """All rules by which packets may be forwarded now."""
        progress = self.progress
        return RulesInFabric(
            self.union.fabric,
            self.flow_control,
            self._multicast,
            progress.in_flight,
            progress.held,
        )

    def extend(self, desired: DesiredState) -> None:
        """Take note that the fabric of the next goal exists as well; raises FabricError."""
        self.union = self.union.extended(desired.fabric)
        self._unused = None

    @property
    def may_withdraw(self) -> bool:
        """Whether the fabric has changed, and nothing uses what goes away any more."""
        return self.union.staying is not None and self.is_there and not self.progress.in_flight

    def withdraw(self, reached: Goal | None = None) -> None:
        """Forget what is not in the fabric of the goal, or of one that others have ``reached``."""
        if reached is not None:
            self._aim_at(reached)
        self.union = FabricUnion(self.goal.desired.fabric, self.goal.failures)
        names = {switch.name for switch in self.union.fabric.switches}
        self.progress.keep(switch.name for switch in self.union.fabric.switches)
        self._unread &= names
        self._may_hold = {name: held for name, held in self._may_hold.items() if name in names}

    def died(self, names: Collection[str]) -> None:
        """Take note that these switches carry no frames: what they may hold does not matter."""
        dead = self._unread & set(names)
        if dead:
            self._unread -= dead
            self._attempts.retry()

    def doubt(self, name: str) -> None:
        """Take note that another switch may be connected in place of one, which forwards on."""
        if name in self._may_hold:
            self._unread.add(name)

    def may_have_lost(self, links: Iterable[str]) -> None:
        """Record that frames on links may have been lost, although nobody has seen them fail."""
        self._unavoided |= set(links) - set(self.reached.failures.links)

    @property
    def pauses_between_switches(self) -> bool:
        """Whether links between switches pause. If not, older packets cannot hold up others."""
        return self.flow_control.switch_links.pauses

    # --- the goal ------------------------------------------------------------------------------

    def aim(self, desired: DesiredState, failures: Failures) -> None:
        """Set the goal, with the failures of what exists. It takes effect with the next step.

        What returns before the last change is complete counts as failed until then, so that no
        frame is on it when it is used again. A link that has failed counts as failed until routes
        have avoided it: only when nothing but probes crosses it can its losses be counted. If there
        was no plan for that, it is tried again whenever something else is reported.
        """
        if failures != self._reported:
            self._reported = failures
            self._attempts.retry_all()
        existing = {link.name for link in self.union.fabric.links}
        self._unavoided = (self._unavoided | set(failures.links)) & existing
        self._unavoided -= set(self.reached.failures.links)
        names = {*failures.names, *self._unavoided}
        if not self.progress.is_settled:
            names |= set(self.reached.failures.names)
        before = self.goal, self.union.failures
        self.union = self.union.failed(names)
        goals = self._next_goals(Goal(desired, self.union.failures_in(desired.fabric)))
        self._is_optional = len(goals) > 1
        self._aim_at(goals[0])
        self.union = self.union.failed({*names, *self.goal.failures.names})
        if (self.goal, self.union.failures) != before:
            self._attempts.retry()

    def _aim_at(self, goal: Goal) -> None:
        self.goal = goal
        self.progress.dead = frozenset(goal.failures.switches)

    def _next_goals(self, goal: Goal) -> tuple[Goal, ...]:
        """Return the goal, and what may be the next one in place of it, in order."""
        if not self.progress.has_plan or self.union.staying is not None:
            return (goal,)
        goals = next_goals(
            goal,
            self.reached,
            self.union.fabric,
            is_complete=self.progress.is_settled,
            is_settling=self.is_settling,
        )
        declined = self._attempts.declined
        return tuple(each for each in goals[:-1] if each not in declined) + goals[-1:]

    @property
    def problem(self) -> str | None:
        """The reason for which the goal cannot be reached, one line, or None."""
        return self._attempts.problem

    @property
    def avoided(self) -> Failures:
        """The failures that the rules of the last plan avoid."""
        return self.reached.failures

    @property
    def is_there(self) -> bool:
        """Whether all switches hold the rules of the goal."""
        is_complete = self.progress.is_settled and self.progress.has_plan
        return is_complete and self.goal == self.reached

    @property
    def is_serving(self) -> bool:
        """Whether all frames take the new routes; all that is left is to remove what they had."""
        return self.progress.is_serving and self.goal == self.reached

    @property
    def is_due(self) -> bool:
        """Whether the next step can begin, or steps to another goal be planned."""
        if self.progress.is_next_due:
            return True
        return self._is_urgent if self.progress.is_amid_step else self._has_other_goal

    @property
    def _is_urgent(self) -> bool:
        """Whether pairs are to be served before the current step ends.

        Nobody knows by which rules older packets are there that another controller has left, nor
        what switches hold that have not confirmed the first rules. Some steps are proven only as
        long as nothing else is on links that have failed.
        """
        progress = self.progress
        if not self.goal.serves_first or not self._has_other_goal or progress.is_inherited:
            return False
        if (self.goal, self.union.failures) == self._attempts.early:
            return False
        is_known = progress.plan is not None and not progress.needs_links_down
        return not progress.waiting or (is_known and len(progress.in_flight) < _MAX_IN_FLIGHT)

    @property
    def _has_other_goal(self) -> bool:
        """Whether the steps do not lead to the goal, and nothing else has shown it unreachable."""
        if (self.goal, self.union.failures) == self._attempts.refused or self._stays:
            return False
        return self.goal != self.reached or not self.progress.has_plan

    @property
    def _stays(self) -> bool:
        """Whether inherited rules of no goal stay, because they lead to nothing that has failed."""
        dead = self.union.failures.dead_links(self.union.fabric)
        return self._unused is not None and {link.name for link in dead} <= self._unused

    # --- planning ------------------------------------------------------------------------------

    @property
    def idle_task(self) -> UpdateTask | None:
        """The task of which all steps are done; None during a change."""
        is_idle = self.is_there and not (self.progress.in_flight or self._unread)
        is_idle = is_idle and self.union.staying is None
        return self._task(self.goal, self.union) if is_idle else None

    def task(self) -> UpdateTask | None:
        """Return what is to be planned, if the goal is not the one that the steps lead to."""
        if not self.is_due or not self._has_other_goal:
            return None
        return self._task(self.goal, self.union)

    def task_to(self, desired: DesiredState) -> UpdateTask | None:
        """Return what would be planned for another desired state; None while a change goes on.

        What its fabric adds counts as working. Raises FabricError if both cannot exist together.
        """
        if not self.progress.is_settled:
            return None
        union = self.union.extended(desired.fabric)
        return self._task(Goal(desired, union.failures_in(desired.fabric)), union)

    def _task(self, goal: Goal, union: FabricUnion) -> UpdateTask:
        progress = self.progress
        return UpdateTask(
            goal=goal,
            held=progress.held,
            in_flight=progress.in_flight,
            flow_control=self.flow_control,
            plan=progress.held_plan,
            union=None if union.staying is None else union,
            carrying=self.carrying,
            unread={name: self._may_hold[name] for name in sorted(self._unread)},
            multicast=self._multicast,
            installed=progress.installed,
            is_amid_step=progress.is_amid_step,
            unconfirmed=progress.unconfirmed_generations,
            is_optional=self._is_optional and goal is self.goal,
            reported=self._reported,
        )

    def refuse(self, task: UpdateTask, reason: str) -> bool:
        """Record that a task has no solution: switches keep what they hold.

        A change in place goes on: after its first step, too many frames are dropped. Returns False
        if there may be a solution soon: packets of older rules have left since the task was
        planned, or the current step has not ended.
        """
        progress, attempts = self.progress, self._attempts
        if len(task.in_flight) != len(progress.in_flight):
            return False
        if task.is_amid_step:
            attempts.early = (task.goal, task.failures) if progress.is_amid_step else None
            return False
        if task.is_optional:
            attempts.declined.add(task.goal)
            return False
        attempts.refuse(task.goal, task.failures, reason)
        if not task.in_flight:
            self._unavoided.clear()
        if not progress.is_in_place:
            progress.abandon()
        return True

    def accept(self, plan: UpdatePlan) -> None:
        """Take the steps of a plan, in place of those that are left of the last one."""
        self.progress.accept(plan)
        self._attempts.retry_all()
        self.reached, self._unused = plan.goal, None
        self._multicast = united(self._multicast, plan.change.multicast)

    # --- steps ---------------------------------------------------------------------------------

    def begin(self) -> Mapping[str, SwitchRules]:
        """Begin the next step, and return the rules of the switches that it changes.

        A step without changes, or no step at all, changes nothing.
        """
        return self.progress.begin() if self.is_due else {}

    def sent(self, name: str, rules: SwitchRules) -> None:
        """Record that a switch is sent all of its rules, which it may hold from now on."""
        before = self._may_hold.get(name, ())
        if rules not in before:
            self._may_hold[name] = (*before, rules)

    def confirm(self, name: str) -> None:
        """Record that a switch holds the rules that it shall hold."""
        self.progress.confirm(name)
        self._may_hold[name] = (self.progress.wanted(name),)
        self._unread.discard(name)
        if not self.progress.waiting:
            self._attempts.early = None

    def purged(self) -> None:
        """Record that no cached entries are left that are older than the current step."""
        self.progress.purged()
        self._attempts.early = None

    def quiescent(self) -> None:
        """Record that no packets are left that were sent before the current step was confirmed."""
        self.progress.quiescent()
        if self.is_there:
            self._multicast = self.reached.desired.plan.multicast
        self._attempts.fewer_in_flight()
