"""Addresses and names by number; the MAC and IP of a host identify its switch and port.

Switch ``i`` (from 0) is ``s{i+1}`` with dpid ``i + 1``. The host on port ``p`` of the switch with
code ``n`` has MAC ``02:00:00:NN:NN:PP`` and IP ``10.N.N.P``. The code is ``i + 1``. If the family
gives coordinates (or pod and position), the code instead has a bit field for each of them, so
that a rule that matches a few bits covers a row or a pod. Multicast group ``g`` has MAC
``03:00:00:00:GG:GG``.
"""

from __future__ import annotations

from collections.abc import Sequence

CODE_BITS = 16
"""The switch number takes two bytes of the MAC."""
MAX_SWITCHES = 65_535
"""Largest number of switches whose codes are plain numbers from 1."""
MAX_HOSTS_PER_SWITCH = 254
"""The last byte of an IP numbers the host; 0 and 255 are not used."""
MAX_HOSTS = 262_144
"""Far more than can be emulated or simulated here; it bounds the cost of a typing error."""
MAX_LINKS = 1_000_000
"""The same bound for the links of a tree."""
MAX_PORT = 65_279
"""The highest port number of Open vSwitch (0xfeff)."""

_MAC_PREFIX = 0x02 << 40
_GROUP_PREFIX = 0x03 << 40
"""A locally administered multicast address."""
MAX_GROUPS = 65_535
"""The group number takes two bytes of the MAC."""


def codes(places: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the code of each switch from its coordinates, the first in the lowest bits.

    Codes are plain numbers from 1 if the fields do not fit, or if all fields but the last are
    full, because plain numbers then have the same bit layout.
    """
    sizes = [max(coordinates) + 1 for coordinates in zip(*places, strict=True)]
    widths = [(size - 1).bit_length() for size in sizes]
    full = all(size == 1 << width for size, width in zip(sizes[:-1], widths, strict=False))
    if full or sum(widths) > CODE_BITS:
        return list(range(1, len(places) + 1))
    shifts = [sum(widths[:field]) for field in range(len(widths))]
    return [sum(x << s for x, s in zip(place, shifts, strict=True)) for place in places]


def switch_mac(number: int) -> int:
    """Return the 48-bit MAC prefix of all hosts of switch ``number``; the last byte is zero."""
    return _MAC_PREFIX | number << 8


def host_mac(number: int, port: int) -> str:
    """Return the MAC of the host on ``port`` of switch ``number`` (from 1)."""
    return mac_text(switch_mac(number) | port)


def group_mac(number: int) -> int:
    """Return the MAC of multicast group ``number`` (from 1) as a 48-bit integer."""
    return _GROUP_PREFIX | number


def host_ip(number: int, port: int) -> str:
    """Return the IPv4 address of the host on ``port`` of switch ``number`` (from 1)."""
    return f"10.{number >> 8}.{number & 0xFF}.{port}"


def mac_text(value: int) -> str:
    """Format a 48-bit integer as ``aa:bb:cc:dd:ee:ff``."""
    return (value & (1 << 48) - 1).to_bytes(6, "big").hex(":")


def mac_value(text: str) -> int:
    """Parse ``aa:bb:cc:dd:ee:ff``, which must be well formed, as a 48-bit integer."""
    return int(text.replace(":", ""), 16)


def ip_value(text: str) -> int:
    """Parse the IPv4 address ``a.b.c.d``, which must be well formed, as a 32-bit integer."""
    return int.from_bytes(map(int, text.split(".")))
