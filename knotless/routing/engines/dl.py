"""DL, descending layers: a turn that up*/down* prohibits moves to the next lower layer.

References
----------
Koibuchi, Jouraku, Watanabe, Amano, Descending layers routing: a deadlock-free deterministic
routing using virtual channels in system area networks with irregular topologies, 2003.

"""

from __future__ import annotations

import numpy as np

from knotless._core.graph import StateGraph
from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import balanced_paths
from knotless.routing.graphs.spanning_tree import SpanningTree, spanning_tree
from knotless.routing.graphs.state_graph import graph_of, plain_graph
from knotless.routing.graphs.task import MAX_VCS, Task
from knotless.routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return shortest paths in which each turn from down to up goes to the next layer.

    Routes any fabric with any number of virtual channels, and is minimal if there are enough. By
    default it uses the fewest, up to 8, with which all paths are minimal. Broadcasts use the
    spanning tree, in layer 0.
    """
    tree = spanning_tree(task.channels, task.tree_root)
    graph = _enough_layers(task, tree) if task.vcs is None else layered_graph(tree, task.vcs)
    rows, paths, layers = balanced_paths(task, graph)
    trees = tree.from_everywhere()
    return ExplicitRoutes(rows.of_host, paths, layers, trees, np.zeros(trees.shape, dtype=np.uint8))


def _enough_layers(task: Task, tree: SpanningTree) -> StateGraph:
    """Return the graph of the fewest layers, at most 8, in which all paths are shortest."""
    with_hosts = np.flatnonzero(task.receivers)
    between = np.ix_(with_hosts, with_hosts)
    shortest = plain_graph(task.channels).hops()[between]
    for layers in range(1, MAX_VCS + 1):
        graph = layered_graph(tree, layers)
        if np.array_equal(graph.hops()[between], shortest):
            break
    return graph


def layered_graph(tree: SpanningTree, layers: int) -> StateGraph:
    """Return the graph of the states (layer, whether already going down, switch)."""
    channels = tree.channels
    count = len(channels.names)
    up = tree.rises()
    every = np.arange(len(channels), dtype=np.int32)
    tail, head = channels.tail, channels.head
    edges = []
    for layer in range(layers):
        rising, falling = np.int32(2 * layer * count), np.int32((2 * layer + 1) * count)
        edges += [
            (tail[up] + rising, head[up] + rising, every[up]),
            (tail[~up] + rising, head[~up] + falling, every[~up]),
            (tail[~up] + falling, head[~up] + falling, every[~up]),
        ]
        if layer + 1 < layers:
            next_rising = np.int32(2 * (layer + 1) * count)
            edges.append((tail[up] + falling, head[up] + next_rising, every[up]))
    switches = np.arange(count, dtype=np.int32)
    states = np.tile(switches, 2 * layers)
    layer_of = np.repeat(np.arange(layers, dtype=np.uint8), 2 * count)
    return graph_of(channels, states, switches, edges, layer_of)


ENGINE = Engine(
    name="dl",
    summary="descending layers of up*/down*; minimal with enough virtual channels",
    route=route,
    has_root=True,
    has_layers=True,
    rule="A spanning tree gives each channel a direction, up or down. A path may turn from "
    "down to up only if it moves to the next virtual channel. Among such paths a "
    "shortest one is taken.",
    proof="Within a virtual channel a path goes up, then down, which closes no cycle. It only "
    "ever moves to a higher virtual channel, and never back.",
    use="Any fabric with a fixed, small number of lossless priorities: it works with any "
    "number of them, and paths get shorter with each.",
)
