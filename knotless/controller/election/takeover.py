"""Takes over the switches: reads all rules, then goes on from what they hold.

Another controller was active, or this one was started again in the middle of an update.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from knotless.base.errors import KnotlessError
from knotless.controller import runtime
from knotless.controller.observed import Observed
from knotless.controller.openflow.session import Session, SwitchContents, SwitchGoneError
from knotless.controller.reconcile import own_rules
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.inherited import InheritedRules, inherited_rules
from knotless.controller.updates.journal import UpdateJournal
from knotless.controller.updates.scheduler import Timing
from knotless.forwarding.openflow.rules import SwitchRules

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


class SoleMaster:
    """The :class:`MastershipView` of the only controller."""

    is_complete = True

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
    refresh : reads again what operators have changed meanwhile.
    timing : how to wait.
    journal : where an update is kept that is not complete.
    fit : calls a function that changes what exists, and has everybody else go on with that.

    """

    def __init__(
        self,
        *,
        state: FabricState,
        mastership: MastershipView,
        refresh: Callable[[], None],
        timing: Timing,
        journal: UpdateJournal,
        fit: Callable[[Callable[[], None]], None],
    ) -> None:
        self._state, self._mastership = state, mastership
        self._refresh, self._timing = refresh, timing
        self._journal, self._fit = journal, fit
        self._number = 0

    def give_up(self) -> None:
        """Stop: this controller is not active any more."""
        self._number += 1

    def run(self, sessions: Mapping[int, Session]) -> int | None:
        """Read what the switches hold, and make it what routes go on from.

        ``sessions`` are those of all connected switches, at any time; what was read is kept there.
        Returns the number of switches; None if the takeover has been given up.
        """
        self._number += 1
        number, began_s = self._number, runtime.now_s()
        while True:
            self._refresh()
            self._see_interrupted_update()
            desired, observed = self._state.desired, self._state.observed
            mine = {
                dpid: session
                for dpid, session in sessions.items()
                if self._mastership.may_change(dpid)
            }
            waits = self._state.is_interrupted and not self._alive <= mine.keys()
            contents = None if waits else _read(mine)
            if contents is not None:
                inherited: InheritedRules = self._timing.execute(
                    inherited_rules,
                    desired,
                    self._state.failures(),
                    _own(contents, observed),
                    observed.fabric,
                )
            if number != self._number:
                return None
            is_current = all(sessions.get(dpid) is session for dpid, session in mine.items())
            if contents is not None and is_current and self._suffices(inherited, set(contents)):
                break
            runtime.sleep(self._timing.retry_s)
        self._state.update.inherit(inherited)
        for dpid, session in mine.items():
            session.held, session.contents = None, contents[dpid]
        result = "all is correct" if inherited.plan else "a change was not finished"
        _LOG.warning(
            "%d switches taken over in %.3f s: %s",
            len(contents),
            runtime.now_s() - began_s,
            result,
        )
        return len(contents)

    def _see_interrupted_update(self) -> None:
        """Take note of what exists since an update has begun, whoever has begun it."""
        state = self._state
        try:
            begun = self._journal.read()
            state.note_interrupted(interrupted=begun is not None)
            if begun is not None and state.differs(begun):
                self._fit(lambda: state.resume(begun))
        except KnotlessError as error:
            _LOG.error("a change that was not finished is not known: %s", error)

    def _suffices(self, inherited: InheritedRules, read: set[int]) -> bool:
        """Return whether all is known from which to go on.

        If the rules are not those of a goal, or an update may go on, all switches that are not dead
        must have been read.
        """
        if inherited.goal.desired is not self._state.desired:
            return False
        is_goal = inherited.plan is not None and not self._state.is_interrupted
        return is_goal or (self._mastership.is_complete and self._alive <= read)

    @property
    def _alive(self) -> set[int]:
        return set(self._state.observed.switches) - self._mastership.dead


def _read(sessions: Mapping[int, Session]) -> dict[int, SwitchContents] | None:
    """Read all rules and groups, at the same time; None if a switch is gone meanwhile.

    A change that was begun before this controller was last put on standby ends first.
    """
    contents: dict[int, SwitchContents] = {}

    def read(dpid: int, session: Session) -> None:
        try:
            with session.lock:
                contents[dpid] = (session.rules(), session.groups())
        except SwitchGoneError:
            session.datapath.close()

    runtime.join([runtime.spawn(read, dpid, session) for dpid, session in sessions.items()])
    return contents if len(contents) == len(sessions) and contents else None


def _own(contents: Mapping[int, SwitchContents], observed: Observed) -> dict[str, SwitchRules]:
    """Return our own rules in each switch, by name."""
    held = {}
    for dpid, (rules, groups) in contents.items():
        if dpid not in observed.switches:
            continue  # it has been removed meanwhile
        own = own_rules(rules)
        used = frozenset[int]().union(
            *(rule.uses_groups for rule in rules if rule.rule in own.rules)
        )
        mine = tuple(each.group for each in groups if each.group and each.group_id in used)
        held[observed.switches[dpid].name] = SwitchRules(own.rules, mine)
    return held
