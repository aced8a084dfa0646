"""LASH: shortest paths, each whole in one layer, in which it closes no cycle.

References
----------
Skeie, Lysne, Theiss, Layered shortest path (LASH) routing in irregular system area networks,
2002.

"""

from __future__ import annotations

import numpy as np

from routing.assemble import channels_along, walk_all
from routing.balance import choose_walks
from routing.engine import Engine, Routes, Task
from routing.engines.updown import tree_from_everywhere
from routing.layers import layered_turn_graph, make_layers, shortest_paths


def route(task: Task) -> Routes:
    """Return shortest paths that each keep one virtual channel, their layer.

    Minimal on every fabric; needs as many virtual channels as there are layers. Layers
    are made one after the other (:func:`routing.layers.make_layers`), each for the
    pairs that fit into none before; then every pair may take any layer that one of its shortest
    paths fits into, and ``spread`` balances the loads (:func:`routing.balance.choose_walks`).
    Broadcasts go along the breadth-first tree from the root, in layer 0.
    """
    channels = task.channels
    paths = shortest_paths(task)
    layers = make_layers(paths)
    graph = layered_turn_graph(paths, layers)
    rows, edges = walk_all(task, graph, choose_walks(task, graph))
    taken = channels_along(graph, edges)
    layer = graph.head[edges] // max(1, len(channels)) if len(channels) else edges
    trees = tree_from_everywhere(channels, paths.parent)
    return Routes(
        rows,
        taken,
        np.where(taken >= 0, layer, 0).astype(np.uint8),
        trees,
        np.zeros(trees.shape, dtype=np.uint8),
    )


ENGINE = Engine(
    name="lash",
    summary="layered shortest paths: as many virtual channels as it takes",
    route=route,
    has_root=True,
)
