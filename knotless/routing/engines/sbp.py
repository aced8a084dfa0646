"""Structured buffer pools: the virtual channel is the number of hops so far.

References
----------
Merlin and Schweitzer, Deadlock avoidance in store-and-forward networks, 1980; 'structured
channels' in Koibuchi et al., whose reduced form is that of RHiNET-1 (Yamamoto et al.).

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import balanced_paths
from knotless.routing.graphs.channels import Channels, Ints, Priorities
from knotless.routing.graphs.state_graph import plain_graph
from knotless.routing.graphs.task import Task
from knotless.routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return shortest paths on virtual channel 0, then one higher after each hop.

    Minimal on every fabric; needs as many virtual channels as the diameter. Ties are broken by
    :func:`knotless.routing.graphs.balance.balanced_paths`.
    """
    return _route(task, np.ones(len(task.channels.names), dtype=bool))


def route_reduced(task: Task) -> Routes:
    """Return the same paths; the virtual channel rises only on leaving certain switches.

    These are the switches with three or more neighbours. A cycle without such a switch would be
    a ring, and the whole fabric; in a ring the first switch counts as one of them.
    """
    channels = task.channels
    counts = _neighbours(channels)
    branching = counts >= 3
    if len(channels) and (counts == 2).all():
        branching[0] = True
    return _route(task, branching)


def _route(task: Task, branching: NDArray[np.bool_]) -> Routes:
    """Return shortest paths; the virtual channel rises on leaving a ``branching`` switch."""
    channels = task.channels
    rows, paths, _ = balanced_paths(task, plain_graph(channels))
    steps = branching[channels.tail[paths]] if len(channels) else np.zeros(paths.shape, dtype=bool)
    steps[:, :, :1] = False
    steps &= paths >= 0
    priorities = np.cumsum(steps, axis=2, dtype=np.uint8)
    priorities[paths < 0] = 0
    trees = channels.core.breadth_first_trees()
    return ExplicitRoutes(
        rows.of_host, paths, priorities, trees, depths(channels, trees, branching)
    )


def _neighbours(channels: Channels) -> NDArray[np.intp]:
    """Return the number of neighbours of each switch."""
    pairs = np.unique(np.stack([channels.tail, channels.head]), axis=1)
    return np.bincount(pairs[0], minlength=len(channels.names))


def depths(channels: Channels, trees: Ints, branching: NDArray[np.bool_]) -> Priorities:
    """Return the virtual channel on which each tree enters each switch, as for paths."""
    depth = np.full(trees.shape, -1, dtype=np.int32)
    if not len(channels):
        return np.zeros(trees.shape, dtype=np.uint8)
    above = channels.tail[trees]
    source = np.arange(len(trees))[:, None]
    while True:
        next_depth = depth[source, above] + branching[above]
        reached = (trees >= 0) & (depth < 0) & ((above == source) | (depth[source, above] >= 0))
        if not reached.any():
            return np.maximum(depth, 0).astype(np.uint8)
        depth = np.where(reached, np.where(above == source, 0, next_depth), depth)


SBP = Engine(
    name="sbp",
    summary="structured buffer pool: shortest paths, the virtual channel counts the hops",
    route=route,
    rule="Every pair takes a shortest path. At each hop between switches the packet moves to "
    "the next virtual channel.",
    proof="A packet only waits for a higher virtual channel than the one it holds.",
    use="To compare with the literature, or fabrics of small diameter: it needs as many "
    "virtual channels as the longest path has hops.",
)
REDUCED = Engine(
    name="sbp-reduced",
    summary="structured buffer pool that counts only hops from switches with branches",
    route=route_reduced,
    rule="Every pair takes a shortest path. The packet moves to the next virtual channel "
    "only when it leaves a switch with three or more neighbours.",
    proof="A cycle contains a switch with three or more neighbours, unless the fabric is a "
    "ring, where the first switch counts as one. Beyond that switch a packet waits for "
    "a higher virtual channel.",
    use="As SBP, on fabrics with long chains of switches.",
)
