"""Takes over the switches when this controller becomes active: reads all rules, then goes on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from ryu.lib import hub

from controller.observed import Observed
from controller.southbound.roles import Roles
from controller.southbound.session import Session, SwitchGoneError
from controller.status import Status
from controller.steps import FoundGroup, FoundRule, own_rules
from controller.takeover import Found, found_in
from forwarding.openflow.rules import SwitchRules
from topologies.failures import Failures

_RETRY_S = 0.5
_LOG = logging.getLogger("knotless.roles")

Read = tuple[list[FoundRule], list[FoundGroup]]


class Takeover:
    """One takeover at a time; ``refresh`` reads again what operators have changed meanwhile.

    ``execute`` calls a function that can take long, while switches are served.
    """

    def __init__(
        self,
        status: Status,
        roles: Roles,
        refresh: Callable[[], None],
        execute: Callable[..., Any],
    ) -> None:
        self._status, self._roles = status, roles
        self._refresh, self._execute = refresh, execute
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
            desired, observed = self._status.desired, self._status.observed
            read = self._read(
                {of: session for of, session in sessions.items() if self._roles.may_change(of)}
            )
            if read is not None:
                fabric = observed.fabric
                failures = Failures.of(fabric, observed.failures())
                found = self._execute(found_in, desired, failures, _own(read, observed), fabric)
            if number != self._number:
                return None
            if read is not None and self._suffices(found, set(read)):
                break
            hub.sleep(_RETRY_S)
        self._status.transition.inherit(found)
        what = "all is correct" if found.plan else "another controller has not finished a change"
        _LOG.warning(
            "%d switches taken over in %.3f s: %s", len(read), time.monotonic() - began_s, what
        )
        return read

    def _suffices(self, found: Found, read: set[int]) -> bool:
        """Whether all is known from which to go on.

        If what was found is not a goal, all switches that are not dead must have been read.
        """
        if found.goal.desired is not self._status.desired:
            return False
        observed = self._status.observed
        alive = set(observed.switches) - self._roles.dead
        return found.plan is not None or (self._roles.election.is_complete and alive <= read)

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
