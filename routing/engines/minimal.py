"""Shortest paths and nothing else: the counter-example, which may well deadlock."""

from __future__ import annotations

import numpy as np

from routing.engine import Engine
from routing.graphs.balance import balanced_paths
from routing.graphs.state_graph import plain_graph
from routing.graphs.task import Task
from routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return a shortest path for each pair, spread by :mod:`routing.graphs.balance`.

    One virtual channel and no promise. Broadcasts go along the breadth-first tree of their switch.
    """
    channels = task.channels
    rows, paths, priorities = balanced_paths(task, plain_graph(channels))
    trees = channels.core.breadth_first_trees()
    return ExplicitRoutes(
        rows.of_host, paths, priorities, trees, np.zeros(trees.shape, dtype=np.uint8)
    )


ENGINE = Engine(
    name="minimal",
    summary="shortest paths; makes no promise (the counter-example)",
    route=route,
)
