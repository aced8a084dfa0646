"""The connected switches: each has a green thread that brings its rules into line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from knotless.controller import runtime
from knotless.controller.desired import DesiredState
from knotless.controller.election.election import Election
from knotless.controller.election.roles import Roles
from knotless.controller.election.takeover import SoleMaster, Takeover
from knotless.controller.observed import ObservedSwitch
from knotless.controller.openflow.connection import Connection
from knotless.controller.openflow.records import RoleReply
from knotless.controller.openflow.replies import Refusal
from knotless.controller.openflow.session import (
    Connections,
    Session,
    SwitchContents,
    SwitchEvents,
    SwitchGoneError,
)
from knotless.controller.overrides import StateFile
from knotless.controller.probes.learner import Explorer
from knotless.controller.probes.prober import Prober
from knotless.controller.reconcile import Changes, FoundRule, own_rules, reconcile
from knotless.controller.rule_watch import RuleWatch
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.inherited import holds_other
from knotless.controller.updates.journal import UpdateJournal
from knotless.controller.updates.last_rules import LastRules
from knotless.controller.updates.quiescence import ChannelLosses
from knotless.controller.updates.scheduler import Reporter, UpdateScheduler
from knotless.controller.updates.timing import DEFAULT_TIMING, Timing
from knotless.forwarding.openflow.rules import SwitchRules

_DOUBT_S = 1.0
"""After this time is looked again whether probes show a cable of a switch that connects again."""
_PROVEN_S = 3.0
"""Time for probes to show a cable of a switch, before another one may take its place."""
_LOG = logging.getLogger("knotless.switches")


class Switches(SwitchEvents):
    """All connected switches; the driver of the update scheduler.

    Parameters
    ----------
    state : what is known of the fabric.
    reporter : told what happens.
    threads : those of the controller.
    state_file : what operators have requested.
    make_session : makes the session of a connection.
    timing : how to wait.
    has_probes : whether ports send probes, unless the configuration says that they do not.
    explorer : finds what the fabric does not declare; None: nothing is searched for.
    election : given to one of several controllers, which changes nothing unless it is active.
    losses : frames that links have lost before.
    journal : where an update is kept until it is complete.
    last_rules : what switches were last known to hold.

    """

    def __init__(
        self,
        *,
        state: FabricState,
        reporter: Reporter,
        threads: runtime.Threads,
        state_file: StateFile,
        make_session: Callable[[Connection], Session] = Session,
        timing: Timing = DEFAULT_TIMING,
        has_probes: bool = False,
        explorer: Explorer | None = None,
        election: Election | None = None,
        losses: ChannelLosses | None = None,
        journal: UpdateJournal | None = None,
        last_rules: LastRules | None = None,
    ) -> None:
        super().__init__(make_session, threads)
        self._state, self._update, self._reporter = state, state.update, reporter
        self.connections = Connections(self.sessions, state.observed, self._counters_restarted)
        journal, last_rules = journal or UpdateJournal(), last_rules or LastRules()
        self.rule_watch = RuleWatch(
            state=state,
            connections=self.connections,
            reporter=reporter,
            execute=timing.execute,
            watch_of=self._watch_of,
            repair=self._repair,
            restore_probes=self._restore_probes,
            start_over=self._start_over,
            threads=threads,
        )
        self._prober: Prober | None = None
        if has_probes:
            self._prober = Prober(
                state=state,
                tell=reporter.tell,
                emulator=timing.emulator,
                explorer=explorer,
                connections=self.connections,
                faults_changed=self._faults_changed,
                holds_rules=self.rule_watch.holds_rules,
                threads=threads,
            )
        self._scheduler = UpdateScheduler(
            state=state,
            driver=self,
            read_counters=self.connections.port_counters,
            reporter=reporter,
            timing=timing,
            losses=losses or ChannelLosses(),
            journal=journal,
            last_rules=last_rules,
            probes=self._prober,
            threads=threads,
        )
        self.roles: Roles | None = None
        if election is not None:
            state.stand_by()
            self.roles = Roles(
                election=election,
                observed=state.observed,
                sessions=self.sessions,
                lead=self.lead,
                stand_by=self.stand_by,
                serve=self._serve_again,
                threads=threads,
            )
        self._takeover = Takeover(
            state=state,
            mastership=self.roles or SoleMaster(state.observed),
            state_file=state_file,
            timing=timing,
            journal=journal,
            last_rules=last_rules,
            fit=self._fit,
            threads=threads,
        )
        # All parts have been made, and begin to work.
        self._scheduler.start()
        self.rule_watch.start()
        if self.roles is not None:
            self.roles.start()
        if self._prober is not None:
            self._prober.start()
        if self.roles is None:
            state.stand_by()
            self.lead()

    def close(self) -> None:
        """See :class:`SwitchEvents`."""
        super().close()
        self._scheduler.close()

    # --- see openflow.session.SwitchEvents ----------------------------------------------------

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection; the switch keeps its rules."""
        if (session := self.current(connection)) is None:
            return
        session.end()
        del self.sessions[connection.dpid]
        if self.roles is not None:
            self.roles.disconnected(connection.dpid)
        observed = self._state.observed
        observed.unknown.discard(connection.dpid)
        if (switch := observed.switches.get(connection.dpid)) is not None:
            switch.disconnect()
            _LOG.warning("%s has disconnected; it keeps its rules", switch)
            self._reporter.tell("disconnected", switch=switch.name)
            self._scheduler.compare_failures()

    def ports_changed(self, connection: Connection) -> None:
        """Record the ports of a switch as they are now."""
        switch = self._state.observed.switches.get(connection.dpid)
        if switch is None or self.current(connection) is None:
            return
        before = switch.ports or {}
        switch.see_ports(dict(connection.ports))
        for port, peer in sorted(switch.needs.items()):
            up = switch.is_up(port)
            if up != before.get(port, False):
                if up:
                    self._update.progress.link_returned()
                _LOG.warning("%s port %d to %s is %s", switch, port, peer, "up" if up else "down")
                self._reporter.tell("port", switch=switch.name, port=port, up=up)
        if self._prober is not None:
            self._prober.wake()
        self._scheduler.compare_failures()

    def refuse(self, connection: Connection, refusal: Refusal) -> None:
        """See :class:`SwitchEvents`."""
        super().refuse(connection, refusal)
        if self.roles is not None and self.current(connection):
            self.roles.refused(connection.dpid, refusal)

    def packet_in(self, dpid: int, message: bytes) -> None:
        """Take a frame that a rule of probes has sent to the controller."""
        if self._prober is not None:
            self._prober.packet_in(dpid, message)

    def rules_removed(self, connection: Connection) -> None:
        """Take the report of a switch that a rule was removed."""
        if session := self.current(connection):
            self.rule_watch.hint(session)

    def role_answered(self, connection: Connection, role: RoleReply) -> None:
        """Take the answer to a role request."""
        if self.roles is not None and self.current(connection):
            self.roles.answered(connection.dpid, role)

    def change_to(self, new: DesiredState) -> None:
        """Replace the desired state, in proven steps.

        Raises FabricError if the fabrics of both cannot exist at the same time.
        """
        self._fit(lambda: self._state.extend(new))
        self._scheduler.wake()

    # --- failures ----------------------------------------------------------------------------

    def _faults_changed(self, *, returned: bool) -> None:
        """Compare failures after probes have found some; ``returned``: some links work again."""
        if returned:
            self._update.progress.link_returned()
        self._scheduler.compare_failures()

    def _counters_restarted(self, name: str, ports: frozenset[int]) -> None:
        """Have the links at ports that count from zero again emptied, and their losses counted."""
        links = self._state.observed.fabric.links
        ends = {(name, port) for port in ports}
        lost = [
            link.name for link in links if ends & {(link.a, link.a_port), (link.b, link.b_port)}
        ]
        if lost:
            _LOG.warning("%s counts frames of %s from zero again", name, ", ".join(lost))
            self._update.may_have_lost(lost)
            self._scheduler.wake()

    # --- see updates.scheduler.SwitchDriver ---------------------------------------------------

    def take_step(self, names: Iterable[str]) -> None:
        """Have these switches take the rules of the current step; returns at once.

        A switch that is not connected takes them when it comes back.
        """
        wanted = set(names)
        for switch in self._state.observed.switches.values():
            if switch.name not in wanted:
                continue
            switch.installed = False
            if (session := self.sessions.get(switch.dpid)) is not None:
                self._threads.spawn(self._try_to_install, session, switch)

    def withdraw(self) -> None:
        """Forget what the fabric had before it changed."""
        kept = self._update.goal.desired.fabric
        gone = self._update.union.leaving(kept)
        self._fit(self._state.withdraw)
        _LOG.info("the fabric is %s now; removed: %s", kept.name, ", ".join(gone) or "nothing")

    # --- leadership: see election.roles.Roles -------------------------------------------------

    def lead(self) -> None:
        """Take over: read what all switches hold, and go on from there."""
        self._threads.spawn(self._take_over, self._takeover.begin())

    def stand_by(self) -> None:
        """Change nothing any more; what switches hold is not known from now on."""
        self._forget()
        self._reporter.tell("standby")

    def _forget(self) -> None:
        self._takeover.give_up()
        self._state.stand_by()
        for session in self.sessions.values():
            session.held = session.contents = None

    def _start_over(self, switch: ObservedSwitch) -> None:
        """Read all switches again: one that was missing holds rules of which no proof knows."""
        _LOG.warning("%s holds other rules of ours: all switches are read again", switch)
        self._forget()
        self.lead()

    def _serve_again(self, dpid: int) -> None:
        session, switch = self.sessions.get(dpid), self._state.observed.switches.get(dpid)
        if self._state.leads and session is not None and switch is not None:
            self._threads.spawn(self._try_to_install, session, switch)

    def _take_over(self, number: int) -> None:
        if (count := self._takeover.run(number, self.sessions)) is None:
            return
        self._state.lead()
        self._reporter.tell("takeover", switches=count)
        self._scheduler.compare_failures()
        for dpid in self.sessions:
            self._serve_again(dpid)
        self._scheduler.take_over()

    # --- one switch --------------------------------------------------------------------------

    def _serve(self, session: Session) -> None:
        connection, observed = session.connection, self._state.observed
        switch = observed.switches.get(connection.dpid)
        if switch is None:
            observed.unknown.add(connection.dpid)
            return
        if self.roles is not None:
            self.roles.connected(connection.dpid)
        switch.connect(dict(connection.ports))
        switch.is_new = switch.is_new and self._state.leads
        if (switch.is_contested or switch.is_inherited) and self._state.leads:
            switch.is_unread = True  # another one may have been read in its place
            self._update.doubt(switch.name)
        self._update.progress.link_returned()  # perhaps, while the switch was not connected
        self._reporter.tell("connected", switch=switch.name)
        self._scheduler.compare_failures()
        self._try_to_install(session, switch)

    def _supersedes(self, new: Session, older: Session) -> bool:
        """Return whether a second switch with a dpid takes the place of the first.

        It does if it has more of the ports that the fabric declares; or as many, and no probe shows
        a cable of the first one after some time, although some could.
        """
        observed, dpid = self._state.observed, new.connection.dpid
        switch = observed.switches.get(dpid)
        if switch is None:
            return False
        observed.duplicate_dpids[dpid] = runtime.now_s()
        switch.is_contested = True
        lacking, lacking_now = (
            len(switch.needs.keys() - session.connection.ports.keys()) for session in (new, older)
        )
        if lacking != lacking_now or self._prober is None:
            return lacking < lacking_now
        is_late = runtime.now_s() - older.since_s > _PROVEN_S
        return is_late and self._prober.proves(switch.name, older) is False

    def _try_to_install(self, session: Session, switch: ObservedSwitch) -> None:
        try:
            with session.lock:
                self._install(session, switch)
        except SwitchGoneError as gone:
            _LOG.warning("%s: %s; retrying when it reconnects", switch, gone)
            session.connection.close()

    def _watch_of(self, session: Session, switch: ObservedSwitch) -> Callable[[], bool]:
        """Return a function: whether the switch is still to be served on this connection."""
        state, observed, number = self._state, self._state.observed, self._takeover.number
        return lambda: (
            self.sessions.get(switch.dpid) is session
            and observed.switches.get(switch.dpid) is switch
            and self._takeover.number == number
            and state.leads
            and (self.roles is None or self.roles.may_change(switch.dpid))
        )

    def _install(
        self, session: Session, switch: ObservedSwitch, *, is_repair: bool = False
    ) -> None:
        """Bring the rules of a switch into line; its lock is held.

        ``is_repair``: it has been served on this connection, so its cables are known.
        """
        if self.roles is None and self._takeover.is_running:
            self._read_ahead(session)
            return
        is_current = self._watch_of(session, switch)
        if not is_current():
            return  # when it may be changed, the switch is served again
        began_s = runtime.now_s()
        held, session.held = session.held, None
        if held is None:
            contents, session.contents = session.contents or session.read(), None
            rules, groups, unread, _ = contents
            if not is_current():
                return
            wanted = self._update.progress.wanted(switch.name)
            if switch.is_unread and holds_other(own_rules(rules), wanted):
                self._start_over(switch)
                return
            if is_repair:
                self._restore_probes(session, switch, rules)
            elif self._prober is not None:
                self._prober.prepare(session, switch, rules)
            if not is_current() or not self._is_proven(session, switch):
                return
            wanted = self._update.progress.wanted(switch.name)
            changes = reconcile(wanted, rules, groups, unread=unread)
            switch.foreign, switch.foreign_unread = changes.foreign, unread
            switch.read_s = began_s
        else:
            wanted = self._update.progress.wanted(switch.name)
            changes = self._update.progress.changes(switch.name, held)
        # The switch may forward only by the old rules or only by the new ones.
        self._update.sent(switch.name, wanted)
        refused = session.change_at_once(changes.steps)
        if not is_current():
            return
        if refused and held is not None:
            # It does not hold what it has confirmed, or no longer.
            self._install(session, switch, is_repair=True)
            return
        if not refused:
            session.held = wanted
        if self._update.progress.wanted(switch.name) != wanted:
            return  # another step has begun, which waits for the session
        reasons = tuple(f"to {change or 'answer'}: {reason}" for change, reason in refused)
        if refused and reasons != switch.refused:
            _LOG.error("%s refused %d of the changes to its rules", switch, len(refused))
        switch.refused, switch.installed = reasons, not refused
        switch.is_known = switch.is_known or switch.installed
        if refused:
            return  # it is tried again when the switch is read again
        switch.changed_by_others = 0
        if switch.is_new or switch.is_unread:
            switch.is_new = switch.is_unread = False
            self._scheduler.compare_failures()
        self._update.confirm(switch.name)
        self._scheduler.wake()
        self._report_installed(switch, wanted, changes, runtime.now_s() - began_s)

    def _is_proven(self, session: Session, switch: ObservedSwitch) -> bool:
        """Return whether this may be the switch that has been changed on an earlier connection.

        Another one with the same dpid must not confirm steps in its place. If no probe shows a
        cable of it, it is looked at again.
        """
        proves = None
        if switch.is_known and self._prober is not None:
            proves = self._prober.proves(switch.name, session)
        switch.is_doubted = proves is False
        switch.is_inherited = switch.is_inherited and switch.is_doubted
        if proves:
            switch.is_contested = False
        elif switch.is_doubted:
            switch.is_contested = True
            self._threads.spawn_after(_DOUBT_S, self._try_to_install, session, switch)
        return not switch.is_doubted

    def _repair(self, session: Session, switch: ObservedSwitch, contents: SwitchContents) -> None:
        """Bring the rules of a switch that has been read again into line; its lock is held."""
        session.held, session.contents = None, contents
        self._install(session, switch, is_repair=session.probe_rules is not None)

    def _restore_probes(
        self, session: Session, switch: ObservedSwitch, rules: list[FoundRule]
    ) -> None:
        """Give a switch that holds the rules ``rules`` what it lacks of those of probes."""
        if self._prober is not None:
            self._prober.restore(session, switch, rules)

    def _read_ahead(self, session: Session) -> None:
        """Read a switch for the takeover, which waits for others."""
        if session.contents is None:
            session.contents = session.read()
        dpids = self._state.observed.switches
        read = sum(bool(each.contents) for dpid, each in self.sessions.items() if dpid in dpids)
        if read == len(dpids):
            self._takeover.wake()

    def _report_installed(
        self, switch: ObservedSwitch, wanted: SwitchRules, changes: Changes, seconds: float
    ) -> None:
        """Report that a switch holds the rules ``wanted``, after these changes."""
        self._reporter.installed(changes, seconds)
        counts = {
            "rules": len(wanted.rules),
            "added": changes.count("add"),
            "modified": changes.count("modify"),
            "deleted": changes.count("delete"),
        }
        text = "%s: %d rules as wanted; %d added, %d modified, %d deleted"
        _LOG.info(text, switch, *counts.values())
        self._reporter.tell("installed", switch=switch.name, **counts)
        if self._state.ready:
            _LOG.info("ready: all %d switches installed", len(self._state.observed.switches))
            self._reporter.tell("ready")

    # --- the fabric changes ------------------------------------------------------------------

    def _fit(self, change: Callable[[], None]) -> None:
        """Change what exists; then serve the switches that are new, and not those that are gone."""
        observed = self._state.observed
        before = self.connections.by_name()
        change()
        if self.roles is not None:
            self.roles.election.fit(frozenset(observed.switches))
        if self._prober is not None:
            self._prober.fit(observed.fabric, before)
        for dpid, session in list(self.sessions.items()):
            if dpid in observed.switches and dpid in observed.unknown:
                observed.unknown.discard(dpid)
                del self.sessions[dpid]
                self._threads.spawn(self._take_place, session)
            elif dpid not in observed.switches and dpid not in observed.unknown:
                observed.unknown.add(dpid)
                session.held = session.contents = None
