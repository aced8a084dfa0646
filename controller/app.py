"""The Ryu application: ``ryu-manager controller/app.py``.

Event handlers only. :mod:`controller.state` decides what to install, :mod:`controller.reconcile`
what to change, and :mod:`controller.session` talks to one switch. Rules are never deleted on exit:
a fabric keeps forwarding without its controller.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from typing import Any, ClassVar, NoReturn

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from controller import config
from controller.northbound.access import Access, read_token
from controller.northbound.api import Api
from controller.northbound.server import Server
from controller.reconcile import reconcile
from controller.session import Session, SwitchGoneError
from controller.southbound import listener, options
from controller.state import FabricState, SwitchState
from topologies import KnotlessError
from topologies.formats.files import to_json

_ALIVE_S = 2.0


class KnotlessController(app_manager.RyuApp):
    """Installs the rules of the configured fabric in every switch that connects."""

    OFP_VERSIONS: ClassVar = [ofp.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        signal.signal(signal.SIGTERM, _leave)
        try:
            self.state = self._prepare()
        except KnotlessError as error:
            _fail(error)
        self.sessions: dict[int, Session] = {}
        self.state.started_s = time.monotonic()
        hub.spawn_after(self.state.config.connect_timeout_s, self._report_missing)

    def _prepare(self) -> FabricState:
        path = config.find()
        settings = config.read(path) if path else config.Config()
        listening = options.read(settings.rest.host, settings.rest.port)
        options.refuse_taken_port(listening.openflow_host, listening.openflow_port, "OpenFlow")
        options.refuse_taken_port(listening.rest_host, listening.rest_port, "REST")
        options.allow_open_files()
        listener.install(listening.tls)
        if path is None:
            self.logger.info("no %s here: using the defaults", config.DEFAULT_FILE)
        fabric = config.load_fabric(settings, path)
        token = config.token_path(settings, path)
        access = Access(read_token(token) if token else None, listening.rest_host)
        state = FabricState.compute(settings, fabric)
        verdict = state.verdict
        self.logger.info(
            "%s, %s: %d switches, %d rules; %d of %d pairs delivered, %s",
            fabric.name,
            state.plan.engine,
            len(fabric.switches),
            sum(len(rules.rules) for rules in state.rules.values()),
            verdict.pairs - verdict.undelivered,
            verdict.pairs,
            verdict.text,
        )
        if not verdict.acyclic:
            self.logger.warning("it is installed nevertheless: allow_deadlock is set")
        reads = {
            "/status": lambda: state.status(time.monotonic()),
            "/plan": lambda: state.summary,
            "/check": state.verdict.as_json,
            "/fabric": lambda: to_json(state.fabric),
        }
        server = Server((listening.rest_host, listening.rest_port), Api(reads, {}, access).answer)
        hub.spawn(server.serve_forever)
        return state

    # --- connections -------------------------------------------------------------------------

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state_change(self, event: Any) -> None:
        """Handle a switch that has connected and reported its ports, or has disconnected."""
        datapath = event.datapath
        if event.state == MAIN_DISPATCHER:
            hub.spawn(self._serve, Session(datapath))
        elif datapath.id is not None:
            self._forget(datapath)

    def _serve(self, session: Session) -> None:
        datapath = session.datapath
        switch = self.state.switches.get(datapath.id)
        if switch is None:
            self.state.unknown.add(datapath.id)
            self.sessions[datapath.id] = session
            self.logger.warning("%s", self.state.unknown_dpid(datapath.id))
            return
        older = self.sessions.get(datapath.id)
        if older is not None:
            # Either the switch lost its connection unnoticed, or two switches have this dpid.
            if older.answers(_ALIVE_S):
                self.state.duplicate_dpids[datapath.id] = time.monotonic()
                self.logger.error("%s", self.state.duplicate_dpid(datapath.id))
                datapath.close()
                return
            older.end()
            older.datapath.close()
        if datapath.state == DEAD_DISPATCHER:
            return
        self.sessions[datapath.id] = session
        switch.connect(set(datapath.ports))
        for line in switch.problems():
            self.logger.error("%s", line)
        try:
            self._install(session, switch)
        except SwitchGoneError as gone:
            self.logger.warning("%s: %s; retrying when it reconnects", switch, gone)
            datapath.close()

    def _install(self, session: Session, switch: SwitchState) -> None:
        changes = reconcile(switch.wanted, session.rules(), session.groups())
        refused = [
            f"to {change or 'answer'}: {reason}"
            for step in changes.steps
            for change, reason in session.change(step)
        ]
        if self.sessions.get(switch.dpid) is not session:
            return
        switch.refused, switch.foreign = tuple(refused), changes.foreign
        switch.installed = not refused
        self.logger.info(
            "%s: %d rules as wanted; %d added, %d modified, %d deleted",
            switch,
            len(switch.wanted.rules),
            changes.count("add"),
            changes.count("modify"),
            changes.count("delete"),
        )
        for line in switch.problems():
            self.logger.warning("%s", line)
        if self.state.ready:
            self.logger.info("ready: all %d switches installed", len(self.state.switches))

    def _forget(self, datapath: Any) -> None:
        session = self.sessions.get(datapath.id)
        if session is None or session.datapath is not datapath:
            return
        session.end()
        del self.sessions[datapath.id]
        self.state.unknown.discard(datapath.id)
        switch = self.state.switches.get(datapath.id)
        if switch is not None:
            switch.disconnect()
            self.logger.warning("%s has disconnected; it keeps its rules", switch)

    def _report_missing(self) -> None:
        for switch in self.state.missing_switches(time.monotonic()):
            self.logger.error("%s is not connected", switch)

    # --- messages from switches --------------------------------------------------------------

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def on_flow_stats(self, event: Any) -> None:
        """Handle a part of the list of a switch's rules."""
        self._deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPGroupDescStatsReply, MAIN_DISPATCHER)
    def on_group_description(self, event: Any) -> None:
        """Handle a part of the list of a switch's groups."""
        self._deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier(self, event: Any) -> None:
        """Handle a barrier reply: the switch has processed all earlier messages."""
        self._deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, event: Any) -> None:
        """Handle an error message from a switch."""
        session = self.sessions.get(event.msg.datapath.id)
        if session is not None and session.datapath is event.msg.datapath:
            session.refuse(event.msg)

    @set_ev_cls(ofp_event.EventOFPPortStateChange, MAIN_DISPATCHER)
    def on_port(self, event: Any) -> None:
        """Handle a port that was added to or removed from a switch."""
        switch = self.state.switches.get(event.datapath.id)
        if switch is None:
            return
        before = switch.missing_ports
        switch.see_ports(set(event.datapath.ports))
        if switch.missing_ports != before:
            for line in switch.problems() or [f"{switch} has all of its ports again"]:
                self.logger.warning("%s", line)

    def _deliver(self, message: Any) -> None:
        session = self.sessions.get(message.datapath.id)
        if session is not None and session.datapath is message.datapath:
            session.deliver(message)


# --- the process -----------------------------------------------------------------------------


def _fail(error: KnotlessError) -> NoReturn:
    sys.stderr.write(f"knotless: {error}\n")
    raise SystemExit(2) from error


def _leave(_signal: int, _frame: object) -> None:
    """Exit at once: there is nothing to save, and the switches keep their rules."""
    logging.shutdown()
    os._exit(0)
