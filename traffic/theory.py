"""What flows may expect of a fabric: wire bytes of a frame, and max-min fair shares."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, TypeVar

Channel = TypeVar("Channel", bound=Hashable)
Protocol = Literal["udp", "tcp"]

UDP_PAYLOAD_BYTES = 1472
"""The largest UDP datagram in one Ethernet frame: MTU 1500 less IPv4 (20) and UDP (8)."""
TCP_PAYLOAD_BYTES = 1448
"""Linux's segment on MTU 1500: less IPv4 (20), TCP (20) and the timestamp option (12)."""
TCP_SEGMENTS_PER_ACK = 2
"""RFC 5681's delayed acknowledgement: one for every second full segment."""

MTU_BYTES = 1500
IPV4_HEADER_BYTES = 20
UDP_HEADER_BYTES = 8
ETHERNET_HEADER_BYTES = 14
VLAN_TAG_BYTES = 4
FCS_BYTES = 4
GAP_BYTES = 8 + 12
"""Preamble with start delimiter, and inter-frame gap of IEEE 802.3."""
MIN_FRAME_BYTES = 64
"""IEEE 802.3's smallest frame, FCS included."""
HEADER_BYTES: Mapping[str, int] = {
    "udp": ETHERNET_HEADER_BYTES + 20 + 8,
    "tcp": ETHERNET_HEADER_BYTES + 20 + 20 + 12,
}
"""What stands before the payload in an untagged frame, by protocol."""
PAYLOAD_BYTES: Mapping[str, int] = {"udp": UDP_PAYLOAD_BYTES, "tcp": TCP_PAYLOAD_BYTES}
"""Payload of a full frame, by protocol."""


def wire_bytes(protocol: Protocol, payload_bytes: int, *, tagged: bool) -> int:
    """Return the bytes of line time that one frame with this payload takes."""
    frame = HEADER_BYTES[protocol] + payload_bytes + (VLAN_TAG_BYTES if tagged else 0)
    return max(frame + FCS_BYTES, MIN_FRAME_BYTES) + GAP_BYTES


def message_packets(message_bytes: int) -> list[int]:
    """Return the bytes of the IPv4 packets that one message becomes: full datagrams, and a rest."""
    whole, rest = divmod(message_bytes, UDP_PAYLOAD_BYTES)
    payloads = [UDP_PAYLOAD_BYTES] * whole + ([rest] if rest or not whole else [])
    return [IPV4_HEADER_BYTES + UDP_HEADER_BYTES + payload for payload in payloads]


def packet_wire_bytes(packet_bytes: int, *, tagged: bool) -> int:
    """Return the bytes of line time that an IP packet takes as an Ethernet frame."""
    frame = ETHERNET_HEADER_BYTES + packet_bytes + (VLAN_TAG_BYTES if tagged else 0)
    return max(frame + FCS_BYTES, MIN_FRAME_BYTES) + GAP_BYTES


def load_per_payload(protocol: Protocol, *, tagged: bool, ack: bool = False) -> float:
    """Return line bytes spent for each payload byte, on the data's or the ACKs' way."""
    payload = PAYLOAD_BYTES[protocol]
    if not ack:
        return wire_bytes(protocol, payload, tagged=tagged) / payload
    if protocol == "udp":
        return 0.0
    return wire_bytes(protocol, 0, tagged=tagged) / (TCP_SEGMENTS_PER_ACK * payload)


def fair_shares(
    loads: Sequence[Mapping[Channel, float]], capacity_mbps: Mapping[Channel, float]
) -> list[float]:
    """Share channels among flows max-min fairly.

    ``loads[i]`` gives, for each channel that flow ``i`` uses, the Mbit/s of line that one
    Mbit/s of its goodput takes. The rates of all flows rise together; a flow stops when one
    of its channels is full (Bertsekas and Gallager, Data Networks, 6.5.2). Returns the
    goodput of each flow in Mbit/s. A flow that uses no channel is an error (ValueError).
    """
    if any(not load for load in loads):
        raise ValueError("a flow that uses no channel has no fair share")
    left = dict(capacity_mbps)
    shares = [0.0] * len(loads)
    rising = set(range(len(loads)))
    while rising:
        used: dict[Channel, float] = {}
        for i in rising:
            for channel, load in loads[i].items():
                used[channel] = used.get(channel, 0.0) + load
        step = min(left[channel] / load for channel, load in used.items() if load > 0)
        full = set()
        for channel, load in used.items():
            left[channel] -= step * load
            if load > 0 and left[channel] <= 1e-9 * capacity_mbps[channel]:
                full.add(channel)
        for i in list(rising):
            shares[i] += step
            if any(load > 0 and channel in full for channel, load in loads[i].items()):
                rising.remove(i)
    return shares
