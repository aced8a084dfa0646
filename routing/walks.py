"""Shortest walks in a graph of states, which is how most engines say what paths are legal.

A state is a switch together with what the engine must remember of the path so far: nothing
for shortest paths, 'already went down' for up*/down*. The engine draws the edges, each of which
takes one channel; a legal path is a walk from the start state of its source switch to any
state of its destination switch. All destinations are handled at once by NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np
from numpy.typing import NDArray

from routing.channels import Channels, Ints

_FAR = np.int32(1 << 20)
"""More hops than any path has."""


@dataclass(frozen=True)
class StateGraph:
    """States and edges. Edges are sorted by (tail, channel).

    switch : (states,) the switch index of each state.
    start : (switches,) the state in which a path starts at each switch.
    tail, head, channel : (edges,) the states that an edge joins, the channel that it takes.
    """

    channels: Channels
    switch: Ints
    start: Ints
    tail: Ints
    head: Ints
    channel: Ints


def graph_of(
    channels: Channels, switch: Ints, start: Ints, edges: list[tuple[Ints, Ints, Ints]]
) -> StateGraph:
    """Return the graph whose edges are the (tail, head, channel) arrays of ``edges``, joined."""
    tail, head, channel = (np.concatenate(part) for part in zip(*edges, strict=True))
    order = np.lexsort((channel, tail))
    return StateGraph(channels, switch, start, tail[order], head[order], channel[order])


def plain_graph(channels: Channels) -> StateGraph:
    """Return the graph in which every path is legal: a state is a switch, an edge a channel."""
    switches = np.arange(len(channels.names), dtype=np.int32)
    every = np.arange(len(channels), dtype=np.int32)
    return graph_of(channels, switches, switches, [(channels.tail, channels.head, every)])


def distances(graph: StateGraph) -> Ints:
    """Return (switches, states): hops from each state to the destination switch; far if none."""
    switches = len(graph.start)
    hops = np.where(graph.switch[None, :] == np.arange(switches)[:, None], 0, _FAR).astype(np.int32)
    if len(graph.tail) == 0:
        return hops
    tails, first = np.unique(graph.tail, return_index=True)
    while True:
        best = np.minimum.reduceat(hops[:, graph.head], first, axis=1) + 1
        better = np.minimum(hops[:, tails], best)
        if np.array_equal(better, hops[:, tails]):
            return hops
        hops[:, tails] = better


def choose(graph: StateGraph, hops: Ints, select: str, ranks: int) -> list[Ints]:
    """Choose the edge that leads on a shortest walk, for each destination and state.

    With ``low-port`` it is the one of the lowest port. With ``spread`` the k candidates, by
    port, are counted from a number mixed from switch and destination, and the host of rank r
    takes the r-th from there: hosts on one switch take different paths among the equals, and
    the hosts of rank r on all switches agree at every switch, so that they can share a VLAN.

    Returns
    -------
    list of (switches, states)
        Edge numbers (-1 at the destination, or where there is no way), one array for each
        rank modulo the list's length.

    """
    none = np.full(hops.shape, -1, dtype=np.int32)
    if len(graph.tail) == 0:
        return [none]
    good = good_edges(graph, hops)
    tails, counts = candidates(graph, good)
    if select != "spread":
        return [pick(graph, good, np.zeros_like(counts))]
    planes = max(1, min(ranks, lcm(*np.unique(counts[counts > 0]).tolist())))
    mixed = _mix(graph.switch[tails], hops.shape[0])
    return [pick(graph, good, mixed + plane) for plane in range(planes)]


def good_edges(graph: StateGraph, hops: Ints) -> NDArray[np.bool_]:
    """Return (switches, edges): whether the edge lies on a shortest walk to the switch."""
    good: NDArray[np.bool_] = hops[:, graph.head] + 1 == hops[:, graph.tail]
    good &= hops[:, graph.tail] < _FAR
    return good


def candidates(graph: StateGraph, good: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the states with edges, and (switches, those states): how many of these are good."""
    tails, first = np.unique(graph.tail, return_index=True)
    return tails, np.add.reduceat(good, first, axis=1, dtype=np.int32)


def pick(graph: StateGraph, good: NDArray[np.bool_], wanted: Ints) -> Ints:
    """Return (switches, states): the good edge number ``wanted`` modulo their count, or -1.

    Good edges are counted by port; ``wanted`` is as the counts of :func:`candidates`.
    """
    tails, first = np.unique(graph.tail, return_index=True)
    counts = np.add.reduceat(good, first, axis=1, dtype=np.int32)
    segment = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(graph.tail))))
    upto = np.cumsum(good, axis=1, dtype=np.int32)
    before = (upto - good)[:, first]
    place = upto - 1 - before[:, segment]
    take = good & (place == (wanted % np.maximum(counts, 1))[:, segment])
    edges: Ints = np.full((good.shape[0], len(graph.switch)), -1, dtype=np.int32)
    destination, edge = np.nonzero(take)
    edges[destination, graph.tail[edge]] = edge
    return edges


def walk(graph: StateGraph, choice: Ints, starts: Ints) -> Ints:
    """Follow ``choice`` from each switch of ``starts`` to every switch.

    Returns
    -------
    (starts, switches, longest)
        The channels taken, then -1.

    """
    edges = walk_edges(graph, choice, starts)
    if len(graph.channel) == 0:
        return edges
    return np.where(edges >= 0, graph.channel[edges], -1).astype(np.int32)


def walk_edges(graph: StateGraph, choice: Ints, starts: Ints) -> Ints:
    """Return what :func:`walk` does, as numbers of edges instead of channels."""
    rows = len(starts)
    destinations = np.arange(choice.shape[0])[None, :]
    state = np.broadcast_to(graph.start[starts][:, None], (rows, choice.shape[0]))
    steps: list[NDArray[np.int32]] = []
    while True:
        edge = choice[destinations, state]
        going = edge >= 0
        if not going.any():
            break
        steps.append(edge.astype(np.int32))
        state = np.where(going, graph.head[edge], state)
    if not steps:
        return np.full((rows, choice.shape[0], 0), -1, dtype=np.int32)
    return np.stack(steps, axis=2)


def _mix(switch: Ints, destinations: int) -> Ints:
    """Return (destinations, switches): small numbers that look random but are fixed."""
    mixed = switch.astype(np.uint64)[None, :] * np.uint64(0x9E3779B1)
    mixed = mixed ^ np.arange(destinations, dtype=np.uint64)[:, None] * np.uint64(0x85EBCA77)
    mixed = (mixed & np.uint64(0xFFFFFFFF)) * np.uint64(0xC2B2AE35)
    return (mixed >> np.uint64(17) & np.uint64(0x7FFF)).astype(np.int32)


def stack_paths(paths: list[Ints]) -> Ints:
    """Join arrays of paths (rows, switches, longest) whose longest differ, padding with -1."""
    longest = max(path.shape[2] for path in paths)
    padded = [
        np.pad(path, ((0, 0), (0, 0), (0, longest - path.shape[2])), constant_values=-1)
        for path in paths
    ]
    return np.concatenate(padded)
