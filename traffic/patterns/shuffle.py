"""Perfect shuffle: the bits of the source's number, turned left by one, are the destination's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topologies.fabric import Fabric
from traffic.patterns.pattern import Flows, Pattern, address_bits, to_each


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase; PatternError unless the hosts are a power of two."""
    del seed
    bits = address_bits("shuffle", fabric)
    source = np.arange(1 << bits)
    yield to_each((source << 1 | source >> max(0, bits - 1)) & ((1 << bits) - 1))


PATTERN = Pattern("shuffle", "the bits of the host's number, rotated left by one", make)
