"""Matrix transpose: of k x k hosts, host (i, j) sends to host (j, i)."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import Flows, Pattern, PatternError, to_each


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase; raises PatternError unless the number of hosts is a square."""
    del seed
    count = len(fabric.hosts)
    side = isqrt(count)
    if side * side != count:
        raise PatternError(
            f"pattern transpose needs a square number of hosts, not the {count} of {fabric.name}"
        )
    yield to_each(np.arange(count).reshape(side, side).T.reshape(-1))


PATTERN = Pattern("transpose", "of k x k hosts, host (i, j) to host (j, i)", make)
