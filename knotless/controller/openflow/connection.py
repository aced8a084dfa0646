"""A connection to a switch, as the controller uses it, whoever serves it.

:class:`knotless.controller.openflow.endpoint.Endpoint` serves it alone. In a process with other Ryu
applications Ryu does (:mod:`knotless.controller.app`), and each message is given to both.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.records import (
    BODY,
    MULTIPART_REPLY,
    ROLE_REPLY,
    SWITCH_FEATURES,
    Port,
    RoleReply,
)
from knotless.controller.openflow.replies import (
    Refusal,
    cookie_of,
    has_more,
    is_up,
    port_descriptions,
    read_port_status,
    read_refusal,
)
from knotless.controller.openflow.stream import GuardedStream
from knotless.controller.reconcile import PROBE_COOKIE

MAX_WAITING = 16
"""Writes that wait to be sent; who has more waits."""
MAX_PORTS = 1 << 16
"""Ports of a switch; Open vSwitch has fewer."""
_LOG = logging.getLogger("knotless.openflow")


class ConnectionEvents(Protocol):
    """Takes what happens on connections; each method returns at once."""

    def connected(self, connection: Connection) -> None:
        """Serve a switch that has reported its ports."""

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection; the switch keeps its rules."""

    def ports_changed(self, connection: Connection) -> None:
        """Record the ports of a switch as they are now."""

    def packet_in(self, dpid: int, message: bytes) -> None:
        """Take a packet-in of a rule of probes."""

    def rules_removed(self, connection: Connection) -> None:
        """Take the report of a switch that a rule was removed."""

    def role_answered(self, connection: Connection, role: RoleReply) -> None:
        """Take the answer to a role request."""

    def deliver(self, connection: Connection, message: bytes) -> bool:
        """Pass a reply to whoever waits for it; return whether anybody does."""

    def refuse(self, connection: Connection, refusal: Refusal) -> None:
        """Pass an error message to whoever caused it."""


class Connection(ABC):
    """A connection to a switch.

    ``events`` returns whoever takes what happens now.

    Attributes
    ----------
    dpid : as whom the switch has introduced itself; 0 before.
    ports : for each port whether it is switched on and has a carrier.
    is_open : whether the connection can be used; it is over for good once it is not.

    """

    def __init__(self, stream: GuardedStream, events: Callable[[], ConnectionEvents]) -> None:
        self.stream, self._events = stream, events
        self.dpid = 0
        self.ports: dict[int, bool] = {}
        self.is_open = True
        self._is_introduced = self._is_connected = False

    @abstractmethod
    def send(self, data: bytes) -> bool:
        """Send messages, in their order; wait if many wait already. False: it is over."""

    @property
    @abstractmethod
    def waiting(self) -> int:
        """The writes that wait to be sent."""

    @property
    def is_full(self) -> bool:
        """Whether so many writes wait that :meth:`send` would wait."""
        return self.waiting >= MAX_WAITING

    @abstractmethod
    def next_transaction(self) -> int:
        """Return an id that no other request on this connection has."""

    @abstractmethod
    def close(self) -> None:
        """End the connection; returns at once, and may be called again."""

    @property
    def dropped(self) -> int:
        """The messages of the switch that the guard has dropped so far."""
        return self.stream.dropped

    def take(self, message: bytes) -> bool:
        """Handle a message of the switch; return whether it concerns nobody else.

        An error in its handling is logged, and the connection goes on. Raises WireError if it is to
        end.
        """
        try:
            return self._handle(message)
        except WireError:
            raise
        except Exception:  # noqa: BLE001 - one switch must not take others down
            _LOG.exception("a message of type %d was not handled", message[1])
            return False

    def _handle(self, message: bytes) -> bool:
        kind = message[1]
        if kind == ofp.OFPT_FEATURES_REPLY and not self._is_introduced:
            self.dpid = SWITCH_FEATURES.read(message, BODY).datapath_id
            self._is_introduced = True
        if not self._is_introduced:
            return False
        events = self._events()
        match kind:
            case ofp.OFPT_PACKET_IN:
                return self._take_probe(events, message)
            case ofp.OFPT_PORT_STATUS:
                self._port_changed(events, message)
            case ofp.OFPT_FLOW_REMOVED:
                events.rules_removed(self)
            case ofp.OFPT_ROLE_REPLY:
                events.role_answered(self, ROLE_REPLY.read(message, BODY))
            case ofp.OFPT_ERROR:
                events.refuse(self, read_refusal(message))
            case ofp.OFPT_MULTIPART_REPLY if not self._is_connected:
                self._describe_ports(events, message)
            case ofp.OFPT_MULTIPART_REPLY | ofp.OFPT_BARRIER_REPLY | ofp.OFPT_ECHO_REPLY:
                return events.deliver(self, message)
        return False

    def _take_probe(self, events: ConnectionEvents, message: bytes) -> bool:
        is_probe = cookie_of(message) == PROBE_COOKIE
        if is_probe:
            events.packet_in(self.dpid, message)
        return is_probe

    def _describe_ports(self, events: ConnectionEvents, message: bytes) -> None:
        """Take a part of the answer that completes the handshake."""
        if MULTIPART_REPLY.read(message, BODY).type != ofp.OFPMP_PORT_DESC:
            return
        for port in port_descriptions(message):
            self._see(port)
        if not has_more(message):
            self._is_connected = True
            events.connected(self)

    def _port_changed(self, events: ConnectionEvents, message: bytes) -> None:
        reason, port = read_port_status(message)
        if reason == ofp.OFPPR_DELETE:
            self.ports.pop(port.port_no, None)
        else:
            self._see(port)
        if self._is_connected:
            events.ports_changed(self)

    def _see(self, port: Port) -> None:
        self.ports[port.port_no] = is_up(port)
        if len(self.ports) > MAX_PORTS:
            raise WireError(f"more than {MAX_PORTS} ports")

    def _ended(self) -> None:
        """Report the end, which whoever serves the connection has seen."""
        self.is_open = False
        if self._is_introduced:
            self._events().disconnected(self)
