"""The connected switches: each has a green thread that brings its rules into line."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ryu.controller.handler import DEAD_DISPATCHER
from ryu.lib import hub

from knotless.controller.desired import Desired
from knotless.controller.draining import Counters
from knotless.controller.losses import Losses
from knotless.controller.observed import ObservedSwitch
from knotless.controller.roles import Election
from knotless.controller.southbound import sessions
from knotless.controller.southbound.admission import AdmissionWatch
from knotless.controller.southbound.conductor import DEFAULT_PACE, Conductor, Pace
from knotless.controller.southbound.listeners import Prober, Reporter, report_installed
from knotless.controller.southbound.roles import Roles
from knotless.controller.southbound.session import Session, SwitchGoneError, ports_of
from knotless.controller.southbound.takeover import Alone, Read, Takeover
from knotless.controller.status import Status
from knotless.controller.steps import Change, own_rules, reconcile
from knotless.controller.unfinished import Unfinished
from knotless.forwarding.openflow.rules import SwitchRules

_ALIVE_S = 2.0
_LOG = logging.getLogger("knotless.switches")


class Switches:
    """The sessions of all connected switches, by dpid.

    ``session`` makes the session of a Ryu datapath. With an ``election`` this is one of several
    controllers: it changes nothing unless it is the active one; ``refresh`` then reads again what
    operators have changed meanwhile. ``losses`` are what links have lost before, ``unfinished`` is
    where a change is kept until it is complete.
    """

    def __init__(
        self,
        status: Status,
        reporter: Reporter,
        session: Callable[[Any], Session] = Session,
        pace: Pace = DEFAULT_PACE,
        prober: Prober | None = None,
        election: Election | None = None,
        refresh: Callable[[], None] = lambda: None,
        losses: Losses | None = None,
        unfinished: Unfinished | None = None,
    ) -> None:
        self._status = status
        self._reporter = reporter
        self._session = session
        self._prober = prober
        self._sessions: dict[int, Session] = {}
        self._failures: frozenset[str] = frozenset()
        self._comparing = False
        self._transition = status.transition
        self._held: dict[int, SwitchRules] = {}
        """The rules that a switch has confirmed on its present connection."""
        unfinished = unfinished or Unfinished()
        kept = (losses or Losses(), unfinished)
        self._conductor = Conductor(status, self, reporter, pace, *kept)
        self._conductor.start()
        installed = partial(sessions.installed, self._sessions, status.observed)
        hub.spawn(AdmissionWatch(status, installed).run)
        self._read: dict[int, Read] = {}
        """What a switch was found to hold when we became its master."""
        self.roles: Roles | None = None
        if election is not None:
            status.leads = False
            self.roles = Roles(election, status, self._sessions, self)
            self.roles.start()
        authority = self.roles or Alone(status.observed)
        self._takeover = Takeover(status, authority, refresh, pace, unfinished, self._fit)
        if self.roles is None and not status.leads:
            self.lead()

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
        if self.roles is not None:
            self.roles.disconnected(datapath.id)
        self._held.pop(datapath.id, None)
        self._read.pop(datapath.id, None)
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
        if self._prober is not None:
            self._prober.wake()
        self._compare_failures()

    def deliver(self, message: Any) -> None:
        """Pass a reply to the session that waits for it."""
        if session := self._session_of(message):
            session.deliver(message)

    def refuse(self, message: Any) -> None:
        """Pass an error message to the session that caused it."""
        if session := self._session_of(message):
            session.refuse(message)
            if self.roles is not None:
                self.roles.refused(message.datapath.id, message)

    def role_answered(self, message: Any) -> None:
        """Take the answer to a role request."""
        if self.roles is not None and self._session_of(message):
            self.roles.answered(message.datapath.id, message)

    def _session_of(self, message: Any) -> Session | None:
        session = self._sessions.get(message.datapath.id)
        return session if session and session.datapath is message.datapath else None

    # --- called by the prober ----------------------------------------------------------------

    def session_of(self, name: str) -> Session | None:
        """Return the session of a switch, if it is connected."""
        switch = self._status.observed.by_name.get(name)
        return None if switch is None else self._sessions.get(switch.dpid)

    def strangers(self) -> dict[int, Session]:
        """Return the sessions of switches that are not in the fabric, by dpid."""
        unknown = self._status.observed.unknown
        return {dpid: of for dpid, of in self._sessions.items() if dpid in unknown}

    def faults_changed(self, *, returned: bool) -> None:
        """Compare failures after probes have found some; ``returned``: some links work again."""
        if returned:
            self._transition.link_returned()
        self._compare_failures()

    # --- roles: see southbound.roles.Stage ----------------------------------------------------

    def lead(self) -> None:
        """Take over: read what all switches hold, and go on from there."""
        hub.spawn(self._take_over)

    def stand_by(self) -> None:
        """Change nothing any more; what switches hold is not known from now on."""
        self._takeover.give_up()
        self._status.leads = False
        self._held.clear()
        for switch in self._status.observed.switches.values():
            switch.installed = False
        self._reporter.tell("standby")

    def serve(self, dpid: int) -> None:
        """Bring a switch into line that has accepted us while we are active."""
        session, switch = self._sessions.get(dpid), self._status.observed.switches.get(dpid)
        if self._status.leads and session is not None and switch is not None:
            hub.spawn(self._try_to_install, session, switch)

    def _take_over(self) -> None:
        read = self._takeover.run(self._sessions)
        if read is None:
            return
        self._status.leads, self._read = True, read
        self._reporter.tell("takeover", switches=len(read))
        for dpid in self._sessions:
            self.serve(dpid)
        self._conductor.take_over()

    def _may_change(self, dpid: int) -> bool:
        return self._status.leads and (self.roles is None or self.roles.may_change(dpid))

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
        """Replace the desired state, in proven steps; raises as :meth:`Existing.extended`."""
        self._fit(lambda: self._status.extend(new))
        self._conductor.wake()

    def withdraw(self) -> None:
        """Forget what the fabric had before it changed."""
        kept = self._transition.goal.desired.fabric
        gone = self._transition.existing.leaving(kept)
        self._fit(self._status.withdraw)
        _LOG.info("the fabric is %s now; removed: %s", kept.name, ", ".join(gone) or "nothing")

    def _fit(self, change: Callable[[], None]) -> None:
        """Change what exists; then serve the switches that are new, and not those that are gone."""
        observed = self._status.observed
        before = sessions.by_name(self._sessions, observed)
        change()
        if self.roles is not None:
            self.roles.election.fit(frozenset(observed.switches))
        if self._prober is not None:
            self._prober.fit(observed.fabric, before)
        for dpid, session in list(self._sessions.items()):
            if dpid in observed.switches and dpid in observed.unknown:
                observed.unknown.discard(dpid)
                del self._sessions[dpid]
                hub.spawn(self._serve, session)
            elif dpid not in observed.switches and dpid not in observed.unknown:
                observed.unknown.add(dpid)
                self._held.pop(dpid, None)
                self._read.pop(dpid, None)

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
        return sessions.port_counters(self._sessions, self._status.observed)

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
        if self.roles is not None:
            self.roles.connected(datapath.id)
        switch.connect(ports_of(datapath))
        switch.is_new = switch.is_new and self._status.leads
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
        if not self._may_change(switch.dpid):
            return  # when it may, the switch is served again
        began_s = time.monotonic()
        held = self._held.pop(switch.dpid, None)
        refused: list[tuple[Change | None, str]] = []
        if held is None:
            read: Read | None = self._read.pop(switch.dpid, None)
            rules, groups = read or (session.rules(), session.groups())
            if self._prober is not None:
                self._prober.prepare(session, switch, rules)
            self._transition.adopt(switch.name, own_rules(rules))
            wanted = self._transition.wanted(switch.name)
            changes = reconcile(wanted, rules, groups)
            for step in changes.steps:
                if not self._may_change(switch.dpid):
                    return  # as above; the switch is read again then
                refused += session.change(step)
        else:
            wanted = self._transition.wanted(switch.name)
            # The switch may forward only by the old rules or only by the new ones.
            changes = self._transition.changes(switch.name, held)
            refused = session.change_at_once(change for step in changes.steps for change in step)
        if self._sessions.get(switch.dpid) is not session or not self._status.leads:
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
            if switch.is_new:
                switch.is_new = False
                self._compare_failures()
            self._transition.confirm(switch.name)
            self._conductor.wake()
        self._reporter.installed(changes, time.monotonic() - began_s)
        report_installed(self._reporter, switch, wanted, changes)
        if self._status.observed.ready:
            _LOG.info("ready: all %d switches installed", len(self._status.observed.switches))
            self._reporter.tell("ready")
