"""Paths that pass no switch twice.

Where turns are prohibited, the shortest legal walk may come back to a switch and leave it
another way. Switches forward by VLAN and destination, so such a walk cannot be written as
rules: the shortest legal path that passes every switch once is taken instead.
"""

from __future__ import annotations

import numpy as np

from routing.channels import Ints
from routing.walks import StateGraph

SEARCH_STEPS = 20_000
"""How long to look for a shortest path without a revisit, before taking the tree's."""


def without_revisits(
    graph: StateGraph, hops: Ints, sources: Ints, paths: Ints, trees: Ints
) -> Ints:
    """Replace the paths that pass a switch twice.

    Parameters
    ----------
    graph, hops
        What is legal, and its :func:`routing.walks.distances`.
    sources : (rows,)
        The switch of each row.
    paths : (rows, switches, longest)
        The channels taken, then -1.
    trees : (switches, switches)
        Legal paths for when the search takes too long: entry [u, v] is the channel that
        enters v on the way from u.

    """
    tail = graph.channels.tail
    where = np.where(paths >= 0, tail[paths], -1 - np.arange(paths.shape[2]))
    where.sort(axis=2)
    twice = (where[:, :, 1:] == where[:, :, :-1]).any(axis=2)
    arrives = np.zeros_like(twice)
    passing = (paths >= 0) & (tail[paths] == np.arange(paths.shape[1])[None, :, None])
    arrives |= passing.any(axis=2)
    found: dict[tuple[int, int], list[int]] = {}
    replaced = []
    for row, destination in np.argwhere(twice | arrives).tolist():
        key = (int(sources[row]), destination)
        if key not in found:
            found[key] = _search(graph, hops[destination], *key) or _along(tail, trees, *key)
        replaced.append((row, destination, found[key]))
    longest = max([paths.shape[2], *(len(path) for _, _, path in replaced)])
    result = np.pad(paths, ((0, 0), (0, 0), (0, longest - paths.shape[2])), constant_values=-1)
    for row, destination, path in replaced:
        result[row, destination] = path + [-1] * (longest - len(path))
    return result


def _search(graph: StateGraph, hops: Ints, source: int, destination: int) -> list[int]:
    """Return a shortest legal path without revisits, by iterative deepening, or none in time."""
    first = np.searchsorted(graph.tail, np.arange(len(graph.switch) + 1)).tolist()
    start = int(graph.start[source])
    steps = 0
    for limit in range(int(hops[start]), len(graph.start)):
        path: list[int] = []
        states = [start]
        visited = {source}
        work = [iter(range(first[start], first[start + 1]))]
        while work:
            edge = next(work[-1], None)
            if edge is None:
                work.pop()
                visited.discard(int(graph.switch[states.pop()]))
                if path:
                    path.pop()
                continue
            steps += 1
            if steps > SEARCH_STEPS:
                return []
            state = int(graph.head[edge])
            switch = int(graph.switch[state])
            if switch in visited or len(path) + 1 + int(hops[state]) > limit:
                continue
            path.append(int(graph.channel[edge]))
            if switch == destination:
                return path
            states.append(state)
            visited.add(switch)
            work.append(iter(range(first[state], first[state + 1])))
    return []


def _along(tail: Ints, trees: Ints, source: int, destination: int) -> list[int]:
    """Return the path to ``destination`` in the tree of ``source``."""
    path: list[int] = []
    at = destination
    while at != source:
        path.append(int(trees[source, at]))
        at = int(tail[path[-1]])
    return path[::-1]
