"""Steps along the rings of a grid, or along one ring of all hosts on other fabrics."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import Flows, PatternError, to_each


def move(name: str, fabric: Fabric, step: Callable[[int], int]) -> Flows:
    """Return flows to the switch ``step(size)`` ahead in every dimension, modulo its size.

    Each host sends to the host of the same rank on that switch. On a fabric that is not a grid,
    all hosts in their order form one ring.

    Raises
    ------
    PatternError
        Not all switches of the grid have the same number of hosts.

    """
    count = len(fabric.hosts)
    if fabric.grid is None:
        return to_each((np.arange(count) + step(count)) % count)
    by_switch = [
        [fabric.host_index[h.name] for h in by.values()] for by in fabric.hosts_at.values()
    ]
    if len({len(hosts) for hosts in by_switch}) > 1:
        raise PatternError(
            f"pattern {name} needs the same number of hosts on each switch of a grid;"
            f" {fabric.name} has {min(map(len, by_switch))} to {max(map(len, by_switch))}"
        )
    table = np.array(by_switch)
    destination = np.empty(count, dtype=np.int64)
    destination[table] = table[_moved(fabric.grid.dims, step)]
    return to_each(destination)


def _moved(dims: tuple[int, ...], step: Callable[[int], int]) -> NDArray[np.int64]:
    """Return the destination switch of each switch's hosts."""
    switch = np.arange(prod(dims))
    target = np.zeros_like(switch)
    stride = 1
    for size in dims:
        target += (switch // stride + step(size)) % size * stride
        stride *= size
    return target
