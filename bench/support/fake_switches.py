"""Switches that speak OpenFlow 1.3 to a controller over loopback and forward no traffic.

Each keeps the rules and groups that the controller installs, as the bytes that it sent, and reports
them when asked. Frames that the controller sends out of a port, which are probes, come back to it
from the next switch. So a thousand switches fit into one thread, and the time of a run is the
controller's.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, section 7; bundles: EXT-230.

"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from struct import Struct

from ryu.ofproto import ofproto_v1_3 as ofp

from knotless.controller.reconcile import PROBE_COOKIE

_HEADER = Struct("!BBHI")
_FLOW_MOD = Struct("!QQBBHHHIIIH2x")
_FLOW_STATS = Struct("!HBxIIHHHH4xQQQ")
_GROUP_MOD = Struct("!HBxI")
_PACKET_OUT = Struct("!IIH6x")
_PACKET_IN = Struct("!IHBBQ")
_IN_PORT = Struct("!HHHBBI4x")
_ACTION = Struct("!HH")
_EXPERIMENTER = Struct("!II")
_BUNDLE = Struct("!IHH")
_AGGREGATE = Struct("!QQI4x")
_COOKIES = Struct("!QQ")
_COOKIES_AT = 24
"""Offset of cookie and mask in the body of a request for rules."""
_BUNDLE_CONTROL, _BUNDLE_ADD = 2300, 2301
_PART_BYTES = 60_000
"""Of a multipart reply; a message has 65,535 bytes at most."""
_RETRY_S = 0.2


@dataclass
class FakeSwitch:
    """A switch and what it holds; ``flow_mods`` and ``group_mods`` count what it was sent."""

    dpid: int
    ports: tuple[int, ...]
    rules: dict[bytes, bytes] = field(default_factory=dict)
    """By table, priority and match: the entry in a reply about flows."""
    groups: dict[int, bytes] = field(default_factory=dict)
    peers: dict[int, tuple[FakeSwitch, int]] = field(default_factory=dict, repr=False)
    """The switch and port at the other end of each port to another switch."""
    _writer: asyncio.StreamWriter | None = None
    flow_mods: int = 0
    group_mods: int = 0

    async def serve(self, port: int) -> None:
        """Stay connected to the controller on this port of loopback, until cancelled."""
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    await self._talk(reader, writer)
                finally:
                    self._writer = None
                    writer.close()
            await asyncio.sleep(_RETRY_S)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_message(ofp.OFPT_HELLO, 0))
        self._writer = writer
        while True:
            _, kind, length, transaction = _HEADER.unpack(await reader.readexactly(_HEADER.size))
            body = await reader.readexactly(length - _HEADER.size)
            for reply in self.answer(kind, transaction, body):
                writer.write(reply)
            await writer.drain()

    def answer(self, kind: int, transaction: int, body: bytes) -> Iterator[bytes]:
        """Take one message of the controller; yield the answers."""
        match kind:
            case ofp.OFPT_ECHO_REQUEST:
                yield _message(ofp.OFPT_ECHO_REPLY, transaction, body)
            case ofp.OFPT_FEATURES_REQUEST:
                features = Struct("!QIBB2xII").pack(self.dpid, 0, 254, 0, 0x4F, 0)
                yield _message(ofp.OFPT_FEATURES_REPLY, transaction, features)
            case ofp.OFPT_PACKET_OUT:
                self._packet_out(body)
            case ofp.OFPT_FLOW_MOD:
                self._flow_mod(body)
            case ofp.OFPT_GROUP_MOD:
                self._group_mod(body)
            case ofp.OFPT_MULTIPART_REQUEST:
                yield from self._multipart(transaction, int.from_bytes(body[:2], "big"), body)
            case ofp.OFPT_BARRIER_REQUEST:
                yield _message(ofp.OFPT_BARRIER_REPLY, transaction)
            case ofp.OFPT_ROLE_REQUEST:
                yield _message(ofp.OFPT_ROLE_REPLY, transaction, body)
            case ofp.OFPT_EXPERIMENTER:
                yield from self._bundle(transaction, body)

    def _packet_out(self, body: bytes) -> None:
        """Send a frame out of ports, each time with the source address that was set last."""
        _, _, length = _PACKET_OUT.unpack_from(body)
        offset, frame = _PACKET_OUT.size, body[_PACKET_OUT.size + length :]
        while offset < _PACKET_OUT.size + length:
            kind, size = _ACTION.unpack_from(body, offset)
            if kind == ofp.OFPAT_SET_FIELD:
                frame = frame[:6] + body[offset + 8 : offset + 14] + frame[12:]
            elif kind == ofp.OFPAT_OUTPUT:
                peer = self.peers.get(int.from_bytes(body[offset + 4 : offset + 8], "big"))
                if peer is not None:
                    peer[0].receive(peer[1], frame)
            offset += size

    def receive(self, port: int, frame: bytes) -> None:
        """Give a frame that arrives at a port to the controller, as its rule of probes says."""
        if self._writer is not None:
            head = _PACKET_IN.pack(ofp.OFP_NO_BUFFER, len(frame), ofp.OFPR_ACTION, 0, PROBE_COOKIE)
            match = _IN_PORT.pack(ofp.OFPMT_OXM, 12, ofp.OFPXMC_OPENFLOW_BASIC, 0, 4, port)
            self._writer.write(_message(ofp.OFPT_PACKET_IN, 0, head + match + bytes(2) + frame))

    def _bundle(self, transaction: int, body: bytes) -> Iterator[bytes]:
        """Make changes when they are added: nothing is ever refused here, so none is undone."""
        experimenter, kind = _EXPERIMENTER.unpack_from(body)
        rest = body[_EXPERIMENTER.size :]
        if kind == _BUNDLE_ADD:
            message = rest[_BUNDLE.size :]
            for _ in self.answer(message[1], transaction, message[_HEADER.size :]):
                raise AssertionError("a bundle has changes only")
        elif kind == _BUNDLE_CONTROL:
            number, request, flags = _BUNDLE.unpack_from(rest)
            done = _EXPERIMENTER.pack(experimenter, kind) + _BUNDLE.pack(number, request + 1, flags)
            yield _message(ofp.OFPT_EXPERIMENTER, transaction, done)

    def _flow_mod(self, body: bytes) -> None:
        self.flow_mods += 1
        cookie, _, table, command, _, _, priority, *_ = _FLOW_MOD.unpack_from(body)
        rest = body[_FLOW_MOD.size :]
        match = rest[: (int.from_bytes(rest[2:4], "big") + 7) // 8 * 8]
        key = bytes([table]) + priority.to_bytes(2, "big") + match
        if command in (ofp.OFPFC_DELETE, ofp.OFPFC_DELETE_STRICT):
            self.rules.pop(key, None)
        elif command == ofp.OFPFC_ADD or key in self.rules:
            length = _FLOW_STATS.size + len(rest)
            head = _FLOW_STATS.pack(length, table, 0, 0, priority, 0, 0, 0, cookie, 0, 0)
            self.rules[key] = head + rest

    def _group_mod(self, body: bytes) -> None:
        self.group_mods += 1
        command, kind, number = _GROUP_MOD.unpack_from(body)
        if command == ofp.OFPGC_DELETE:
            self.groups.pop(number, None)
        else:
            buckets = body[_GROUP_MOD.size :]
            entry = _GROUP_MOD.pack(_GROUP_MOD.size + len(buckets), kind, number)
            self.groups[number] = entry + buckets

    def _multipart(self, transaction: int, kind: int, body: bytes) -> Iterator[bytes]:
        entries: Iterable[bytes] = ()
        match kind:
            case ofp.OFPMP_PORT_DESC:
                entries = map(_port_description, self.ports)
            case ofp.OFPMP_FLOW:
                cookie, mask = _COOKIES.unpack_from(body, _COOKIES_AT)
                entries = (
                    rule
                    for rule in self.rules.values()
                    if (_FLOW_STATS.unpack_from(rule)[8] ^ cookie) & mask == 0
                )
            case ofp.OFPMP_AGGREGATE:
                entries = (_AGGREGATE.pack(0, 0, len(self.rules)),)
            case ofp.OFPMP_GROUP_DESC:
                entries = self.groups.values()
            case ofp.OFPMP_PORT_STATS:
                entries = (port.to_bytes(4, "big") + bytes(108) for port in self.ports)
        part = bytearray()
        for entry in entries:
            if len(part) + len(entry) > _PART_BYTES:
                yield _multipart(transaction, kind, part, more=True)
                part = bytearray()
            part += entry
        yield _multipart(transaction, kind, part, more=False)


def _port_description(port: int) -> bytes:
    name = b"p%d" % port
    return Struct("!I4x6s2x16s8I").pack(port, port.to_bytes(6, "big"), name, *bytes(8))


def _multipart(transaction: int, kind: int, body: bytes, *, more: bool) -> bytes:
    head = Struct("!HH4x").pack(kind, ofp.OFPMPF_REPLY_MORE if more else 0)
    return _message(ofp.OFPT_MULTIPART_REPLY, transaction, head + bytes(body))


def _message(kind: int, transaction: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(ofp.OFP_VERSION, kind, _HEADER.size + len(body), transaction) + body
