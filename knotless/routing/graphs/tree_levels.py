"""The levels of multi-level trees: the distance of each switch from the hosts."""

from __future__ import annotations

import numpy as np

from knotless._core.graph import StateGraph
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.state_graph import FAR
from knotless.routing.graphs.task import Task


def levels(task: Task) -> Ints:
    """Return the level of each switch: the number of hops to the nearest one with hosts."""
    with_hosts = np.flatnonzero(task.receivers).astype(np.int32)
    return task.channels.core.breadth_first(with_hosts)[1]


def tree_levels(task: Task) -> Ints | None:
    """Return the level of each switch, or None if a link connects two switches of one level."""
    channels, level = task.channels, levels(task)
    return None if (level[channels.head] == level[channels.tail]).any() else level


def all_connected(task: Task, graph: StateGraph) -> bool:
    """Tell whether ``graph`` has a path between every two switches with hosts."""
    with_hosts = np.flatnonzero(task.receivers)
    return bool((graph.hops()[np.ix_(with_hosts, with_hosts)] < FAR).all())
