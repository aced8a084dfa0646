"""Probes as frames, in the messages that send them and bring them to the controller.

A probe carries the dpid and the port of its sender, and a tag that only this controller can
compute: a keyed hash of the sender and the round. So nobody else can forge one, and an old one
counts for nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2s
from secrets import compare_digest
from struct import Struct

from ryu.ofproto import ofproto_v1_3 as ofp

from knotless.controller.probe_rules import ETHER_TYPE, TO_NEIGHBOUR, TO_NEIGHBOUR_AND_BACK

ROUNDS_VALID = 4096
"""Older probes are ignored; a paused port may have held them for minutes."""
_VLAN_TPID = 0x8100
_SOURCE = bytes((0x06, 0x6B, 0x6E))
"""Of the source address (locally administered); the sending port follows."""
_TAG_BYTES = 8
_CONTENT = Struct("!4s?QI8s")
_MAGIC = b"KNPR"
_PACKET_OUT = Struct("!BBHIIIH6x")
_SET_SOURCE = Struct("!HHHBB3s3s2x")
_OUTPUT = Struct("!HHIH6x")
_OXM_ETH_SRC = 4 << 1
_OXM_IN_PORT = (ofp.OFPXMC_OPENFLOW_BASIC, 0)
"""Class and field, the latter with the bit of a mask."""
_OXM = Struct("!HBB")
_MATCH = Struct("!HH")
_MATCH_AT = ofp.OFP_PACKET_IN_SIZE - ofp.OFP_MATCH_SIZE
_PACKET_IN_PADDING = 2
_TYPE_AT = 12


@dataclass(frozen=True)
class Probe:
    """A probe that has arrived: who sent it, and whether the next switch was to send it back."""

    dpid: int
    port: int
    reflected: bool
    number: int
    """The round in which it was sent."""


def packet_in_parts(message: bytes) -> tuple[int | None, bytes]:
    """Return the port of a packet-in, None if it has none, and its frame.

    The lengths in ``message`` are right: :func:`knotless.controller.southbound.messages.check` has
    accepted them.
    """
    _, match_bytes = _MATCH.unpack_from(message, _MATCH_AT)
    frame = message[_MATCH_AT + (match_bytes + 7) // 8 * 8 + _PACKET_IN_PADDING :]
    at, end = _MATCH_AT + _MATCH.size, _MATCH_AT + match_bytes
    while at < end:
        *field, length = _OXM.unpack_from(message, at)
        at += _OXM.size
        if tuple(field) == _OXM_IN_PORT:
            return int.from_bytes(message[at : at + length], "big"), frame
        at += length
    return None, frame


class Frames:
    """Writes and reads the probes of one controller.

    ``priority`` is that of their tag, without a VLAN; None: they are untagged. ``per_port``: each
    is bound to its port, so that a host that gets one cannot make it that of another port. That
    takes a message for each port.
    """

    def __init__(self, priority: int | None, *, per_port: bool = False) -> None:
        self._key, self._per_port = secrets.token_bytes(32), per_port
        tag = b"" if priority is None else Struct("!HH").pack(_VLAN_TPID, priority << 13)
        self._type = tag + ETHER_TYPE.to_bytes(2, "big")
        self.round = 0

    def packet_out(self, dpid: int, ports: Iterable[int], *, reflected: bool) -> bytes:
        """Return what has a switch send a probe from each of its ``ports``."""
        if not self._per_port:
            return self._message(dpid, ports, 0, reflected=reflected)
        return b"".join(self._message(dpid, (at,), at, reflected=reflected) for at in ports)

    def _message(self, dpid: int, ports: Iterable[int], bound: int, *, reflected: bool) -> bytes:
        actions = b"".join(
            _SET_SOURCE.pack(
                *(ofp.OFPAT_SET_FIELD, _SET_SOURCE.size, ofp.OFPXMC_OPENFLOW_BASIC),
                *(_OXM_ETH_SRC, 6, _SOURCE, port.to_bytes(3, "big")),
            )
            + _OUTPUT.pack(ofp.OFPAT_OUTPUT, _OUTPUT.size, port, 0)
            for port in ports
        )
        destination = TO_NEIGHBOUR_AND_BACK if reflected else TO_NEIGHBOUR
        proof = self._proof(dpid, bound, self.round, reflected=reflected)
        content = _CONTENT.pack(_MAGIC, reflected, dpid, self.round, proof)
        frame = destination.to_bytes(6, "big") + _SOURCE + bytes(3) + self._type + content
        length = _PACKET_OUT.size + len(actions) + len(frame)
        head = _PACKET_OUT.pack(
            *(ofp.OFP_VERSION, ofp.OFPT_PACKET_OUT, length, 0),
            *(ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, len(actions)),
        )
        return head + actions + frame

    def read(self, frame: bytes) -> Probe | None:
        """Return the probe in a frame, or None if it is none of ours."""
        at = _TYPE_AT + len(self._type)
        if frame[6:9] != _SOURCE or frame[_TYPE_AT:at] != self._type:
            return None
        if len(frame) < at + _CONTENT.size:
            return None
        magic, reflected, dpid, number, proof = _CONTENT.unpack_from(frame, at)
        if magic != _MAGIC or not 0 <= self.round - number < ROUNDS_VALID:
            return None
        port = int.from_bytes(frame[9:12], "big")
        right = self._proof(dpid, port if self._per_port else 0, number, reflected=reflected)
        return Probe(dpid, port, reflected, number) if compare_digest(proof, right) else None

    def _proof(self, dpid: int, port: int, number: int, *, reflected: bool) -> bytes:
        text = _CONTENT.pack(_MAGIC, reflected, dpid, number, port.to_bytes(_TAG_BYTES, "big"))
        return blake2s(text, key=self._key, digest_size=_TAG_BYTES).digest()
