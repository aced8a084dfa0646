"""The connected switches: each has a green thread that brings its rules into line."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol

from ryu.controller.handler import DEAD_DISPATCHER
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from controller.desired import Desired
from controller.draining import Counters, Port
from controller.observed import ObservedSwitch
from controller.planning import Planned
from controller.southbound.conductor import DEFAULT_PACE, Conductor, Pace
from controller.southbound.session import Session, SwitchGoneError
from controller.status import Status
from controller.steps import Changes, difference, own_rules, reconcile
from forwarding.openflow.rules import SwitchRules

_ALIVE_S = 2.0
_LOG = logging.getLogger("knotless.switches")


class Reporter(Protocol):
    """Who is told what happens."""

    def tell(self, kind: str, **fields: object) -> None:
        """Report an event."""

    def installed(self, changes: Changes, seconds: float) -> None:
        """Report that a switch holds its rules, after these changes."""

    def changed(self, way: Planned, seconds: float) -> None:
        """Report that all switches hold the rules of a plan, this long after it was asked for."""


class Switches:
    """The sessions of all connected switches, by dpid.

    ``session`` makes the session of a Ryu datapath.
    """

    def __init__(
        self,
        status: Status,
        reporter: Reporter,
        session: Callable[[Any], Session] = Session,
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        self._status = status
        self._reporter = reporter
        self._session = session
        self._sessions: dict[int, Session] = {}
        self._failures: frozenset[str] = frozenset()
        self._comparing = False
        self._transition = status.transition
        self._held: dict[int, SwitchRules] = {}
        """The rules that a switch has confirmed on its present connection."""
        self._conductor = Conductor(status, self, reporter, pace)
        self._conductor.start()

    # --- called by event handlers: they return at once ---------------------------------------

    def connected(self, datapath: Any) -> None:
        """Serve a switch that has reported its ports."""
        hub.spawn(self._serve, self._session(datapath))

    def disconnected(self, datapath: Any) -> None:
        """Forget a connection; the switch keeps its rules."""
        session = self._sessions.get(datapath.id)
        if session is None or session.datapath is not datapath:
            return
        session.end()
        del self._sessions[datapath.id]
        self._held.pop(datapath.id, None)
        observed = self._status.observed
        observed.unknown.discard(datapath.id)
        switch = observed.switches.get(datapath.id)
        if switch is not None:
            switch.disconnect()
            _LOG.warning("%s has disconnected; it keeps its rules", switch)
            self._reporter.tell("disconnected", switch=switch.name)
            self._compare_failures()

    def ports_changed(self, datapath: Any) -> None:
        """Record the ports of a switch as they are now."""
        session = self._sessions.get(datapath.id)
        switch = self._status.observed.switches.get(datapath.id)
        if switch is None or session is None or session.datapath is not datapath:
            return
        before = switch.ports or {}
        switch.see_ports(ports_of(datapath))
        for port, far in sorted(switch.needs.items()):
            up = switch.is_up(port)
            if up != before.get(port, False):
                if up:
                    self._transition.link_returned()
                _LOG.warning("%s port %d to %s is %s", switch, port, far, "up" if up else "down")
                self._reporter.tell("port", switch=switch.name, port=port, up=up)
        self._compare_failures()

    def deliver(self, message: Any) -> None:
        """Pass a reply to the session that waits for it."""
        if session := self._session_of(message):
            session.deliver(message)

    def refuse(self, message: Any) -> None:
        """Pass an error message to the session that caused it."""
        if session := self._session_of(message):
            session.refuse(message)

    def _session_of(self, message: Any) -> Session | None:
        session = self._sessions.get(message.datapath.id)
        return session if session and session.datapath is message.datapath else None

    # --- failures ----------------------------------------------------------------------------

    def _compare_failures(self) -> None:
        """Report links and switches that have failed or returned, once for many events."""
        if not self._comparing:
            self._comparing = True
            hub.spawn(self._report_failures)

    def _report_failures(self) -> None:
        self._comparing = False
        found = self._status.observed.failures()
        if found != self._failures:
            self._failures = found
            self._reporter.tell("failures", failed=sorted(found))
        self._conductor.wake()

    # --- changes -----------------------------------------------------------------------------

    def change_to(self, new: Desired) -> None:
        """Replace the desired state, which must be of the same fabric, in proven steps."""
        self._status.desired = new
        self._conductor.wake()

    def take_step(self, names: Iterable[str]) -> None:
        """Have these switches take the rules of the current step; returns at once.

        A switch that is not connected takes them when it comes back.
        """
        wanted = set(names)
        for switch in self._status.observed.switches.values():
            if switch.name not in wanted:
                continue
            switch.installed = False
            session = self._sessions.get(switch.dpid)
            if session is not None:
                hub.spawn(self._try_to_install, session, switch)

    def port_counters(self) -> Counters:
        """Return the frames received and sent by each port of all connected switches."""
        found: dict[Port, tuple[int, int]] = {}
        for dpid, session in list(self._sessions.items()):
            switch = self._status.observed.switches.get(dpid)
            if switch is not None:
                with suppress(SwitchGoneError):
                    counters = session.port_counters().items()
                    found.update({(switch.name, port): of for port, of in counters})
        return found

    def _serve(self, session: Session) -> None:
        datapath, observed = session.datapath, self._status.observed
        switch = observed.switches.get(datapath.id)
        if switch is None:
            observed.unknown.add(datapath.id)
            self._sessions[datapath.id] = session
            return
        older = self._sessions.get(datapath.id)
        if older is not None:
            # Either the switch lost its connection unnoticed, or two switches have this dpid.
            if older.answers(_ALIVE_S):
                observed.duplicate_dpids[datapath.id] = time.monotonic()
                datapath.close()
                return
            older.end()
            older.datapath.close()
        if datapath.state == DEAD_DISPATCHER:
            return
        self._sessions[datapath.id] = session
        switch.connect(ports_of(datapath))
        self._transition.link_returned()  # perhaps, while the switch was not connected
        self._reporter.tell("connected", switch=switch.name)
        self._compare_failures()
        self._try_to_install(session, switch)

    def _try_to_install(self, session: Session, switch: ObservedSwitch) -> None:
        try:
            with session.lock:
                self._install(session, switch)
        except SwitchGoneError as gone:
            _LOG.warning("%s: %s; retrying when it reconnects", switch, gone)
            session.datapath.close()

    def _install(self, session: Session, switch: ObservedSwitch) -> None:
        began_s = time.monotonic()
        held = self._held.pop(switch.dpid, None)
        if held is None:
            rules, groups = session.rules(), session.groups()
            self._transition.adopt(switch.name, own_rules(rules))
            wanted = self._transition.wanted(switch.name)
            changes = reconcile(wanted, rules, groups)
            refused = [of for step in changes.steps for of in session.change(step)]
        else:
            wanted = self._transition.wanted(switch.name)
            # The switch may forward only by the old rules or only by the new ones.
            changes = difference(held, wanted)
            refused = session.change_at_once(change for step in changes.steps for change in step)
        if self._sessions.get(switch.dpid) is not session:
            return
        if not refused:
            self._held[switch.dpid] = wanted
        if self._transition.wanted(switch.name) != wanted:
            return  # another step has begun, which waits for the session
        switch.refused = tuple(f"to {change or 'answer'}: {reason}" for change, reason in refused)
        if held is None:
            switch.foreign = changes.foreign
        switch.installed = not refused
        if not refused:
            self._transition.confirm(switch.name)
            self._conductor.wake()
        added, modified = changes.count("add"), changes.count("modify")
        deleted = changes.count("delete")
        _LOG.info(
            "%s: %d rules as wanted; %d added, %d modified, %d deleted",
            *(switch, len(wanted.rules), added, modified, deleted),
        )
        self._reporter.installed(changes, time.monotonic() - began_s)
        self._reporter.tell(
            "installed",
            switch=switch.name,
            rules=len(wanted.rules),
            added=added,
            modified=modified,
            deleted=deleted,
        )
        if self._status.observed.ready:
            _LOG.info("ready: all %d switches installed", len(self._status.observed.switches))
            self._reporter.tell("ready")


def ports_of(datapath: Any) -> dict[int, bool]:
    """Return for each port of a Ryu datapath whether it is switched on and has a carrier."""
    return {
        number: not (port.config & ofp.OFPPC_PORT_DOWN or port.state & ofp.OFPPS_LINK_DOWN)
        for number, port in datapath.ports.items()
    }
