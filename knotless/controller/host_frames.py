"""What a frame says about the host that has sent it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

_ARP = b"\x08\x06"
_IPV4 = b"\x08\x00"
_LINK_LOCAL = b"\x01\x80\xc2\x00\x00"
"""Addresses of frames for the next switch only (IEEE 802.1Q, 8.6.3): bridges send them too."""
_HEAD = 14
_ARP_ETHERNET_IPV4 = b"\x00\x01\x08\x00\x06\x04"


@dataclass(frozen=True)
class Sender:
    """The sender of a frame; ``ip`` is its IPv4 address, if the frame has one for a host."""

    mac: int
    ip: str | None


def sender_of(frame: bytes) -> Sender | None:
    """Return who has sent a frame, or None if it shows no host.

    Frames of protocols between neighbours do not, nor do tagged ones and those with an address that
    no host may have.
    """
    source = int.from_bytes(frame[6:12], "big")
    if len(frame) < _HEAD or source == 0 or frame[6] & 1 or frame[:5] == _LINK_LOCAL:
        return None
    kind = frame[12:_HEAD]
    if kind == _ARP and frame[14:20] == _ARP_ETHERNET_IPV4 and frame[22:28] == frame[6:12]:
        return Sender(source, _address(frame[28:32]))
    if kind == _IPV4:
        return Sender(source, _address(frame[26:30]))
    if kind == b"\x81\x00" or kind == b"\x88\xa8":
        return None
    return Sender(source, None)


def _address(data: bytes) -> str | None:
    if len(data) < IPv4Address(0).max_prefixlen // 8:
        return None
    address = IPv4Address(data)
    unusable = address.is_multicast or address.is_unspecified or address.is_loopback
    return None if unusable or address == IPv4Address("255.255.255.255") else str(address)
