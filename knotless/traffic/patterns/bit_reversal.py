"""Bit reversal: the destination's number is the source's with its bits in reverse order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import Flows, Pattern, address_bits, to_each


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase; raises PatternError unless the number of hosts is a power of two."""
    del seed
    bits = address_bits("bit-reversal", fabric)
    source = np.arange(1 << bits)
    destination = np.zeros_like(source)
    for bit in range(bits):
        destination |= (source >> bit & 1) << (bits - 1 - bit)
    yield to_each(destination)


PATTERN = Pattern("bit-reversal", "the bits of the host's number, reversed", make)
