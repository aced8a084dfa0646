"""One connected switch: reading its entries, changing them, and collecting its errors.

A session's methods block until the switch replies, each in the green thread of that switch. The
event handlers of :mod:`knotless.controller.app` pass received messages to :meth:`Session.deliver`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ryu.lib import hub
from ryu.ofproto import ofproto_parser
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from knotless.controller.not_admitted import Admission
from knotless.controller.southbound import messages
from knotless.controller.steps import Change, FoundGroup, FoundRule

REPLY_TIMEOUT_S = 30.0
"""Time for a switch to reply. Installing thousands of rules takes seconds, and the barrier reply
comes after them."""
COUNTERS_TIMEOUT_S = 2.0
_WRITE_BYTES = 1 << 16
_PACKET_OUT = bytes([ofp.OFPT_PACKET_OUT])


class SwitchGoneError(Exception):
    """The connection ended, or the switch stopped answering."""


class Session:
    """A connection to a switch; ``datapath`` is Ryu's."""

    def __init__(self, datapath: Any) -> None:
        self.datapath = datapath
        self.lock = hub.Semaphore()
        """Held by whoever changes the switch's rules."""
        self._replies: dict[int, Any] = {}
        self._sent: dict[int, Change] = {}
        self._refused: list[tuple[Change | None, str]] = []
        self._gone = False
        self._bundles = 0

    # --- called by the event handlers --------------------------------------------------------

    def deliver(self, message: Any) -> None:
        """Pass a reply to the caller that waits for it; unexpected replies are dropped."""
        queue = self._replies.get(message.xid)
        if queue is not None:
            queue.put(message)

    def refuse(self, message: Any) -> None:
        """Record an error message, with the change that caused it."""
        xid = message.xid
        if message.data[1:2] == _PACKET_OUT:
            return  # a probe is sent again
        if len(message.data) >= ofp.OFP_HEADER_SIZE:
            # The header of the failed request, in case the error itself has another id.
            xid = ofproto_parser.header(message.data)[3]
        reason = ofp.ofp_error_code_to_str(message.type, message.code)
        self._refused.append((self._sent.get(xid), reason))
        if xid in self._replies:
            self._replies[xid].put(None)

    def end(self) -> None:
        """Report the end of the connection to all waiting callers."""
        self._gone = True
        for queue in self._replies.values():
            queue.put(None)

    # --- called in the switch's own green thread ---------------------------------------------

    def rules(self) -> list[FoundRule]:
        """Return every rule that the switch holds, of all tables."""
        return [messages.read_rule(entry) for entry in self._entries(ofp.OFPTT_ALL)]

    def admission(self) -> Admission:
        """Return how many frames the first table has admitted and dropped."""
        received = {port: frames for port, (frames, _) in self.port_counters().items()}
        admitted: dict[int, int] = {}
        dropped = local = 0
        for entry in self._entries(0, COUNTERS_TIMEOUT_S):
            found = messages.read_rule(entry)
            port = next((field.value for field in found.match if field.name == "in_port"), None)
            if port is not None:
                admitted[port] = admitted.get(port, 0) + entry.packet_count
            elif found.match:
                local += entry.packet_count
            else:
                dropped += entry.packet_count
        return Admission(dropped, received, admitted, local)

    def _entries(self, table: int, timeout_s: float = REPLY_TIMEOUT_S) -> Iterator[Any]:
        request = parser.OFPFlowStatsRequest(
            self.datapath, 0, table, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch()
        )
        return self._ask(request, timeout_s)

    def groups(self) -> list[FoundGroup]:
        """Return every group that the switch holds."""
        request = parser.OFPGroupDescStatsRequest(self.datapath, 0)
        return [messages.read_group(entry) for entry in self._ask(request)]

    def change(self, changes: tuple[Change, ...]) -> list[tuple[Change | None, str]]:
        """Apply ``changes`` and wait for the barrier; return those that the switch refused.

        Each is returned with OpenFlow's name of the reason.
        """
        self._refused.clear()
        buffer = bytearray()
        for message in self._messages(changes):
            # Many messages per write: a write for each would take longer than OVS needs.
            buffer += message
            if len(buffer) >= _WRITE_BYTES:
                self._send(buffer)
                buffer = bytearray()
        self._send(buffer)
        self.barrier()
        self._sent.clear()
        return list(self._refused)

    def change_at_once(self, changes: Iterable[Change]) -> list[tuple[Change | None, str]]:
        """Apply ``changes`` in one bundle and wait for the barrier; see :meth:`change`.

        If the switch refuses any of them, it has made none.
        """
        self._refused.clear()
        parts = list(self._messages(changes))
        if parts:
            self._bundles += 1
            ids = [self._transaction() for _ in range(2)]
            self._send(bytearray(messages.bundle(self._bundles, parts, ids)))
            self.barrier()
        self._sent.clear()
        return list(self._refused)

    def _messages(self, changes: Iterable[Change]) -> Iterator[bytes]:
        """Yield the messages of changes; errors about them are known by their transactions."""
        for change in changes:
            transaction = self._transaction()
            self._sent[transaction] = change
            yield messages.encode(change, transaction)

    def send_probe(self, message: bytes) -> bool:
        """Send a probe, unless so much waits to be sent that it would be late; never block."""
        waiting = self.datapath.send_q  # None once the connection is over
        return waiting is not None and not waiting.full() and bool(self.datapath.send(message))

    def _transaction(self) -> int:
        """Return a new transaction id; Ryu gives them to messages only: to any."""
        number: int = self.datapath.set_xid(parser.OFPHello(self.datapath))
        return number

    def port_counters(self) -> dict[int, tuple[int, int]]:
        """Return the frames received and sent by each port."""
        request = parser.OFPPortStatsRequest(self.datapath, 0, ofp.OFPP_ANY)
        replies = self._ask(request, COUNTERS_TIMEOUT_S)
        return {of.port_no: (of.rx_packets, of.tx_packets) for of in replies}

    def send_message(self, kind: int, body: bytes) -> None:
        """Send one message with this body; raises SwitchGoneError if the connection is over."""
        self._send(bytearray(messages.encode_message(kind, self._transaction(), body)))

    def barrier(self, timeout_s: float = REPLY_TIMEOUT_S) -> None:
        """Wait until the switch has processed all messages; raises SwitchGoneError."""
        for _ in self._replies_to(parser.OFPBarrierRequest(self.datapath), timeout_s):
            return

    def answers(self, timeout_s: float) -> bool:
        """Tell whether the switch still answers."""
        try:
            self.barrier(timeout_s)
        except SwitchGoneError:
            return False
        return True

    def _ask(self, request: Any, timeout_s: float = REPLY_TIMEOUT_S) -> Iterator[Any]:
        for reply in self._replies_to(request, timeout_s):
            yield from reply.body
            if not reply.flags & ofp.OFPMPF_REPLY_MORE:
                return

    def _replies_to(self, request: Any, timeout_s: float) -> Iterator[Any]:
        if self._gone:
            raise SwitchGoneError("the connection is over")
        xid = self.datapath.set_xid(request)
        queue = self._replies[xid] = hub.Queue()
        try:
            if not self.datapath.send_msg(request):
                raise SwitchGoneError("the connection is over")
            while True:
                reply = queue.get(timeout=timeout_s)
                if reply is None:
                    raise SwitchGoneError("the connection is over")
                yield reply
        except hub.QueueEmpty:
            raise SwitchGoneError(f"no answer within {timeout_s:g} s") from None
        finally:
            del self._replies[xid]

    def _send(self, buffer: bytearray) -> None:
        if buffer and not self.datapath.send(bytes(buffer)):
            raise SwitchGoneError("the connection is over")
        # Yield to the other switches, and to this one's echo requests.
        hub.sleep(0)


def ports_of(datapath: Any) -> dict[int, bool]:
    """Return for each port of a Ryu datapath whether it is switched on and has a carrier."""
    return {
        number: not (port.config & ofp.OFPPC_PORT_DOWN or port.state & ofp.OFPPS_LINK_DOWN)
        for number, port in datapath.ports.items()
    }
