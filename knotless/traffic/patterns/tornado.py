"""Tornado: just under half way around every dimension, the worst case of minimal routes.

References
----------
Dally and Towles, Principles and Practices of Interconnection Networks, section 3.2.

"""

from __future__ import annotations

from collections.abc import Iterator

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.along_rings import move
from knotless.traffic.patterns.pattern import Flows, Pattern


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase: ceil(k / 2) - 1 steps ahead in a ring of k."""
    del seed
    yield move("tornado", fabric, lambda size: (size + 1) // 2 - 1)


PATTERN = Pattern("tornado", "ceil(k / 2) - 1 steps in each dimension (or ring of hosts)", make)
