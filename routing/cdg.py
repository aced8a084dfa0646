"""The channel dependency graph, and a cycle in it when there is one.

A node is a virtual channel: ``channel * 8 + priority``. There is an edge from one to another
where some frame holds the first while it waits for the second. Without a cycle no deadlock
can happen.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks, 1987.

"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from knotless_core.graph import shortest_cycle
from routing.channels import PRIORITIES, Channels

FLOW_CONTROLS = ("pfc", "pause")
"""PFC stops one priority of a channel; 802.3x PAUSE stops all of them at once."""


def virtual_channel(channel: int, priority: int) -> int:
    """Return the node of the graph for ``channel`` and ``priority``."""
    return channel * PRIORITIES + priority


def merge_priorities(edges: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the graph as 802.3x sees it: all priorities of a channel wait together, as 0."""
    return {(a - a % PRIORITIES, b - b % PRIORITIES) for a, b in edges}


def find_cycle(edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return a shortest cycle, from its smallest member on, or an empty list.

    Of several shortest ones it is that with the smallest members, so equal graphs give equal
    cycles, whatever the order of ``edges``.
    """
    ends = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    return shortest_cycle(np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1]))


def cycle_names(channels: Channels, cycle: list[int]) -> list[str]:
    """Return a cycle as ``SWITCH:PORT/PRIORITY`` texts."""
    return [channels.name(*divmod(node, PRIORITIES)) for node in cycle]
