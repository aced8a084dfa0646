"""Addresses and names by number, so that a destination address tells its switch.

Switch ``i`` (from 0) is ``s{i+1}`` with dpid ``i + 1``. The host on port ``p`` of the switch with
code ``n`` has MAC ``02:00:00:NN:NN:PP`` and IP ``10.N.N.P``. The code is ``i + 1``, or where a
family tells the places of its switches (coordinates; pod and position), it has a field of bits for
each number of a place: rules that match a few bits then mean a row or a pod. Multicast group ``g``
has MAC ``03:00:00:00:GG:GG``.
"""

from __future__ import annotations

from collections.abc import Sequence

CODE_BITS = 16
"""Two bytes of a MAC tell the switch."""
MAX_SWITCHES = 65_535
"""So many have plain numbers from 1 on."""
MAX_HOSTS_PER_SWITCH = 254
"""The last byte of an IP numbers the host; 0 and 255 are better left alone."""
MAX_HOSTS = 262_144
"""Far above what can be emulated or simulated here; it keeps a slip of the keyboard cheap."""
MAX_LINKS = 1_000_000
"""Likewise for the links of a tree."""
MAX_PORT = 65_279
"""The highest port number that Open vSwitch gives (0xfeff)."""

_MAC_PREFIX = 0x02 << 40
_GROUP_PREFIX = 0x03 << 40
"""A locally administered address with the bit of groups."""
MAX_GROUPS = 65_535
"""Two bytes of a MAC number the multicast group."""


def codes(places: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the code of each switch from its place, the first number in the lowest bits.

    Plain numbers, from 1, if all fields but the last are full, where they do as well, and if the
    fields do not fit.
    """
    sizes = [max(of) + 1 for of in zip(*places, strict=True)]
    widths = [(size - 1).bit_length() for size in sizes]
    full = all(size == 1 << width for size, width in zip(sizes[:-1], widths, strict=False))
    if full or sum(widths) > CODE_BITS:
        return list(range(1, len(places) + 1))
    shifts = [sum(widths[:field]) for field in range(len(widths))]
    return [sum(x << s for x, s in zip(place, shifts, strict=True)) for place in places]


def switch_mac(number: int) -> int:
    """Return the MAC (48 bits) that all hosts of switch ``number`` share, last byte zero."""
    return _MAC_PREFIX | number << 8


def host_mac(number: int, port: int) -> str:
    """Return the MAC of the host on ``port`` of switch ``number`` (from 1)."""
    return mac_text(switch_mac(number) | port)


def group_mac(number: int) -> int:
    """Return the MAC (48 bits) of multicast group ``number`` (from 1)."""
    return _GROUP_PREFIX | number


def host_ip(number: int, port: int) -> str:
    """Return the IPv4 address of the host on ``port`` of switch ``number`` (from 1)."""
    return f"10.{number >> 8}.{number & 0xFF}.{port}"


def mac_text(value: int) -> str:
    """Return 48 bits as ``aa:bb:cc:dd:ee:ff``."""
    return ":".join(f"{value >> shift & 0xFF:02x}" for shift in range(40, -8, -8))


def mac_value(text: str) -> int:
    """Return the 48 bits of ``aa:bb:cc:dd:ee:ff``; the text must be well formed."""
    return int(text.replace(":", ""), 16)
