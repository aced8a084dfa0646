"""Shortest paths and nothing else: the counter-example, which may well deadlock."""

from __future__ import annotations

from collections import deque

import numpy as np

from routing.channels import Channels, Ints
from routing.engine import Engine, Routes, Task, rows_of
from routing.walks import choose, distances, graph_of, stack_paths, walk


def route(task: Task) -> Routes:
    """Return a shortest path for each pair; ties as :func:`routing.walks.choose` says."""
    channels = task.channels
    switches = np.arange(len(channels.names), dtype=np.int32)
    every = np.arange(len(channels), dtype=np.int32)
    graph = graph_of(channels, switches, switches, [(channels.tail, channels.head, every)])
    ranks = task.host_ranks
    choices = choose(graph, distances(graph), task.select, max(ranks) + 1)
    keys = [(rank % len(choices), at) for rank, at in zip(ranks, task.host_switches, strict=True)]
    rows, row_keys = rows_of(keys)
    paths = stack_paths([walk(graph, choices[plane], np.array([at])) for plane, at in row_keys])
    trees = breadth_first_trees(channels)
    zeros = np.zeros(paths.shape, dtype=np.uint8)
    return Routes(rows, paths, zeros, trees, np.zeros(trees.shape, dtype=np.uint8))


def breadth_first_trees(channels: Channels) -> Ints:
    """Return, for each switch, its breadth-first tree: lower ports first, first come first served.

    Entry [u, v] of the (switches, switches) array is the channel that enters v in u's tree.
    """
    leaving: list[list[tuple[int, int]]] = [[] for _ in channels.names]
    ends = zip(channels.tail.tolist(), channels.head.tolist(), strict=True)
    for c, (tail, head) in enumerate(ends):
        leaving[tail].append((c, head))
    trees = np.full((len(leaving), len(leaving)), -1, dtype=np.int32)
    for root in range(len(leaving)):
        parent = [-1] * len(leaving)
        seen = [False] * len(leaving)
        seen[root] = True
        queue = deque([root])
        while queue:
            for c, head in leaving[queue.popleft()]:
                if not seen[head]:
                    seen[head] = True
                    parent[head] = c
                    queue.append(head)
        trees[root] = parent
    return trees


ENGINE = Engine(
    name="minimal",
    summary="shortest paths; makes no promise (the counter-example)",
    route=route,
)
