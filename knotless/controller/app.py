"""The Ryu application: ``ryu-manager controller/app.py``.

Event handlers only, which return at once. :mod:`knotless.controller.desired` decides what to
install, :mod:`knotless.controller.steps` what to change in a switch, and
:mod:`knotless.controller.southbound.switches` does it. Rules are never deleted on exit: a fabric
keeps forwarding without its controller.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.ofproto import ofproto_v1_3 as ofp

from knotless.base.files import write_whole
from knotless.controller import config
from knotless.controller.background import Background
from knotless.controller.learning import Learning
from knotless.controller.leaving import leave
from knotless.controller.losses import Losses
from knotless.controller.northbound.early import EarlyStatus
from knotless.controller.service import Service
from knotless.controller.southbound import listener, options
from knotless.controller.southbound.conductor import DEFAULT_PACE
from knotless.controller.southbound.explorer import Explorer
from knotless.controller.southbound.learner import Learner
from knotless.controller.southbound.probes import Probes
from knotless.controller.southbound.switches import Switches
from knotless.topologies import Fabric, KnotlessError
from knotless.topologies.formats.files import to_text


class KnotlessController(app_manager.RyuApp):
    """Installs the rules of the configured fabric in every switch that connects.

    If the fabric is to be learned, that comes first.
    """

    OFP_VERSIONS: ClassVar = [ofp.OFP_VERSION]
    service: Service
    switches: Switches | Learner
    probes: Probes | Learner

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        signal.signal(signal.SIGTERM, leave)
        self._counts = listener.CountedLater()
        try:
            self._path = path = config.find()
            self._settings = settings = config.read(path) if path else config.Config()
            self._listening = listening = options.read(settings.rest.host, settings.rest.port)
            options.refuse_taken_port(listening.openflow_host, listening.openflow_port, "OpenFlow")
            options.refuse_taken_port(listening.rest_host, listening.rest_port, "REST")
            options.allow_open_files()
            learned = config.to_learn(settings, path)
            listener.install(listening.tls, self._counts, self._take_probe)
            if learned is None:
                self._begin()
            else:
                self._learn(learned)
        except KnotlessError as error:
            _fail(error)

    def _begin(self) -> None:
        """Serve the fabric of the configuration; raises KnotlessError."""
        path, settings, listening = self._path, self._settings, self._listening
        number = config.own_number(settings, listening.rest_host, listening.rest_port)
        self.service = service = Service(path, settings)
        losses = Losses.beside(config.state_path(settings, path))
        losses.read()
        self._counts.count_in(service.metrics)
        explorer = None
        if settings.discovery == "learn":
            learning = Learning(settings.learn_quiet_s)
            explorer = Explorer(service.status, learning, service.grow)
            service.status.found = explorer.problems
        emulator = config.emulator_path(settings, path)
        probes = Probes(service.status, service, emulator, explorer)
        switches = Switches(
            service.status,
            service,
            pace=replace(
                DEFAULT_PACE,
                emulator=emulator,
                open_vswitch=config.open_vswitch_path(settings, path),
                ahead=Background().call,
            ),
            prober=probes,
            election=None if number is None else service.several.election(number),
            refresh=service.several.follow_operators,
            losses=losses,
            unfinished=service.unfinished,
        )
        self.probes, self.switches = probes, switches
        service.several.withdraw = switches.withdraw
        probes.start(switches)
        service.start(listening.rest_host, listening.rest_port, switches.change_to)
        # What is here now stays. To look at it again takes the collector 8 ms with 100 switches.
        gc.collect()
        gc.freeze()

    # --- before there is a fabric ------------------------------------------------------------

    def _learn(self, file: Path) -> None:
        """Learn the fabric, write it to a file, and begin with it."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # there is nothing to be read again yet
        hosts = tuple(declared.host for declared in self._settings.hosts)
        learning = Learning(self._settings.learn_quiet_s, hosts)
        learner = Learner(learning, file.stem, lambda fabric: self._learned(fabric, file))
        self.switches = self.probes = self._learner = learner
        address = (self._listening.rest_host, self._listening.rest_port)
        self._early = EarlyStatus(address, learner.as_json)
        learner.start()

    def _learned(self, fabric: Fabric, file: Path) -> None:
        """Begin with a fabric that was learned."""
        try:
            write_whole(file, to_text(fabric))
            self._early.end()
            self._begin()
        except KnotlessError as error:
            sys.stderr.write(f"knotless: {error}\n")
            sys.stderr.flush()
            os._exit(2)
        for datapath in self._learner.datapaths:
            self.switches.connected(datapath)

    def _take_probe(self, dpid: int, message: bytes) -> None:
        """Take a frame that a rule of probes sends to the controller: it does not reach Ryu."""
        self.probes.packet_in(dpid, message)

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

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def on_flow_stats(self, event: Any) -> None:
        """Handle a part of the list of a switch's rules."""
        self.switches.deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPGroupDescStatsReply, MAIN_DISPATCHER)
    def on_group_description(self, event: Any) -> None:
        """Handle a part of the list of a switch's groups."""
        self.switches.deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def on_port_counters(self, event: Any) -> None:
        """Handle a part of the counters of a switch's ports."""
        self.switches.deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier(self, event: Any) -> None:
        """Handle a barrier reply: the switch has processed all earlier messages."""
        self.switches.deliver(event.msg)

    @set_ev_cls(ofp_event.EventOFPRoleReply, MAIN_DISPATCHER)
    def on_role(self, event: Any) -> None:
        """Handle the answer to a role request."""
        self.switches.role_answered(event.msg)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, event: Any) -> None:
        """Handle an error message from a switch."""
        self.switches.refuse(event.msg)


def _fail(error: KnotlessError) -> NoReturn:
    sys.stderr.write(f"knotless: {error}\n")
    raise SystemExit(2) from error
