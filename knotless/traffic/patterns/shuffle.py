"""Perfect shuffle: the destination's number is the source's with its bits rotated left by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import Flows, Pattern, address_bits, to_each


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase; raises PatternError unless the number of hosts is a power of two."""
    del seed
    bits = address_bits("shuffle", fabric)
    source = np.arange(1 << bits)
    yield to_each((source << 1 | source >> max(0, bits - 1)) & ((1 << bits) - 1))


PATTERN = Pattern("shuffle", "the bits of the host's number, rotated left by one", make)
