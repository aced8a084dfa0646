"""The state of a fabric in one controller: configured, reported by switches, installed. Pure.

Everything that the controller shows or decides is a function of it.
"""

from __future__ import annotations

from knotless.controller.desired import DesiredState
from knotless.controller.observed import Observed, UnadmittedFrames
from knotless.controller.updates.journal import BegunUpdate
from knotless.controller.updates.planning import Goal
from knotless.controller.updates.precomputed import PrecomputedRepairs
from knotless.controller.updates.state import UpdateState
from knotless.topologies.failures import Failures


class FabricState:
    """The one state that the parts of a controller share.

    Attributes
    ----------
    observed : reports of the switches.
    update : the rules that switches shall hold now, and the steps that are left.
    unadmitted : frames that switches did not admit.
    precomputed : update plans for failures that have not happened yet.

    """

    def __init__(self, desired: DesiredState) -> None:
        self._desired = desired
        self.observed = Observed(desired.fabric)
        self.update = UpdateState(desired)
        self.unadmitted = UnadmittedFrames(desired.fabric)
        self.precomputed = PrecomputedRepairs()
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
        """Whether every switch has acknowledged exactly its rules, which are those of a plan."""
        return self._leads and self.observed.ready and self.update.has_plan

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
        if not self._leads:
            self.update.goal = Goal(self._desired)  # another controller has reached it
        self.update.withdraw()
        self._fit()

    def _fit(self) -> None:
        self.observed.fit(self.update.union.fabric)
        self.unadmitted.fit(self.update.union.fabric)
