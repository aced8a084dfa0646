"""The interface of traffic patterns, and their registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knotless.base.errors import KnotlessError
from knotless.base.plugins import Plugins
from knotless.base.suggestions import suggestion
from knotless.topologies.fabric import Fabric

Flows = NDArray[np.int32]
"""(flows, 2): source and destination of each flow, as host indices."""


class PatternError(KnotlessError):
    """A pattern that does not exist, or does not fit the fabric."""


@dataclass(frozen=True)
class Pattern:
    """A traffic pattern.

    ``make(fabric, seed)`` yields the phases one by one; the flows of a phase are simultaneous. A
    flow from a host to itself means that the host does not send; only all-to-all patterns have
    such flows, so that each phase contains every host. ``numbered`` returns the pattern
    ``NAME:K`` for a number K, if the pattern has this form.
    """

    name: str
    summary: str
    make: Callable[[Fabric, int], Iterator[Flows]]
    in_phases: bool = False
    numbered: Callable[[int], Pattern] | None = None

    def phases(self, fabric: Fabric, seed: int = 1) -> Iterator[Flows]:
        """Yield the flows of each phase; a pattern without phases yields once.

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
    """Return the patterns by name, in alphabetical order."""
    return Plugins("knotless.traffic.patterns", Pattern)


def pattern_named(text: str) -> Pattern:
    """Return the pattern called ``text``: ``tornado``, or with a number, ``shift:3``.

    Raises
    ------
    PatternError
        There is no such pattern, or it takes no such number.

    """
    registered = patterns()
    name, colon, number = text.lower().partition(":")
    if name not in registered:
        from knotless.traffic.collectives.collective import collectives  # only a mistake needs them

        if name in collectives():
            raise PatternError(f"{name!r} is a collective: simulate --collective {name}")
        hint = suggestion(name, registered)
        raise PatternError(f"there is no pattern {name[:50]!r}; {hint}")
    if not colon:
        return registered[name]
    numbered = registered[name].numbered
    if numbered is None:
        raise PatternError(f"pattern {name} takes no number, not {text[:50]!r}")
    if not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise PatternError(f"pattern {name}: {number[:20]!r} must be a whole number from 0")
    return numbered(int(number))


def pattern_of(name: str, summary: str, pairs: ArrayLike) -> Pattern:
    """Return a pattern of fixed (source, destination) hosts, independent of the fabric."""
    flows = np.array(pairs, dtype=np.int32).reshape(-1, 2)

    def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
        del fabric, seed
        yield flows

    return Pattern(name, summary, make)


def to_each(destinations: NDArray[np.integer]) -> Flows:
    """Return the flows of hosts 0, 1, .. to these destinations, one each."""
    return np.stack([np.arange(len(destinations)), destinations], axis=1).astype(np.int32)


def address_bits(name: str, fabric: Fabric) -> int:
    """Return b if the fabric has 2**b hosts.

    Raises
    ------
    PatternError
        The number of hosts is not a power of two.

    """
    count = len(fabric.hosts)
    if count & (count - 1):
        raise PatternError(
            f"pattern {name} needs a power of two hosts, not the {count} of {fabric.name}"
        )
    return count.bit_length() - 1
