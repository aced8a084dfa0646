"""Shortest paths that may deadlock: the counter-example."""

from __future__ import annotations

import numpy as np

from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import balanced_paths
from knotless.routing.graphs.next_hop_sets import shortest_next_hops
from knotless.routing.graphs.state_graph import plain_graph
from knotless.routing.graphs.task import Task
from knotless.routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return a shortest path for each pair, spread by :mod:`knotless.routing.graphs.balance`.

    One virtual channel; can deadlock. Broadcasts use the breadth-first tree of their switch.
    """
    channels = task.channels
    rows, paths, priorities = balanced_paths(task, plain_graph(channels))
    trees = channels.core.breadth_first_trees()
    return ExplicitRoutes(
        rows.of_host, paths, priorities, trees, np.zeros(trees.shape, dtype=np.uint8)
    )


ENGINE = Engine(
    name="minimal",
    summary="shortest paths; can deadlock (the counter-example)",
    route=route,
    rule="Every pair takes a shortest path, spread over equal ones.",
    proof="Nothing prevents a cycle. The check of the rules says whether there is one.",
    use="As the counter-example, and to see what freedom from deadlock costs.",
    next_hops=shortest_next_hops,
)
