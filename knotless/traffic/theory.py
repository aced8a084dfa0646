"""Wire bytes of frames, and the line load of a payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from knotless._core import simulator

Protocol = Literal["udp", "tcp"]

UDP_PAYLOAD_BYTES = 1472
"""The largest UDP datagram in one Ethernet frame: MTU 1500 minus IPv4 (20) and UDP (8)."""
TCP_PAYLOAD_BYTES = 1448
"""Linux's TCP segment at MTU 1500: minus IPv4 (20), TCP (20) and the timestamp option (12)."""
TCP_SEGMENTS_PER_ACK = 2
"""RFC 5681's delayed acknowledgement: one for every second full segment."""

MTU_BYTES = 1500
IPV4_HEADER_BYTES = 20
UDP_HEADER_BYTES = 8
ETHERNET_HEADER_BYTES = 14
VLAN_TAG_BYTES = 4
FCS_BYTES = 4
HEADER_BYTES: Mapping[str, int] = {
    "udp": ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES,
    "tcp": ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + 20 + 12,
}
"""Header bytes before the payload in an untagged frame, by protocol."""
PAYLOAD_BYTES: Mapping[str, int] = {"udp": UDP_PAYLOAD_BYTES, "tcp": TCP_PAYLOAD_BYTES}
"""Payload bytes of a full frame, by protocol."""


def wire_bytes(protocol: Protocol, payload_bytes: int, *, tagged: bool) -> int:
    """Return the bytes that a frame with this payload occupies on the line, gap included."""
    packet = HEADER_BYTES[protocol] - ETHERNET_HEADER_BYTES + payload_bytes
    return packet_wire_bytes(packet, tagged=tagged)


def message_packets(message_bytes: int) -> list[int]:
    """Return the sizes of the IPv4 packets of one message: full datagrams, then the remainder."""
    whole, rest = divmod(message_bytes, UDP_PAYLOAD_BYTES)
    payloads = [UDP_PAYLOAD_BYTES] * whole + ([rest] if rest or not whole else [])
    return [IPV4_HEADER_BYTES + UDP_HEADER_BYTES + payload for payload in payloads]


def packet_wire_bytes(packet_bytes: int, *, tagged: bool) -> int:
    """Return the bytes that an IP packet occupies on the line as an Ethernet frame."""
    frame = ETHERNET_HEADER_BYTES + packet_bytes + (VLAN_TAG_BYTES if tagged else 0)
    return simulator.wire_bytes(frame + FCS_BYTES)


def load_per_payload(protocol: Protocol, *, tagged: bool, ack: bool = False) -> float:
    """Return the line bytes per payload byte, in the direction of the data or of the ACKs."""
    payload = PAYLOAD_BYTES[protocol]
    if not ack:
        return wire_bytes(protocol, payload, tagged=tagged) / payload
    if protocol == "udp":
        return 0.0
    return wire_bytes(protocol, 0, tagged=tagged) / (TCP_SEGMENTS_PER_ACK * payload)
