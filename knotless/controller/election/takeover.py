"""Takes over the switches: reads all rules, then goes on from what they hold.

Another controller was active, or this one was started again: what has failed or returned meanwhile
is not known, nor whether an update was complete. Nothing is written before all switches are read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Protocol

from knotless.base.errors import KnotlessError
from knotless.controller import runtime
from knotless.controller.observed import Observed
from knotless.controller.openflow.session import Session, SwitchGoneError
from knotless.controller.overrides import StateFile
from knotless.controller.reconcile import own_rules
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.inherited import (
    InheritedRules,
    adopted_rules,
    inherited_rules,
    replaced_if_unsafe,
)
from knotless.controller.updates.journal import UpdateJournal
from knotless.controller.updates.last_rules import LastRules
from knotless.controller.updates.scheduler import MISSING_RULES
from knotless.controller.updates.timing import Timing
from knotless.forwarding.openflow.rules import NO_RULES, SwitchRules
from knotless.topologies.failures import Failures

_LOG = logging.getLogger("knotless.roles")


class MastershipView(Protocol):
    """The switches that this controller may change."""

    def may_change(self, dpid: int) -> bool:
        """Return whether the rules of a switch may be changed now."""

    @property
    def dead(self) -> set[int]:
        """The dpids of switches that carry no frames, whose rules do not matter."""

    @property
    def is_complete(self) -> bool:
        """Whether no switch that is not dead can still obey another controller."""

    @property
    def is_sole(self) -> bool:
        """Whether there is no other controller."""


class SoleMaster:
    """The :class:`MastershipView` of the only controller."""

    is_complete = is_sole = True

    def __init__(self, observed: Observed) -> None:
        self._observed = observed

    def may_change(self, dpid: int) -> bool:
        """Return whether a switch is one of the fabric."""
        return dpid in self._observed.switches

    @property
    def dead(self) -> set[int]:
        """The dpids of switches that carry no frames."""
        return self._observed.dead_dpids()


class Takeover:
    """One takeover at a time.

    Parameters
    ----------
    state : what is known; it goes on from what switches hold.
    mastership : the switches that may be changed.
    state_file : what operators have requested, perhaps of another controller meanwhile.
    timing : how to wait.
    journal : where an update is kept that is not complete.
    last_rules : what switches were last known to hold, which those that are missing may still hold.
    fit : calls a function that changes what exists, and has everybody else go on with that.
    threads : those of the controller.

    """

    def __init__(
        self,
        *,
        state: FabricState,
        mastership: MastershipView,
        state_file: StateFile,
        timing: Timing,
        journal: UpdateJournal,
        last_rules: LastRules,
        fit: Callable[[Callable[[], None]], None],
        threads: runtime.Threads,
    ) -> None:
        self._state, self._mastership = state, mastership
        self._state_file, self._timing = state_file, timing
        self._journal, self._last_rules, self._fit = journal, last_rules, fit
        self._threads = threads
        self.number = 0
        """Counts the takeovers that were begun, and those that were given up."""
        self._reported = ""
        self._woken = runtime.Event()
        self._reading = set[Session]()
        """The sessions of the switches that are being read."""
        self.is_running = False
        """Whether a takeover was begun that is not complete."""

    def begin(self) -> int:
        """Return the number of a new takeover; one that was begun before is given up."""
        self.number, self.is_running = self.number + 1, True
        return self.number

    def give_up(self) -> None:
        """Stop: this controller is not active any more."""
        self.number, self.is_running = self.number + 1, False

    def wake(self) -> None:
        """Look again at once: more switches have been read."""
        self._woken.set()

    def run(self, number: int, sessions: Mapping[int, Session]) -> int | None:
        """Read what the switches hold, and make it what routes go on from.

        ``number`` is that of :meth:`begin`. ``sessions`` are those of all connected switches, at
        any time; what was read is kept there. Returns the number of switches; None if the takeover
        has been given up.
        """
        began_s = came_s = runtime.now_s()
        came = set[tuple[int, bool]]()
        while number == self.number:
            self._state_file.follow()
            self._see_interrupted_update()
            may_change = self._mastership.may_change
            mine = {dpid: session for dpid, session in sessions.items() if may_change(dpid)}
            self._begin_reading(number, mine.values())
            read = {dpid: session for dpid, session in mine.items() if session.contents}
            # As long as more and more come, or have been read, nothing is late.
            seen = {(dpid, dpid in read) for dpid in mine}
            if not seen <= came:
                came |= seen
                came_s = runtime.now_s()
            is_late = runtime.now_s() - came_s >= self._state.desired.config.connect_timeout_s
            goes_on = self._alive <= read.keys() or (is_late and not self._state.is_interrupted)
            if read and goes_on:
                is_doubted = bool(self._doubted(read.keys()))
                last = self._timing.execute(self._last_known) if is_doubted else {}
                inherited = self._inherited(read, last)
                if number != self.number:
                    return None
                is_current = all(sessions.get(dpid) is session for dpid, session in read.items())
                if is_current and self._suffices(inherited, read.keys(), is_late=is_late):
                    self._go_on_from(inherited, read.keys(), last)
                    self.is_running = False
                    result = "all is correct" if inherited is None else inherited.text
                    seconds = runtime.now_s() - began_s
                    _LOG.warning("%d switches read in %.3f s: %s", len(read), seconds, result)
                    return len(read)
            self._woken.wait(timeout=self._timing.retry_s)
            self._woken.clear()
        return None

    def _begin_reading(self, number: int, sessions: Iterable[Session]) -> None:
        """Have all rules and groups read, at the same time, unless they are known.

        A switch that is slow holds up no other: it is late in the end. A change that was begun
        before this controller was last put on standby ends first.
        """

        def read(session: Session) -> None:
            try:
                with session.lock:
                    contents = session.contents or session.read()
                if number == self.number:
                    session.contents = contents
            except SwitchGoneError:
                session.connection.close()
            finally:
                self._reading.discard(session)
                self.wake()

        for session in sessions:
            if session.contents is None and session not in self._reading:
                self._reading.add(session)
                self._threads.spawn(read, session)

    def _doubted(self, read: Set[int]) -> set[int]:
        """Return the switches that were not read, or perhaps another one in their place."""
        switches = self._state.observed.switches
        return {dpid for dpid in switches if dpid not in read or switches[dpid].is_contested}

    def _inherited(
        self, sessions: Mapping[int, Session], last: Mapping[str, SwitchRules]
    ) -> InheritedRules | None:
        """Return what these switches hold; the others count as failed.

        Those are taken to hold what they were ``last`` known to hold: they may forward by it. What
        can deadlock is replaced by the rules of the goal.

        None: a fabric without rules, in which nothing has to be taken into account.
        """
        observed = self._state.observed
        unread = [switch.name for dpid, switch in observed.switches.items() if dpid not in sessions]
        held = _own(sessions, observed)
        if self._knows_no_update and not unread and not any(rules.rules for rules in held.values()):
            return None
        held = {**{name: last[name] for name in unread if name in last}, **held}
        is_unconfirmed = self._state.is_unconfirmed
        inherited: InheritedRules = self._timing.execute(
            adopted_rules if is_unconfirmed else inherited_rules,
            self._state.desired,
            Failures.from_names(observed.fabric, {*observed.failures(), *unread}),
            held,
            observed.fabric,
        )
        if is_unconfirmed and self._state.is_unconfirmed:
            self._state_file.adopt(inherited.goal.desired)
        if self._mastership.is_complete and inherited.plan is None:
            inherited = self._timing.execute(replaced_if_unsafe, inherited, observed.fabric)
        return inherited

    def _last_known(self) -> Mapping[str, SwitchRules]:
        try:
            return self._last_rules.read()
        except KnotlessError as error:
            line = f"what missing switches hold is not known: {error}"
            self._state.file_problems[MISSING_RULES] = line
            return {}

    @property
    def _knows_no_update(self) -> bool:
        """Whether the only controller has just started, and its last update had been complete."""
        is_first = self._mastership.is_sole and self._state.update.is_fresh
        return is_first and not self._state.is_interrupted

    def _go_on_from(
        self, inherited: InheritedRules | None, read: Set[int], last: Mapping[str, SwitchRules]
    ) -> None:
        for dpid, switch in self._state.observed.switches.items():
            switch.is_unread, switch.is_inherited = dpid not in read, dpid in read
            if switch.is_unread:
                _LOG.warning("%s was not read: it counts as failed until it has been", switch)
        if inherited is not None:
            switches = self._state.observed.switches
            for dpid in read & switches.keys():
                switches[dpid].is_known = True
            is_quiescent = self._knows_no_update and inherited.plan is not None
            held = {**inherited.held.rules, **last}
            doubted = self._doubted(read) & (self._alive | read)
            names = [switches[dpid].name for dpid in sorted(doubted)]
            unread = {name: held.get(name, NO_RULES) for name in names}
            self._state.update.inherit(inherited, is_quiescent=is_quiescent, unread=unread)
        self._state.update.is_fresh = False

    def _see_interrupted_update(self) -> None:
        """Take note of what exists since an update has begun, whoever has begun it."""
        state = self._state
        try:
            begun = self._journal.read()
            state.note_interrupted(interrupted=begun is not None)
            if begun is not None and state.differs(begun):
                self._fit(lambda: state.resume(begun))
        except KnotlessError as error:
            if str(error) != self._reported:
                self._reported = str(error)
                _LOG.error("a change that was not finished is not known: %s", error)

    def _suffices(self, inherited: InheritedRules | None, read: Set[int], *, is_late: bool) -> bool:
        """Return whether all is known from which to go on.

        All switches that are not dead must have been read, and obey no other controller. When the
        time is over in which another may come, it goes on without them; of several controllers,
        one that may not have reached all switches does so only if the others hold the rules of a
        goal, and no update may go on.
        """
        if inherited is not None and inherited.goal.desired is not self._state.desired:
            return False
        if self._alive <= read and self._mastership.is_complete:
            return True
        is_goal = inherited is None or inherited.plan is not None
        may_be_missing = self._mastership.is_complete or is_goal
        return is_late and may_be_missing and not self._state.is_interrupted

    @property
    def _alive(self) -> set[int]:
        return set(self._state.observed.switches) - self._mastership.dead


def _own(sessions: Mapping[int, Session], observed: Observed) -> dict[str, SwitchRules]:
    """Return our own rules in each switch that was read, by name."""
    held = {}
    for dpid, session in sessions.items():
        if dpid not in observed.switches or session.contents is None:
            continue  # it has been removed meanwhile
        rules, groups, *_ = session.contents
        held[observed.switches[dpid].name] = own_rules(rules, groups)
    return held
