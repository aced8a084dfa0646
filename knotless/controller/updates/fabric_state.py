"""The state of a fabric in one controller: configured, reported by switches, installed. Pure.

Everything that the controller shows or decides is a function of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from knotless.base.errors import FaultError, KnotlessError
from knotless.controller.desired import DesiredState
from knotless.controller.observed import Observed, UnadmittedFrames
from knotless.controller.updates.journal import BegunUpdate
from knotless.controller.updates.outage import Outage
from knotless.controller.updates.planning import Goal
from knotless.controller.updates.precomputed import PrecomputedRepairs
from knotless.controller.updates.state import UpdateState
from knotless.topologies.failures import Failures

MAX_PLANNING_S = 30.0
"""Planning that takes longer is a problem."""
_FAULT_SHOWN_S = 60.0
"""A request that ended with a fault is a problem for so long; the answer has the reason too."""


class PlanningWatch:
    """The task that is being planned, since when, and requests that ended with a fault. Pure."""

    def __init__(self) -> None:
        self._since_s: dict[str, float] = {}
        self._fault: tuple[str, str, float] | None = None

    @contextmanager
    def timed(
        self, subject: str, clock: Callable[[], float], *, is_request: bool = False
    ) -> Iterator[None]:
        """Record that a subject is planned inside; note a fault that ends a request."""
        self._since_s[subject] = clock()
        try:
            yield
        except FaultError as error:
            if is_request:
                self._fault = (subject, str(error), clock())
            raise
        finally:
            del self._since_s[subject]

    def problems(self, now_s: float) -> list[str]:
        """Return what takes too long, and the last fault, one line each."""
        late = [name for name, at_s in self._since_s.items() if now_s - at_s > MAX_PLANNING_S]
        lines = [f"planning of {name} takes more than {MAX_PLANNING_S:g} s" for name in late]
        if self._fault is not None and now_s - self._fault[2] < _FAULT_SHOWN_S:
            lines.append(f"{self._fault[0]} was not performed: {self._fault[1]}")
        return lines


class FabricState:
    """The one state that the parts of a controller share.

    Attributes
    ----------
    observed : reports of the switches.
    update : the rules that switches shall hold now, and the steps that are left.
    unadmitted : frames that switches did not admit.
    precomputed : update plans for failures that have not happened yet.
    outage : the pairs of hosts that are down because failures have cut their routes.
    planning : what is being planned, for reports.
    file_problems : what a damaged file no longer tells, or a successor will not know because a file
        cannot be written: one line for each subject.
    is_unconfirmed : whether nobody knows what operators have requested: drained parts are those
        that the rules of switches tell, and nothing but repairs changes until one confirms.

    """

    def __init__(self, desired: DesiredState) -> None:
        self._desired = desired
        self.observed = Observed(desired.fabric)
        self.update = UpdateState(desired)
        self.unadmitted = UnadmittedFrames(desired.fabric)
        self.precomputed = PrecomputedRepairs()
        self.outage: Outage | None = None
        self.planning = PlanningWatch()
        self.file_problems: dict[str, str] = {}
        self.is_unconfirmed = False
        self._leads, self._is_interrupted = True, False

    @property
    def desired(self) -> DesiredState:
        """The desired state; the goal follows it in steps."""
        return self._desired

    @property
    def leads(self) -> bool:
        """Whether this controller changes rules.

        It does when it has read the rules of all switches; of several, only the active one.
        """
        return self._leads

    @property
    def is_interrupted(self) -> bool:
        """Whether an update has begun that is not complete.

        Another controller has begun it, or this one before it was started again.
        """
        return self._is_interrupted

    @property
    def ready(self) -> bool:
        """Whether every switch has acknowledged exactly its rules, and these are of a plan.

        It is not if the goal cannot be reached: the rules are of another plan than it asks for; nor
        if an operator is to confirm what it is.
        """
        is_reachable = self.update.problem is None and self.update.progress.has_plan
        is_goal_certain = is_reachable and not self.is_unconfirmed
        return self._leads and self.observed.ready and is_goal_certain

    @contextmanager
    def keeping(self, subject: str) -> Iterator[None]:
        """Have it be a problem if a file cannot be written inside, until it is written again.

        ``subject`` is what a successor will not know.
        """
        try:
            yield
        except KnotlessError as error:
            self.file_problems[subject] = f"a successor will not know {subject}: {error}"
        else:
            self.file_problems.pop(subject, None)

    def lead(self) -> None:
        """Change rules from now on."""
        self._leads = True

    def stand_by(self) -> None:
        """Change nothing any more; what switches hold is not known from now on."""
        self._leads = False
        for switch in self.observed.switches.values():
            switch.installed = switch.is_unread = False

    def note_interrupted(self, *, interrupted: bool) -> None:
        """Record whether there is an update that has begun and is not complete."""
        self._is_interrupted = interrupted

    def failures(self) -> Failures:
        """Return the links and switches that must not carry frames now."""
        return Failures.from_names(self.observed.fabric, self.observed.failures())

    def replace(self, desired: DesiredState) -> None:
        """Take another desired state of the same fabric."""
        self._desired = desired

    def extend(self, desired: DesiredState) -> None:
        """Take another desired state; what its fabric adds exists from now on as well.

        Raises FabricError if both cannot exist at the same time.
        """
        self.update.extend(desired)
        self._desired = desired
        self._fit()

    def differs(self, begun: BegunUpdate) -> bool:
        """Return whether more exists since an update has begun than is known.

        Raises FabricError if it cannot exist together with the desired state.
        """
        new, union = begun.union.extended(self._desired.fabric), self.update.union
        return (new.fabric, new.staying) != (union.fabric, union.staying)

    def resume(self, begun: BegunUpdate) -> None:
        """Go on with an update that was begun and is not complete.

        Nothing may be changed before all rules were read. Raises FabricError if the desired state
        and what exists since then cannot be united.
        """
        self.update.union = begun.union.extended(self._desired.fabric)
        self.update.flow_control = begun.flow_control
        self._leads, self._is_interrupted = False, True
        self._fit()

    def withdraw(self) -> None:
        """Forget what the fabric had before it changed."""
        # Where this one does not lead, another controller has reached the goal.
        self.update.withdraw(None if self._leads else Goal(self._desired))
        self._fit()

    def _fit(self) -> None:
        self.observed.fit(self.update.union.fabric)
        self.unadmitted.fit(self.update.union.fabric)
