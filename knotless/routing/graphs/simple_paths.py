"""Paths that visit no switch twice.

If turns are prohibited, the shortest legal walk may visit a switch twice and leave it on different
channels. Rules that match VLAN and destination cannot express this, so the shortest legal path
that visits every switch at most once is used instead.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from knotless._core.graph import StateGraph
from knotless.routing.graphs.channels import Channels, Ints

SEARCH_STEPS = 20_000
"""Limit of the search for a path without revisits; beyond it the path of the tree is used."""


def without_revisits(
    channels: Channels, graph: StateGraph, sources: Ints, paths: Ints, trees: Ints
) -> Ints:
    """Replace the paths that visit a switch twice.

    Parameters
    ----------
    channels, graph
        The channels of the fabric, and the graph of legal walks.
    sources : (rows,)
        The switch of each row.
    paths : (rows, switches, longest)
        The channels taken, then -1.
    trees : (switches, switches)
        Legal paths that are used if the search exceeds its limit: entry [u, v] is the channel
        that enters v on the way from u.

    """
    if paths.shape[2] < 3:
        return paths  # too short for a revisit
    tail = channels.tail
    visited = np.where(paths >= 0, tail[paths], -1 - np.arange(paths.shape[2]))
    visited.sort(axis=2)
    twice = (visited[:, :, 1:] == visited[:, :, :-1]).any(axis=2)
    arrives = np.zeros_like(twice)
    passing = (paths >= 0) & (tail[paths] == np.arange(paths.shape[1])[None, :, None])
    arrives |= passing.any(axis=2)
    search = _Search(graph)
    path_of: dict[tuple[int, int], list[int]] = {}
    replaced = []
    for row, destination in np.argwhere(twice | arrives).tolist():
        key = (int(sources[row]), destination)
        if key not in path_of:
            path_of[key] = search.path(*key) or _along(tail, trees, *key)
        replaced.append((row, destination, path_of[key]))
    longest = max([paths.shape[2], *(len(path) for _, _, path in replaced)])
    result = np.pad(paths, ((0, 0), (0, 0), (0, longest - paths.shape[2])), constant_values=-1)
    for row, destination, path in replaced:
        result[row, destination] = path + [-1] * (longest - len(path))
    return result


class _Search:
    """An iterative-deepening search for paths without revisits."""

    def __init__(self, graph: StateGraph) -> None:
        self._graph = graph
        self._switch, self._start = (column.tolist() for column in graph.states())
        tail, head, channel = graph.edges()
        self._head, self._channel = head.tolist(), channel.tolist()
        self._first = np.searchsorted(tail, np.arange(len(self._switch) + 1)).tolist()
        self._hops: dict[int, list[int]] = {}

    def path(self, source: int, destination: int) -> list[int]:
        """Return the channels of a shortest legal path without revisits; empty at the limit."""
        if destination not in self._hops:
            self._hops[destination] = self._graph.hops_to(destination).tolist()
        hops = self._hops[destination]
        steps = 0
        for limit in range(hops[self._start[source]], len(self._start)):
            path: list[int] = []
            states = [self._start[source]]
            visited = {source}
            work = [self._leaving(states[0])]
            while work:
                edge = next(work[-1], None)
                if edge is None:
                    work.pop()
                    visited.discard(self._switch[states.pop()])
                    if path:
                        path.pop()
                    continue
                steps += 1
                if steps > SEARCH_STEPS:
                    return []
                state = self._head[edge]
                switch = self._switch[state]
                if switch in visited or len(path) + 1 + hops[state] > limit:
                    continue
                path.append(self._channel[edge])
                if switch == destination:
                    return path
                states.append(state)
                visited.add(switch)
                work.append(self._leaving(state))
        return []

    def _leaving(self, state: int) -> Iterator[int]:
        return iter(range(self._first[state], self._first[state + 1]))


def _along(tail: Ints, trees: Ints, source: int, destination: int) -> list[int]:
    """Return the path to ``destination`` in the tree of ``source``."""
    path: list[int] = []
    switch = destination
    while switch != source:
        path.append(int(trees[source, switch]))
        switch = int(tail[path[-1]])
    return path[::-1]
