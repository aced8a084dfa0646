"""Uniform permutation: each host sends to one host and gets from one, drawn by the seed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topologies.fabric import Fabric
from traffic.patterns.pattern import Flows, Pattern, to_each


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase; every permutation is as likely as any other."""
    yield to_each(np.random.default_rng(seed).permutation(len(fabric.hosts)))


PATTERN = Pattern("permutation", "a random permutation of the hosts, by the seed", make)
