"""LASH: shortest paths, each in one layer in which it closes no cycle.

References
----------
Skeie, Lysne, Theiss, Layered shortest path (LASH) routing in irregular system area networks,
2002.

"""

from __future__ import annotations

import numpy as np

from knotless.routing.engine import Engine
from knotless.routing.graphs.layers import layered_paths, shortest_paths
from knotless.routing.graphs.task import Task
from knotless.routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return shortest paths, each on a single virtual channel, its layer.

    Paths are minimal on every fabric; each layer needs a virtual channel. Layers are computed one
    at a time (:meth:`knotless.routing.graphs.layers.ShortestPaths.layers`), each for the pairs that
    fit into no earlier one. Each pair may then use any layer into which one of its shortest paths
    fits, and ``spread`` balances the load (:func:`knotless.routing.graphs.balance.balanced_paths`).
    Broadcasts use the breadth-first tree from the root, in layer 0.
    """
    paths = shortest_paths(task)
    rows, channels, layer = layered_paths(task, paths, paths.layers())
    trees = paths.tree.from_everywhere()
    return ExplicitRoutes(
        rows.of_host, channels, layer, trees, np.zeros(trees.shape, dtype=np.uint8)
    )


ENGINE = Engine(
    name="lash",
    summary="layered shortest paths, in as many layers as needed",
    route=route,
    has_root=True,
    rule="Every pair takes a shortest path in a single layer, which is a virtual channel: "
    "one in which the path closes no cycle. Pairs are then distributed over layers to "
    "balance the load.",
    proof="The turns of the paths in each layer form no cycle, and no path changes its layer.",
    use="Irregular fabrics whose switches have PFC with several lossless priorities; needs "
    "few layers.",
)
