"""Butterfly: the highest and the lowest bit of the source's number are exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import Flows, Pattern, address_bits, to_each


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase; raises PatternError unless the number of hosts is a power of two."""
    del seed
    bits = address_bits("butterfly", fabric)
    source = np.arange(1 << bits)
    top = max(0, bits - 1)
    differ = (source >> top ^ source) & 1
    yield to_each(source ^ (differ << top | differ) if top else source)


PATTERN = Pattern("butterfly", "the host's number, first and last bit exchanged", make)
