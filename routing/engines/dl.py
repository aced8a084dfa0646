"""DL, descending layers: where up*/down* forbids a turn, go on one virtual channel lower.

References
----------
Koibuchi, Jouraku, Watanabe, Amano, Descending layers routing: a deadlock-free deterministic
routing using virtual channels in system area networks with irregular topologies, 2003.

"""

from __future__ import annotations

import numpy as np

from routing.assemble import channels_along, walk_all
from routing.balance import choose_walks
from routing.channels import Channels, Ints
from routing.engine import MAX_VCS, Engine, Routes, Task
from routing.engines.minimal import breadth_first_trees
from routing.engines.updown import is_up, levels, tree_from_everywhere
from routing.walks import StateGraph, distances, graph_of, plain_graph


def route(task: Task) -> Routes:
    """Return shortest paths in which each turn from down to up goes to the next layer.

    Works on any fabric with any number of virtual channels, and is minimal when there are
    enough; by default it takes the fewest, up to 8, with which all paths are minimal.
    Broadcasts go along the spanning tree, in layer 0.
    """
    channels = task.channels
    parent = breadth_first_trees(channels)[task.root]
    level = levels(channels, parent, task.root)
    if task.vcs is None:
        graph, hops = _enough_layers(task, level)
    else:
        graph = layered_graph(channels, level, task.vcs)
        hops = distances(graph)
    rows, edges = walk_all(task, graph, choose_walks(task, graph, hops))
    paths = channels_along(graph, edges)
    layer = graph.head[edges] // (2 * len(parent)) if len(channels) else edges
    trees = tree_from_everywhere(channels, parent)
    return Routes(
        rows,
        paths,
        np.where(paths >= 0, layer, 0).astype(np.uint8),
        trees,
        np.zeros(trees.shape, dtype=np.uint8),
    )


def _enough_layers(task: Task, level: Ints) -> tuple[StateGraph, Ints]:
    """Return the graph of the fewest layers (8 at most) with shortest paths only, and its hops."""
    at = np.unique(task.host_switches)
    shortest = distances(plain_graph(task.channels))[np.ix_(at, at)]
    for layers in range(1, MAX_VCS + 1):
        graph = layered_graph(task.channels, level, layers)
        hops = distances(graph)
        if np.array_equal(hops[np.ix_(at, at)], shortest):
            break
    return graph, hops


def layered_graph(channels: Channels, level: Ints, layers: int) -> StateGraph:
    """Return the states (layer, went down already or not, switch) and the steps between them."""
    count = len(channels.names)
    up = is_up(channels, level)
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
    return graph_of(channels, np.tile(switches, 2 * layers), switches, edges)


ENGINE = Engine(
    name="dl",
    summary="descending layers of up*/down*; minimal with enough virtual channels",
    route=route,
    has_root=True,
)
