"""Random permutation: each host sends to one host and receives from one; needs a seed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import Flows, Pattern, to_each


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase; all permutations are equally likely."""
    yield to_each(np.random.default_rng(seed).permutation(len(fabric.hosts)))


PATTERN = Pattern("permutation", "a random permutation of the hosts (see seed)", make)
