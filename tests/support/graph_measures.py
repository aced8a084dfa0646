"""Measures of a fabric's graph that only tests need, by plain breadth-first search."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

Graph = list[list[int]]
"""The neighbours of each switch, by index, ascending."""
State = tuple[int, int]
"""A switch, and what a path must remember there."""


def graph_of(count: int, edges: Iterable[tuple[int, int]]) -> Graph:
    """Return the neighbours of each of ``count`` switches."""
    graph: Graph = [[] for _ in range(count)]
    for a, b in edges:
        graph[a].append(b)
        graph[b].append(a)
    return [sorted(near) for near in graph]


def search(start: Hashable, onward: Callable[[State], Iterable[State]]) -> dict[State, int]:
    """Return the hops to every state that can be reached from ``start``."""
    hops: dict[State, int] = {start: 0}  # type: ignore[dict-item] # a state is hashable
    frontier = list(hops)
    for state in frontier:
        for following in onward(state):
            if following not in hops:
                hops[following] = hops[state] + 1
                frontier.append(following)
    return hops


def hops_between(graph: Graph) -> list[list[int]]:
    """Return the hops of a shortest path between each pair of switches."""
    return _nearest(graph, lambda state: ((peer, 0) for peer in graph[state[0]]))


def minimal_paths(graph: Graph, hops: list[list[int]]) -> float:
    """Return the mean number of shortest paths over the ordered pairs of different switches."""
    total = 0
    for source in range(len(graph)):
        ways = [0] * len(graph)
        ways[source] = 1
        for v in sorted(range(len(graph)), key=hops[source].__getitem__):
            if v != source:
                ways[v] = sum(ways[u] for u in graph[v] if hops[source][u] < hops[source][v])
        total += sum(ways) - 1
    return total / (len(graph) * (len(graph) - 1))


def updown_hops(graph: Graph, drops: int) -> list[list[int]]:
    """Return the hops of up*/down* from switch 0 with at most ``drops`` turns from down to up.

    With no such turn it is up*/down*; N - 1 of them is what descending layers can do with
    N virtual channels.
    """
    level = search((0, 0), lambda state: ((peer, 0) for peer in graph[state[0]]))
    rank = [(level[i, 0], i) for i in range(len(graph))]

    def onward(state: State) -> Iterable[State]:
        switch, phase = state  # phase 2 k: k drops so far, going up; 2 k + 1: going down
        for peer in graph[switch]:
            wants_down = rank[peer] > rank[switch]
            after = phase | 1 if wants_down else phase + phase % 2
            if after <= 2 * drops + 1:
                yield peer, after

    return _nearest(graph, onward)


def prefix_hops(graph: Graph) -> list[list[int]]:
    """Return the hops of tree paths from switch 0 with at most one cross link, where they turn."""
    parent = {0: -1}
    for u in (order := [0]):
        for v in graph[u]:
            if v not in parent:
                parent[v] = u
                order.append(v)

    def onward(state: State) -> Iterable[State]:
        switch, down = state
        for peer in graph[switch]:
            if parent[peer] == switch or (not down and parent[switch] != peer):
                yield peer, 1
            elif not down:
                yield peer, 0

    return _nearest(graph, onward)


def _nearest(graph: Graph, onward: Callable[[State], Iterable[State]]) -> list[list[int]]:
    rows = []
    for source in range(len(graph)):
        hops = search((source, 0), onward)
        unreachable = len(graph) * 8
        row = [unreachable] * len(graph)
        for (switch, _), count in hops.items():
            row[switch] = min(row[switch], count)
        rows.append(row)
    return rows
