"""The channel dependency graph, and the search for a cycle in it.

A node is a virtual channel: ``channel * 16 + priority``. An edge means that some frame can hold the
first while it waits for the second. If there is no cycle, no deadlock is possible.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks, 1987.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from knotless._core.graph import is_acyclic, shortest_cycle
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, Channels, Ints

Number = TypeVar("Number", int, NDArray[np.int64])


def virtual_channel(channel: Number, priority: Number) -> Number:
    """Return the node of the graph for ``channel`` and ``priority``, or for arrays of them."""
    return channel * VCS_PER_CHANNEL + priority


def find_cycle(edges: Iterable[tuple[int, int]] | NDArray[np.int64]) -> list[int]:
    """Return a shortest cycle, starting at its smallest node, or an empty list.

    Among several shortest cycles the one with the smallest nodes is returned, so that the result
    does not depend on the order of ``edges``.

    Parameters
    ----------
    edges : iterable of (int, int), or array of shape (edges, 2)
        The edges, from the first node to the second.

    Returns
    -------
    list of int
        The nodes of the cycle, each once.

    Examples
    --------
    >>> find_cycle([(16, 32), (32, 0), (32, 48), (0, 16)])
    [0, 16, 32]

    """
    listed = edges if isinstance(edges, np.ndarray) else list(edges)
    ends = np.array(listed, dtype=np.int32).reshape(-1, 2)
    return cycle_among(np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1]))


def cycle_among(before: Ints, after: Ints) -> list[int]:
    """Return the same for edges given as (from, to) arrays; duplicates are allowed."""
    nodes = 1 + max(int(before.max(initial=0)), int(after.max(initial=0)))
    if is_acyclic(nodes, before, after):
        return []
    return shortest_cycle(before.astype(np.int64), after.astype(np.int64))


def cycle_names(channels: Channels, cycle: Sequence[int]) -> list[str]:
    """Return a cycle in the form ``SWITCH:PORT/PRIORITY``."""
    return [channels.name(*divmod(node, VCS_PER_CHANNEL)) for node in cycle]
