"""Neighbour: one step ahead in every dimension.

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
    """Yield the one phase."""
    del seed
    yield move("neighbour", fabric, lambda size: 1 % size)


PATTERN = Pattern("neighbour", "one step ahead in each dimension (or ring of hosts)", make)
