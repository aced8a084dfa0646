"""Up*/down*: never up after down, on a breadth-first spanning tree.

References
----------
Schroeder et al., Autonet: a high-speed, self-configuring local area network using
point-to-point links, 1991. Koibuchi et al. measured it on RHiNET-2 with 1, 2 and 4 VCs.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routing.channels import Channels, Ints
from routing.engine import Engine, Routes, Task, rows_of
from routing.engines.minimal import breadth_first_trees
from routing.walks import choose, distances, graph_of, stack_paths, walk


def route(task: Task) -> Routes:
    """Return a shortest legal path for each pair: ups first, then downs.

    Up is towards the lower (level, switch index), where the level counts hops from the root.
    With N virtual channels a host of rank r uses r mod N for everything that it sends.
    Broadcasts go along the spanning tree, on virtual channel 0.
    """
    channels = task.channels
    parent = breadth_first_trees(channels)[task.root]
    up = is_up(channels, levels(channels, parent, task.root))
    count = len(channels.names)
    tail, head = channels.tail, channels.head
    every = np.arange(len(channels), dtype=np.int32)
    down = ~up
    edges = [
        (tail[up], head[up], every[up]),
        (tail[down], head[down] + np.int32(count), every[down]),
        (tail[down] + np.int32(count), head[down] + np.int32(count), every[down]),
    ]
    switches = np.arange(count, dtype=np.int32)
    graph = graph_of(channels, np.concatenate([switches, switches]), switches, edges)
    ranks = task.host_ranks
    choices = choose(graph, distances(graph), task.select, max(ranks) + 1)
    vcs = task.vcs or 1
    keys = [
        (rank % len(choices), rank % vcs, at)
        for rank, at in zip(ranks, task.host_switches, strict=True)
    ]
    rows, row_keys = rows_of(keys)
    paths = stack_paths([walk(graph, choices[plane], np.array([at])) for plane, _, at in row_keys])
    vc = np.array([vc for _, vc, _ in row_keys], dtype=np.uint8)
    priorities = np.broadcast_to(vc[:, None, None], paths.shape).copy()
    trees = tree_from_everywhere(channels, parent)
    return Routes(rows, paths, priorities, trees, np.zeros(trees.shape, dtype=np.uint8))


def levels(channels: Channels, parent: Ints, root: int) -> Ints:
    """Return the hops of each switch from ``root``; ``parent`` is the root's tree."""
    level: Ints = np.full(len(parent), -1, dtype=np.int32)
    level[root] = 0
    while (level < 0).any():
        above = np.where(parent >= 0, level[channels.tail[parent]], -1)
        level = np.where((level < 0) & (above >= 0), above + 1, level).astype(np.int32)
    return level


def is_up(channels: Channels, level: Ints) -> NDArray[np.bool_]:
    """Return for each channel whether it goes to the lower (level, switch index)."""
    tail, head = channels.tail, channels.head
    up: NDArray[np.bool_] = level[head] < level[tail]
    up |= (level[head] == level[tail]) & (head < tail)
    return up


def tree_from_everywhere(channels: Channels, parent: Ints) -> Ints:
    """Return how each switch floods the one tree ``parent``: up to the root, down elsewhere.

    Entry [u, v] is the channel that enters v when u floods: legal for up*/down*.
    """
    count = len(parent)
    trees = np.tile(parent, (count, 1))
    for source in range(count):
        trees[source, source] = -1
        at = source
        while parent[at] >= 0:
            above = int(channels.tail[parent[at]])
            trees[source, above] = channels.reverse[parent[at]]
            at = above
    return trees


ENGINE = Engine(
    name="updown",
    summary="up*/down* on a breadth-first tree; N virtual channels: each host keeps one",
    route=route,
    has_root=True,
)
