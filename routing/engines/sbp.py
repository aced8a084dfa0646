"""Structured buffer pools: the virtual channel tells how far a frame has come.

References
----------
Merlin and Schweitzer, Deadlock avoidance in store-and-forward networks, 1980; 'structured
channels' in Koibuchi et al., whose reduced form is that of RHiNET-1 (Yamamoto et al.).

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routing.engine import Engine
from routing.graphs.balance import balanced_paths
from routing.graphs.channels import Channels, Ints, Priorities
from routing.graphs.state_graph import plain_graph
from routing.graphs.task import Task
from routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return shortest paths whose virtual channel is 0, and one more after each hop.

    Minimal on every fabric; needs as many virtual channels as the diameter has hops.
    Ties as :func:`routing.graphs.balance.balanced_paths` says.
    """
    return _route(task, np.ones(len(task.channels.names), dtype=bool))


def route_reduced(task: Task) -> Routes:
    """Return the same paths with one virtual channel more only where ways can part.

    That is on leaving a switch with three or more neighbours. A cycle through no such switch
    would be a ring, and the whole fabric: there the first switch counts as if it had three.
    """
    channels = task.channels
    counts = _neighbours(channels)
    parting = counts >= 3
    if len(channels) and (counts == 2).all():
        parting[0] = True
    return _route(task, parting)


def _route(task: Task, parting: NDArray[np.bool_]) -> Routes:
    """Return shortest paths with one virtual channel more on leaving a ``parting`` switch."""
    channels = task.channels
    rows, paths, _ = balanced_paths(task, plain_graph(channels))
    steps = parting[channels.tail[paths]] if len(channels) else np.zeros(paths.shape, dtype=bool)
    steps[:, :, :1] = False
    steps &= paths >= 0
    priorities = np.cumsum(steps, axis=2, dtype=np.uint8)
    priorities[paths < 0] = 0
    trees = channels.core.breadth_first_trees()
    return ExplicitRoutes(rows.of_host, paths, priorities, trees, _depths(channels, trees, parting))


def _neighbours(channels: Channels) -> NDArray[np.intp]:
    """Return how many other switches each switch has links to."""
    pairs = np.unique(np.stack([channels.tail, channels.head]), axis=1)
    return np.bincount(pairs[0], minlength=len(channels.names))


def _depths(channels: Channels, trees: Ints, parting: NDArray[np.bool_]) -> Priorities:
    """Return the virtual channel by which each tree enters each switch, counted as for paths."""
    depth = np.full(trees.shape, -1, dtype=np.int32)
    if not len(channels):
        return np.zeros(trees.shape, dtype=np.uint8)
    above = channels.tail[trees]
    source = np.arange(len(trees))[:, None]
    while True:
        known = depth[source, above] + parting[above]
        reached = (trees >= 0) & (depth < 0) & ((above == source) | (depth[source, above] >= 0))
        if not reached.any():
            return np.maximum(depth, 0).astype(np.uint8)
        depth = np.where(reached, np.where(above == source, 0, known), depth)


SBP = Engine(
    name="sbp",
    summary="structured buffer pool: shortest paths, the virtual channel counts the hops",
    route=route,
)
REDUCED = Engine(
    name="sbp-reduced",
    summary="structured buffer pool that counts only hops where ways can part",
    route=route_reduced,
)
