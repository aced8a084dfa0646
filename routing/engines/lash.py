"""LASH: shortest paths, each whole in one layer, in which it closes no cycle.

References
----------
Skeie, Lysne, Theiss, Layered shortest path (LASH) routing in irregular system area networks,
2002.

"""

from __future__ import annotations

import numpy as np

from routing.engine import Engine
from routing.graphs.layers import layered_paths, shortest_paths
from routing.graphs.task import Task
from routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return shortest paths that each keep one virtual channel, their layer.

    Minimal on every fabric; needs as many virtual channels as there are layers. Layers are made one
    after the other (:meth:`routing.graphs.layers.ShortestPaths.layers`), each for the pairs that
    fit into none before; then every pair may take any layer that one of its shortest paths fits
    into, and ``spread`` balances the loads (:func:`routing.graphs.balance.balanced_paths`).
    Broadcasts go along the breadth-first tree from the root, in layer 0.
    """
    paths = shortest_paths(task)
    rows, taken, layer = layered_paths(task, paths, paths.layers())
    trees = paths.tree.from_everywhere()
    return ExplicitRoutes(rows.of_host, taken, layer, trees, np.zeros(trees.shape, dtype=np.uint8))


ENGINE = Engine(
    name="lash",
    summary="layered shortest paths: as many virtual channels as it takes",
    route=route,
    has_root=True,
)
