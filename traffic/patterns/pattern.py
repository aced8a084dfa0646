"""What a traffic pattern is, and where the patterns are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.errors import KnotlessError
from common.plugins import plugins
from topologies.fabric import Fabric

Flows = NDArray[np.int32]
"""(flows, 2): source and destination of each flow, as places in the fabric's hosts."""


class PatternError(KnotlessError):
    """A pattern that does not exist, or that this fabric cannot have."""


@dataclass(frozen=True)
class Pattern:
    """A traffic pattern.

    ``make(fabric, seed)`` yields the phases, one after the other; in each, all flows are under way
    at once. Only the phases of an all-to-all hold hosts that send to themselves, so that
    each phase has every host; elsewhere such a host is silent. ``numbered`` makes the pattern
    ``NAME:K`` of a number K, where there are such.
    """

    name: str
    summary: str
    make: Callable[[Fabric, int], Iterator[Flows]]
    in_phases: bool = False
    numbered: Callable[[int], Pattern] | None = None

    def phases(self, fabric: Fabric, seed: int = 1) -> Iterator[Flows]:
        """Yield each phase's flows; a pattern without phases has one.

        Raises
        ------
        PatternError
            The pattern does not fit the fabric's hosts.

        """
        for flows in self.make(fabric, seed):
            yield flows if self.in_phases else flows[flows[:, 0] != flows[:, 1]]

    def flows(self, fabric: Fabric, seed: int = 1) -> list[tuple[int, int]]:
        """Return the flows (source, destination) of a pattern that has no phases.

        Raises
        ------
        PatternError
            The pattern has phases, or does not fit the fabric's hosts.

        """
        if self.in_phases:
            raise PatternError(f"pattern {self.name} is run in phases, not all at once")
        (flows,) = self.phases(fabric, seed)
        return [(source, to) for source, to in flows.tolist()]


@cache
def patterns() -> Mapping[str, Pattern]:
    """Return the patterns by name, in the order of their names."""
    return plugins("traffic.patterns", Pattern)


def pattern_named(text: str) -> Pattern:
    """Return the pattern that ``text`` names: ``tornado``, or with a number, ``shift:3``.

    Raises
    ------
    PatternError
        There is none of that name, or it takes no such number.

    """
    known = patterns()
    name, colon, number = text.partition(":")
    if name not in known:
        close = get_close_matches(name.lower()[:50], known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
        raise PatternError(f"no pattern is called {name[:50]!r}; {hint}")
    if not colon:
        return known[name]
    numbered = known[name].numbered
    if numbered is None:
        raise PatternError(f"pattern {name} takes no number, but {text[:50]!r} gives it one")
    if not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise PatternError(f"pattern {name}: {number[:20]!r} is no whole number from 0")
    return numbered(int(number))


def pattern_of(name: str, summary: str, pairs: ArrayLike) -> Pattern:
    """Return a pattern of these (source, destination) hosts alone, whatever the fabric."""
    flows = np.array(pairs, dtype=np.int32).reshape(-1, 2)

    def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
        del fabric, seed
        yield flows

    return Pattern(name, summary, make)


def to_each(destinations: NDArray[np.integer]) -> Flows:
    """Return the flows of hosts 0, 1, .. to these destinations, one each."""
    return np.stack([np.arange(len(destinations)), destinations], axis=1).astype(np.int32)


def address_bits(name: str, fabric: Fabric) -> int:
    """Return b where the fabric has 2**b hosts.

    Raises
    ------
    PatternError
        The count of hosts is no power of two.

    """
    count = len(fabric.hosts)
    if count & (count - 1):
        raise PatternError(
            f"pattern {name} needs a power of two hosts, which the {count} of {fabric.name} are not"
        )
    return count.bit_length() - 1
