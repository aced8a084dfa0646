"""Uniform: every host sends to every other host, all flows at the same time and rate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import Flows, Pattern


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase, sorted by source, then destination."""
    del seed
    every = np.arange(len(fabric.hosts), dtype=np.int32)
    yield np.stack([np.repeat(every, len(every)), np.tile(every, len(every))], axis=1)


PATTERN = Pattern("uniform", "each host to all others at once", make)
