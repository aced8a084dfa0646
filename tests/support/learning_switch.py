"""A controller as users begin with: every switch learns which port leads to an address.

What it does not know, it floods: a ring then needs a spanning tree. ``ryu-manager FILE``.
"""

from __future__ import annotations

from typing import Any

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib.packet import ethernet, packet
from ryu.ofproto import ofproto_v1_3

PRIORITY = 5
COOKIE = 0x1E
"""Of the rules to addresses that are known."""


class LearningSwitch(app_manager.RyuApp):  # type: ignore[misc] # Ryu has no types
    """The app of ``ryu-manager``."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.ports: dict[tuple[int, str], int] = {}
        """By switch and address."""

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)  # type: ignore[misc]
    def on_features(self, event: Any) -> None:
        """Have a switch send frames that it does not know to the controller."""
        datapath = event.msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        to_controller = parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)
        self._install(datapath, 0, 0, parser.OFPMatch(), to_controller)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)  # type: ignore[misc]
    def on_packet(self, event: Any) -> None:
        """Learn, install a rule if the destination is known, and send the frame on."""
        message = event.msg
        datapath, in_port = message.datapath, message.match["in_port"]
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        header = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        self.ports[datapath.id, header.src] = in_port
        port = self.ports.get((datapath.id, header.dst))
        action = parser.OFPActionOutput(ofproto.OFPP_FLOOD if port is None else port)
        if port is not None:
            match = parser.OFPMatch(in_port=in_port, eth_dst=header.dst)
            self._install(datapath, PRIORITY, COOKIE, match, action)
        out = parser.OFPPacketOut(
            datapath=datapath,
            buffer_id=ofproto.OFP_NO_BUFFER,
            in_port=in_port,
            actions=[action],
            data=message.data,
        )
        datapath.send_msg(out)

    def _install(self, datapath: Any, priority: int, cookie: int, match: Any, action: Any) -> None:
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        apply = parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, [action])
        datapath.send_msg(
            parser.OFPFlowMod(
                datapath=datapath,
                priority=priority,
                cookie=cookie,
                match=match,
                instructions=[apply],
            )
        )
