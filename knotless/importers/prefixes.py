"""Longest prefix match: addresses that no router of a fabric distinguishes.

The addresses of IPv4, of IPv6 and of Ethernet (by VLAN) are numbered together. The ends of all
prefixes divide them into ranges; every router treats all addresses of a range alike.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import RuleError
from knotless.topologies.numbering import mac_text

_IPV4_END = 1 << 32
_IPV6_FIRST = 1 << 128
_IPV6_END = _IPV6_FIRST + (1 << 128)
_MAC_FIRST = 1 << 130
_MAC = re.compile(r"((?:[0-9a-f]{2}:){5}[0-9a-f]{2})@(\d{1,4})")
ROUTED = -1
"""The space of IP addresses; that of Ethernet addresses is their VLAN."""


@dataclass(frozen=True, order=True)
class Prefix:
    """The addresses from ``first`` to ``end``, exclusive; ``text`` is how the prefix is written."""

    first: int
    end: int
    text: str = field(compare=False)

    def has(self, other: Prefix) -> bool:
        """Tell whether all addresses of another prefix are among these."""
        return self.first <= other.first and other.end <= self.end

    @property
    def size(self) -> int:
        """The number of addresses."""
        return self.end - self.first

    @property
    def space(self) -> int:
        """The VLAN of an Ethernet address, :data:`ROUTED` for IP."""
        return ROUTED if self.first < _MAC_FIRST else (self.first - _MAC_FIRST) >> 48


@lru_cache(maxsize=1 << 17)
def prefix_of(text: str) -> Prefix:
    """Return the prefix ``10.0.0.0/24`` or the address ``10.0.0.1``; host bits may be set.

    An Ethernet address is written ``02:00:00:00:00:01@10``, with its VLAN.

    Raises
    ------
    RuleError
        It is neither.

    """
    if mac := _MAC.fullmatch(text):
        number = _MAC_FIRST + (int(mac[2]) << 48) + int(mac[1].replace(":", ""), 16)
        return Prefix(number, number + 1, text)
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise RuleError(f"{text[:60]!r} is not a prefix such as 10.0.0.0/24") from None
    base = _IPV6_FIRST if network.version == 6 else 0
    first = base + int(network.network_address)
    return Prefix(first, first + network.num_addresses, str(network))


@dataclass(frozen=True)
class Ranges:
    """Ranges of addresses between the ends of prefixes, in ascending order."""

    ends: list[int]
    place: dict[int, int]

    def __len__(self) -> int:
        """Return the number of ranges."""
        return max(0, len(self.ends) - 1)

    def places(self, prefix: Prefix) -> slice:
        """Return the places of the ranges in a prefix."""
        return slice(self.place[prefix.first], self.place[prefix.end])

    @property
    def spaces(self) -> NDArray[np.int64]:
        """The space of each range; see :attr:`Prefix.space`."""
        firsts = (Prefix(first, first + 1, "") for first in self.ends[:-1])
        return np.array([first.space for first in firsts], dtype=np.int64)

    @property
    def gaps(self) -> NDArray[np.bool_]:
        """Whether each range lies between the addresses of two kinds, and has none itself."""
        ends = (_IPV4_END, _IPV6_END)
        return np.array([first in ends for first in self.ends[:-1]], dtype=np.bool_)

    def matched(self, routes: Iterable[tuple[Prefix, int]]) -> list[NDArray[np.int32]]:
        """Return by range the value of the longest of the prefixes that holds it, -1: none.

        Further arrays follow: the value of the next shorter prefix with another value, and so on.
        """
        layers: list[NDArray[np.int32]] = [np.full(len(self), -1, dtype=np.int32)]
        for prefix, value in sorted(routes, key=lambda route: -route[0].size):
            place = self.places(prefix)
            moved = np.full(place.stop - place.start, value, dtype=np.int32)
            covered = layers[0][place] != value
            for layer in layers:
                former = layer[place].copy()
                layer[place] = np.where(covered, moved, former)
                moved = np.where(covered, former, -1)
            if (moved >= 0).any():
                layers.append(np.full(len(self), -1, dtype=np.int32))
                layers[-1][place] = moved
        return layers

    def prefixes(self, place: int) -> list[str]:
        """Return the prefixes that make up a range of IP addresses; none for Ethernet."""
        first, end = self.ends[place], self.ends[place + 1]
        if first >= _MAC_FIRST:
            return []
        kind, base = (
            (ipaddress.IPv6Address, _IPV6_FIRST)
            if first >= _IPV6_FIRST
            else (ipaddress.IPv4Address, 0)
        )
        networks = ipaddress.summarize_address_range(kind(first - base), kind(end - 1 - base))
        return [str(network) for network in networks]

    def text(self, place: int) -> str:
        """Return a range as text: a prefix if it is one, else its first address."""
        first, end = self.ends[place], self.ends[place + 1]
        if first >= _MAC_FIRST:
            return f"{mac_text(first & (1 << 48) - 1)}@{(first - _MAC_FIRST) >> 48}"
        size, version = end - first, 6 if first >= _IPV6_FIRST else 4
        address = (ipaddress.IPv6Address if version == 6 else ipaddress.IPv4Address)(
            first - (_IPV6_FIRST if version == 6 else 0)
        )
        bits = (128 if version == 6 else 32) - (size.bit_length() - 1)
        whole = size & (size - 1) == 0 and first % size == 0
        return f"{address}/{bits}" if whole else f"{address}.."


def ranges_of(prefixes: Sequence[Prefix]) -> Ranges:
    """Return the ranges into which ``prefixes`` divide the addresses."""
    ends = sorted({end for prefix in prefixes for end in (prefix.first, prefix.end)})
    kinds = (_IPV4_END, _IPV6_FIRST, _IPV6_END, _MAC_FIRST)
    ends = sorted({*ends, *(kind for kind in kinds if ends and ends[0] < kind < ends[-1])})
    return Ranges(ends, {end: place for place, end in enumerate(ends)})
