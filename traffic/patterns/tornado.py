"""Tornado: in every dimension just less than half way round, the worst for minimal routes.

References
----------
Dally and Towles, Principles and Practices of Interconnection Networks, section 3.2.

"""

from __future__ import annotations

from collections.abc import Iterator

from topologies.fabric import Fabric
from traffic.patterns.along_rings import move
from traffic.patterns.pattern import Flows, Pattern


def make(fabric: Fabric, seed: int) -> Iterator[Flows]:
    """Yield the one phase: in a ring of k, ceil(k / 2) - 1 steps on."""
    del seed
    yield move("tornado", fabric, lambda size: (size + 1) // 2 - 1)


PATTERN = Pattern("tornado", "ceil(k / 2) - 1 steps on in each dimension (or ring of hosts)", make)
