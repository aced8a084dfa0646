"""The Ryu application: ``ryu-manager controller/app.py``.

Event handlers only. What to install comes from :mod:`controller.state`, what to change from
:mod:`controller.reconcile`, and talking with one switch is :mod:`controller.session`'s.
Rules are never deleted on exit: a fabric outlives its controller.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
from typing import Any, ClassVar, NoReturn

from ryu import cfg
from ryu.app.wsgi import WSGIApplication
from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from controller import config
from controller.reconcile import reconcile
from controller.rest import Rest
from controller.session import Session, SwitchGoneError
from controller.southbound import listener
from controller.state import FabricState, SwitchState
from topologies import KnotlessError

OPENFLOW_PORT = 6653
_ALIVE_S = 2.0


class KnotlessController(app_manager.RyuApp):
    """Installs the rules of one declared fabric in every switch that connects."""

    OFP_VERSIONS: ClassVar = [ofp.OFP_VERSION]
    _CONTEXTS: ClassVar = {"wsgi": WSGIApplication}

    def __init__(self, *args: Any, wsgi: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        signal.signal(signal.SIGTERM, _leave)
        listener.install()
        try:
            self.state = self._prepare()
        except KnotlessError as error:
            _fail(error)
        self.sessions: dict[int, Session] = {}
        self.state.started_s = time.monotonic()
        wsgi.register(Rest, {"state": self.state})
        hub.spawn_after(self.state.config.connect_timeout_s, self._report_missing)

    def _prepare(self) -> FabricState:
        path = config.find()
        settings = config.read(path) if path else config.Config()
        _set_defaults(settings)
        _refuse_tls()
        _refuse_taken_port(cfg.CONF.ofp_listen_host, cfg.CONF.ofp_tcp_listen_port, "OpenFlow")
        _refuse_taken_port(cfg.CONF.wsapi_host, cfg.CONF.wsapi_port, "REST")
        if path is None:
            self.logger.info("no %s here: using the defaults", config.DEFAULT_FILE)
        fabric = config.load_fabric(settings, path)
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
            self.logger.warning("it is installed all the same: allow_deadlock is set")
        return state

    # --- connections -------------------------------------------------------------------------

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state_change(self, event: Any) -> None:
        """A switch has come (and has said which ports it has), or has gone."""
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
            # Either the switch lost its connection unnoticed, or there are two of them.
            if older.answers(_ALIVE_S):
                self.state.twins[datapath.id] = time.monotonic()
                self.logger.error("%s", self.state.twin(datapath.id))
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
            self.logger.warning("%s: %s; it is asked again when it comes back", switch, gone)
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

    # --- what switches say -------------------------------------------------------------------

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def on_flow_stats(self, event: Any) -> None:
        """Part of the list of a switch's rules."""
        self._deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPGroupDescStatsReply, MAIN_DISPATCHER)
    def on_group_description(self, event: Any) -> None:
        """Part of the list of a switch's groups."""
        self._deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier(self, event: Any) -> None:
        """A switch has done all that it was sent."""
        self._deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, event: Any) -> None:
        """A switch refused something."""
        session = self.sessions.get(event.msg.datapath.id)
        if session is not None and session.datapath is event.msg.datapath:
            session.refuse(event.msg)

    @set_ev_cls(ofp_event.EventOFPPortStateChange, MAIN_DISPATCHER)
    def on_port(self, event: Any) -> None:
        """A switch has gained or lost a port."""
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


def _set_defaults(settings: config.Config) -> None:
    """Listen on the loopback address, and notice dead switches, unless flags say otherwise.

    Ryu itself would listen on every address and on an old port besides.
    """
    conf = cfg.CONF
    conf.set_default("ofp_listen_host", "127.0.0.1")
    conf.set_default("ofp_tcp_listen_port", OPENFLOW_PORT)
    conf.set_default("wsapi_host", settings.rest.host)
    conf.set_default("wsapi_port", settings.rest.port)
    conf.set_default("echo_request_interval", 5.0)
    conf.set_default("maximum_unreplied_echo_requests", 3)
    # One line for each REST request would bury everything else.
    logging.getLogger("ryu.lib.hub").setLevel(logging.WARNING)


def _refuse_tls() -> None:
    """Raise KnotlessError when Ryu is told to serve TLS.

    Ryu 4.34's listener throws its certificate away with the first connection
    (``ryu.lib.hub.StreamServer``), so that every switch but the first would fail.
    """
    if cfg.CONF.ctl_privkey or cfg.CONF.ctl_cert:
        raise KnotlessError(
            "--ctl-privkey and --ctl-cert: Ryu 4.34 can serve only one switch by TLS;"
            " put a TLS proxy such as stunnel in front of the OpenFlow port instead"
        )


def _refuse_taken_port(host: str, port: int, what: str) -> None:
    """Raise KnotlessError when nobody could listen there.

    Ryu's own sockets have SO_REUSEPORT: two controllers would share a port without a word,
    each with some of the switches.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            raise KnotlessError(
                f"cannot listen for {what} on {host} port {port}: {error.strerror};"
                " stop what listens there, or choose another port"
            ) from error


def _fail(error: KnotlessError) -> NoReturn:
    sys.stderr.write(f"knotless: {error}\n")
    raise SystemExit(2) from error


def _leave(_signal: int, _frame: object) -> None:
    """End at once: there is nothing to save, and the rules stay in the switches."""
    logging.shutdown()
    os._exit(0)
