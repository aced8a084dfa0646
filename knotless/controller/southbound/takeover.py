"""Takes over the switches from another controller: reads all rules, then goes on.

Another controller was active, or this one was started again in the middle of a change.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

from ryu.lib import hub

from knotless.base.errors import KnotlessError
from knotless.controller.observed import Observed
from knotless.controller.southbound.conductor import Pace
from knotless.controller.southbound.session import Session, SwitchGoneError
from knotless.controller.status import Status
from knotless.controller.steps import FoundGroup, FoundRule, own_rules
from knotless.controller.takeover import Found, found_in
from knotless.controller.unfinished import Unfinished
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.topologies.failures import Failures

_LOG = logging.getLogger("knotless.roles")

Read = tuple[list[FoundRule], list[FoundGroup]]


class Authority(Protocol):
    """Which switches this controller may change."""

    def may_change(self, dpid: int) -> bool:
        """Tell whether the rules of a switch may be changed now."""

    @property
    def dead(self) -> set[int]:
        """The dpids of switches that carry no frames, whose rules do not matter."""

    @property
    def is_complete(self) -> bool:
        """Whether no switch that is not dead can still obey another controller."""


class Alone:
    """The authority of the only controller."""

    is_complete = True

    def __init__(self, observed: Observed) -> None:
        self._observed = observed

    def may_change(self, dpid: int) -> bool:
        """Tell whether a switch is one of the fabric."""
        return dpid in self._observed.switches

    @property
    def dead(self) -> set[int]:
        """The dpids of switches that carry no frames."""
        return self._observed.dead_dpids()


class Takeover:
    """One takeover at a time; ``refresh`` reads again what operators have changed meanwhile.

    ``unfinished`` is where a change is kept that is not complete. ``fit`` calls a function that
    changes what exists, and has everybody else go on with that.
    """

    def __init__(
        self,
        status: Status,
        authority: Authority,
        refresh: Callable[[], None],
        pace: Pace,
        unfinished: Unfinished,
        fit: Callable[[Callable[[], None]], None],
    ) -> None:
        self._status, self._authority = status, authority
        self._refresh, self._pace = refresh, pace
        self._unfinished, self._fit = unfinished, fit
        self._number = 0

    def give_up(self) -> None:
        """Stop: this controller is not active any more."""
        self._number += 1

    def run(self, sessions: dict[int, Session]) -> dict[int, Read] | None:
        """Find out what the switches hold, and make it what routes go on from.

        ``sessions`` are those of all connected switches, at any time. Returns what switches were
        found to hold; None if it has been given up.
        """
        self._number += 1
        number, began_s = self._number, time.monotonic()
        while True:
            self._refresh()
            self._see_change()
            desired, observed = self._status.desired, self._status.observed
            mine = {of: one for of, one in sessions.items() if self._authority.may_change(of)}
            waits = self._status.unfinished and not self._alive <= mine.keys()
            read = None if waits else self._read(mine)
            if read is not None:
                fabric = observed.fabric
                failures = Failures.of(fabric, observed.failures())
                found: Found = self._pace.execute(
                    found_in, desired, failures, _own(read, observed), fabric
                )
            if number != self._number:
                return None
            if read is not None and self._suffices(found, set(read)):
                break
            hub.sleep(self._pace.retry_s)
        self._status.transition.inherit(found)
        what = "all is correct" if found.plan else "a change was not finished"
        _LOG.warning(
            "%d switches taken over in %.3f s: %s", len(read), time.monotonic() - began_s, what
        )
        return read

    def _see_change(self) -> None:
        """Take note of what exists since a change has begun, whoever has begun it."""
        status = self._status
        try:
            begun = self._unfinished.read()
            status.unfinished = begun is not None
            if begun is not None and status.differs(begun):
                self._fit(lambda: status.resume(begun))
        except KnotlessError as error:
            _LOG.error("a change that was not finished is not known: %s", error)

    def _suffices(self, found: Found, read: set[int]) -> bool:
        """Whether all is known from which to go on.

        If what was found is not a goal, or a change may go on, all switches that are not dead must
        have been read.
        """
        if found.goal.desired is not self._status.desired:
            return False
        is_goal = found.plan is not None and not self._status.unfinished
        return is_goal or (self._authority.is_complete and self._alive <= read)

    @property
    def _alive(self) -> set[int]:
        return set(self._status.observed.switches) - self._authority.dead

    def _read(self, sessions: dict[int, Session]) -> dict[int, Read] | None:
        """Read all rules and groups, at the same time; None if a switch is gone meanwhile."""
        found: dict[int, Read] = {}

        def read(dpid: int, session: Session) -> None:
            try:
                found[dpid] = (session.rules(), session.groups())
            except SwitchGoneError:
                session.datapath.close()

        hub.joinall([hub.spawn(read, dpid, session) for dpid, session in sessions.items()])
        return found if len(found) == len(sessions) and found else None


def _own(read: dict[int, Read], observed: Observed) -> dict[str, SwitchRules]:
    """Return our own rules in each switch, by name."""
    held = {}
    for dpid, (rules, groups) in read.items():
        own = own_rules(rules)
        used = frozenset[int]().union(*(of.uses_groups for of in rules if of.rule in own.rules))
        mine = tuple(of.group for of in groups if of.group and of.group_id in used)
        held[observed.switches[dpid].name] = SwitchRules(own.rules, mine)
    return held
