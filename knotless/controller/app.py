"""The Ryu application: ``ryu-manager controller/app.py``.

Event handlers only, which return at once. :mod:`knotless.controller.composition` makes the parts
of a controller, :mod:`knotless.controller.desired` decides what to install,
:mod:`knotless.controller.reconcile` what to change in a switch, and
:mod:`knotless.controller.switches` does it. Rules are never deleted on exit: a fabric keeps
forwarding without its controller.
"""

from __future__ import annotations

import logging
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from ryu import cfg
from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.ofproto import ofproto_v1_3 as ofp

from knotless.base.printable import printable, protect_logs
from knotless.controller import config, runtime
from knotless.controller.composition import compose
from knotless.controller.openflow.listener import (
    DeferredCounts,
    TlsFiles,
    chosen_tls,
    install_listener,
)
from knotless.controller.openflow.session import SwitchEvents
from knotless.controller.probes.discovery import Discovery
from knotless.controller.probes.learner import Learner
from knotless.controller.rest.server import EarlyStatus
from knotless.controller.service import Service
from knotless.topologies import Fabric, KnotlessError
from knotless.topologies.formats.files import to_text

_LOG = logging.getLogger("knotless.controller")


_REPLIES = [
    ofp_event.EventOFPFlowStatsReply,
    ofp_event.EventOFPAggregateStatsReply,
    ofp_event.EventOFPGroupDescStatsReply,
    ofp_event.EventOFPPortStatsReply,
    ofp_event.EventOFPBarrierReply,
    ofp_event.EventOFPEchoReply,
]


class KnotlessController(app_manager.RyuApp):
    """Installs the rules of the configured fabric in every switch that connects.

    If the fabric is to be learned, that comes first.
    """

    OFP_VERSIONS: ClassVar = [ofp.OFP_VERSION]
    service: Service
    switches: SwitchEvents
    _http: Service | EarlyStatus

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        protect_logs()
        runtime.handle_signal(signal.SIGTERM, leave)
        self._counts = DeferredCounts()
        try:
            self._path = path = config.find(runtime.environment())
            self._settings = settings = config.read(path) if path else config.Config()
            self._listening = listening = read_options(settings, path)
            if listening.openflow_port is not None:
                runtime.refuse_taken_port(
                    listening.openflow_host, listening.openflow_port, "OpenFlow"
                )
            if listening.socket is not None:
                runtime.refuse_taken_socket(listening.socket, "OpenFlow")
            runtime.refuse_taken_port(listening.rest_host, listening.rest_port, "REST")
            runtime.allow_open_files()
            learned = config.to_learn(settings, path)
            has_tcp = listening.openflow_port is not None
            install_listener(
                listening.tls, self._counts, self._take_probe, listening.socket, tcp=has_tcp
            )
            if has_tcp and listening.tls is None:
                _LOG.warning(
                    "whoever can connect to %s port %d can be a switch, also other users of this"
                    " machine: use TLS, or openflow_socket",
                    listening.openflow_host,
                    listening.openflow_port,
                )
            if learned is None:
                self._begin()
            else:
                self._learn(learned)
        except KnotlessError as error:
            _fail(error)

    def _begin(self) -> None:
        """Serve the fabric of the configuration; raises KnotlessError."""
        listening = self._listening
        service, self.switches = compose(self._path, self._settings, listening.number)
        self._http = self.service = service
        self._counts.count_in(service.reporter.metrics)
        service.start(listening.rest_host, listening.rest_port)
        # What is here now stays. To look at it again takes the collector 8 ms with 100 switches.
        runtime.keep_heap()

    # --- before there is a fabric ------------------------------------------------------------

    def _learn(self, file: Path) -> None:
        """Learn the fabric, write it to a file, and begin with it."""
        runtime.handle_signal(
            signal.SIGHUP, signal.SIG_IGN
        )  # there is nothing to be read again yet
        hosts = tuple(declared.host for declared in self._settings.hosts)
        discovery = Discovery(self._settings.learn_quiet_s, hosts)
        learner = Learner(discovery, file.stem, lambda fabric: self._learned(fabric, file))
        self.switches = self._learner = learner
        address = (self._listening.rest_host, self._listening.rest_port)
        self._http = EarlyStatus(address, self._settings.rest.names, learner.as_json)
        learner.start()

    def _learned(self, fabric: Fabric, file: Path) -> None:
        """Begin with a fabric that was learned."""
        try:
            runtime.keep(file, to_text(fabric))
            self._http.close()
            self._begin()
        except KnotlessError as error:
            sys.stderr.write(f"knotless: {printable(str(error))}\n")
            sys.stderr.flush()
            runtime.exit_process(2)
        for datapath in self._learner.datapaths:
            self.switches.connected(datapath)

    def close(self) -> None:
        """End what goes on; Ryu calls this after Ctrl-C, when it delivers no more events."""
        self.switches.close()
        self._http.close()

    def _take_probe(self, dpid: int, message: bytes) -> None:
        """Take a frame that a rule of probes sends to the controller: it does not reach Ryu."""
        self.switches.packet_in(dpid, message)

    # --- events of switches ------------------------------------------------------------------

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state_change(self, event: Any) -> None:
        """Handle a switch that has connected and reported its ports, or has disconnected."""
        if event.state == MAIN_DISPATCHER:
            self.switches.connected(event.datapath)
        elif event.datapath.id is not None:
            self.switches.disconnected(event.datapath)

    @set_ev_cls(ofp_event.EventOFPPortStateChange, MAIN_DISPATCHER)
    def on_port(self, event: Any) -> None:
        """Handle a port that was added, removed, or that went up or down."""
        self.switches.ports_changed(event.datapath)

    @set_ev_cls(_REPLIES, MAIN_DISPATCHER)
    def on_reply(self, event: Any) -> None:
        """Handle a reply, or a part of one, to a session that waits for it."""
        self.switches.deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def on_removed_rule(self, event: Any) -> None:
        """Handle a rule that was removed: a hint that others change rules."""
        self.switches.rules_removed(event.msg)

    @set_ev_cls(ofp_event.EventOFPRoleReply, MAIN_DISPATCHER)
    def on_role(self, event: Any) -> None:
        """Handle the answer to a role request."""
        self.switches.role_answered(event.msg)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, event: Any) -> None:
        """Handle an error message from a switch."""
        self.switches.refuse(event.msg)


def _fail(error: KnotlessError) -> NoReturn:
    sys.stderr.write(f"knotless: {printable(str(error))}\n")
    raise SystemExit(2) from error


# --- the process -------------------------------------------------------------------------------


def leave(_signal: int, _frame: object) -> None:
    """Exit at once: there is nothing to save, and the switches keep their rules.

    The signal may have interrupted a write to the log. Whoever flushed the log here could wait for
    a lock that only the interrupted code can release, or would get an error that is then logged:
    the signal would have no effect. Nothing is lost: each line is flushed when it is written.
    """
    runtime.exit_process(0)


# --- options of Ryu ----------------------------------------------------------------------------

OPENFLOW_PORT = 6653


@dataclass(frozen=True)
class Options:
    """Addresses on which the controller listens, and its certificates (None: without TLS).

    ``openflow_port`` is None without TCP, ``socket`` without a Unix socket. ``number`` is that of
    this controller; None: it is alone.
    """

    openflow_host: str
    openflow_port: int | None
    socket: Path | None
    rest_host: str
    rest_port: int
    number: int | None
    tls: TlsFiles | None


def read_options(settings: config.Config, path: Path | None) -> Options:
    """Return Ryu's options, with the defaults of a configuration in this file.

    By default OpenFlow is served on the loopback address alone (Ryu's default is every address),
    and dead switches are detected. If the configuration names a Unix socket, it is served on a TCP
    port only if an option names one that is not 0, or with TLS. Ryu's own web server, which other
    applications in the same process may use, keeps its port. Raises KnotlessError for options that
    contradict each other.
    """
    conf, rest_host, rest_port = cfg.CONF, settings.rest.host, settings.rest.port
    conf.set_default("ofp_listen_host", "127.0.0.1")
    conf.set_default("ofp_tcp_listen_port", OPENFLOW_PORT)
    conf.set_default("ofp_ssl_listen_port", OPENFLOW_PORT)
    conf.set_default("wsapi_host", rest_host)
    conf.set_default("echo_request_interval", 5.0)
    conf.set_default("maximum_unreplied_echo_requests", 3)
    files = chosen_tls(conf.ctl_privkey, conf.ctl_cert, conf.ca_certs)
    port = conf.ofp_ssl_listen_port if files else conf.ofp_tcp_listen_port
    if conf.get_location("wsapi_port").location.is_user_controlled:
        rest_port = conf.wsapi_port
    number = config.own_number(settings, conf.wsapi_host, rest_port)
    unix = config.openflow_socket_path(settings, path, number)
    if unix is not None and files is None:
        is_given = conf.get_location("ofp_tcp_listen_port").location.is_user_controlled
        port = (port or None) if is_given else None
    return Options(
        openflow_host=conf.ofp_listen_host,
        openflow_port=port,
        socket=unix,
        rest_host=conf.wsapi_host,
        rest_port=rest_port,
        number=number,
        tls=files,
    )
