"""Neighbour: one step on in every dimension.

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
    """Yield the one phase."""
    del seed
    yield move("neighbour", fabric, lambda size: 1 % size)


PATTERN = Pattern("neighbour", "one step on in each dimension (or ring of hosts)", make)
