"""The channel dependency graph, and a cycle in it when there is one.

A node is a virtual channel: ``channel * 8 + priority``. There is an edge from one to another
where some frame holds the first while it waits for the second. Without a cycle no deadlock
can happen.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks, 1987.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from knotless_core.graph import is_acyclic, shortest_cycle
from routing.graphs.channels import PRIORITIES, Channels, Ints

Number = TypeVar("Number", int, NDArray[np.int64])


def virtual_channel(channel: Number, priority: Number) -> Number:
    """Return the node of the graph for ``channel`` and ``priority``, or for arrays of them."""
    return channel * PRIORITIES + priority


def find_cycle(edges: Iterable[tuple[int, int]] | NDArray[np.int64]) -> list[int]:
    """Return a shortest cycle, from its smallest member on, or an empty list.

    Of several shortest ones it is that with the smallest members, so equal graphs give equal
    cycles, whatever the order of ``edges``.
    """
    listed = edges if isinstance(edges, np.ndarray) else list(edges)
    ends = np.array(listed, dtype=np.int32).reshape(-1, 2)
    return cycle_among(np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1]))


def cycle_among(before: Ints, after: Ints) -> list[int]:
    """Return the same of edges as arrays (from, to), in which an edge may come more than once."""
    nodes = 1 + max(int(before.max(initial=0)), int(after.max(initial=0)))
    if is_acyclic(nodes, before, after):
        return []
    return shortest_cycle(before.astype(np.int64), after.astype(np.int64))


def cycle_names(channels: Channels, cycle: Sequence[int]) -> list[str]:
    """Return a cycle as ``SWITCH:PORT/PRIORITY`` texts."""
    return [channels.name(*divmod(node, PRIORITIES)) for node in cycle]
