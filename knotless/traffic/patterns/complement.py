"""Complement: host i sends to host N - 1 - i; if N is a power of two, all bits are inverted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import Flows, Pattern, to_each


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase."""
    del seed
    yield to_each(np.arange(len(fabric.hosts))[::-1])


PATTERN = Pattern("complement", "host i to host N - 1 - i: every bit inverted", make)
