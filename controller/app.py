"""The Ryu application: ``ryu-manager controller/app.py``.

Event handlers only, which return at once. :mod:`controller.desired` decides what to install,
:mod:`controller.steps` what to change in a switch, and :mod:`controller.southbound.switches` does
it. Rules are never deleted on exit: a fabric keeps forwarding without its controller.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from dataclasses import replace
from typing import Any, ClassVar, NoReturn

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.ofproto import ofproto_v1_3 as ofp

from controller import config
from controller.losses import Losses
from controller.service import Service
from controller.southbound import listener, options
from controller.southbound.conductor import DEFAULT_PACE
from controller.southbound.probes import Probes
from controller.southbound.switches import Switches
from topologies import KnotlessError


class KnotlessController(app_manager.RyuApp):
    """Installs the rules of the configured fabric in every switch that connects."""

    OFP_VERSIONS: ClassVar = [ofp.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        signal.signal(signal.SIGTERM, _leave)
        try:
            path = config.find()
            settings = config.read(path) if path else config.Config()
            listening = options.read(settings.rest.host, settings.rest.port)
            options.refuse_taken_port(listening.openflow_host, listening.openflow_port, "OpenFlow")
            options.refuse_taken_port(listening.rest_host, listening.rest_port, "REST")
            options.allow_open_files()
            number = config.own_number(settings, listening.rest_host, listening.rest_port)
            self.service = Service(path, settings)
            losses = Losses.beside(config.state_path(settings, path))
            losses.read()
            emulator = config.emulator_path(settings, path)
            self.probes = Probes(self.service.status, self.service, emulator)
            listener.install(listening.tls, self.service.metrics, self.probes.packet_in)
        except KnotlessError as error:
            _fail(error)
        election = None if number is None else self.service.several.election(number)
        self.switches = Switches(
            self.service.status,
            self.service,
            pace=replace(DEFAULT_PACE, emulator=emulator),
            prober=self.probes,
            election=election,
            refresh=self.service.several.follow_operators,
            losses=losses,
            unfinished=self.service.unfinished,
        )
        self.service.several.withdraw = self.switches.withdraw
        self.probes.start(self.switches)
        self.service.start(listening.rest_host, listening.rest_port, self.switches.change_to)

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


def _leave(_signal: int, _frame: object) -> None:
    """Exit at once: there is nothing to save, and the switches keep their rules."""
    logging.shutdown()
    os._exit(0)
