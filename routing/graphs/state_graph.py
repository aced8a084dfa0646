"""Graphs of states, which is how most engines say what paths are legal.

A state is a switch together with what the engine must remember of the path so far: nothing
for shortest paths, 'already went down' for up*/down*. The engine draws the edges, each of which
takes one channel; a legal path is a walk from the start state of its source switch to any
state of its destination switch. The Rust core finds the walks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless_core.graph import StateGraph
from routing.graphs.channels import Channels, Ints, Priorities

Mask = NDArray[np.bool_]

FAR = 1 << 20
"""More hops than any path has."""


def graph_of(
    channels: Channels,
    switch: Ints,
    start: Ints,
    edges: list[tuple[Ints, Ints, Ints]],
    priority: Priorities | None = None,
) -> StateGraph:
    """Return the graph whose edges are the (tail, head, channel) arrays of ``edges``, joined.

    ``switch`` is that of each state, ``start`` the state where a path starts at each switch,
    ``priority`` that of the channel that leads to each state: 0 unless told.
    """
    tail, head, channel = (np.concatenate(part) for part in zip(*edges, strict=True))
    return StateGraph(switch, start, tail, head, channel, len(channels), priority)


def plain_graph(channels: Channels) -> StateGraph:
    """Return the graph in which every path is legal: a state is a switch, an edge a channel."""
    return channels.core.graph()


def up_down_graph(channels: Channels, rises: Mask, falls: Mask | None = None) -> StateGraph:
    """Return the graph of paths that first rise, then fall; unless told what does not rise falls.

    The states are the switches, still rising, then the switches again, falling already.
    """
    count = np.int32(len(channels.names))
    tail, head = channels.tail, channels.head
    every = np.arange(len(channels), dtype=np.int32)
    falls = ~rises if falls is None else falls
    edges = [
        (tail[rises], head[rises], every[rises]),
        (tail[falls], head[falls] + count, every[falls]),
        (tail[falls] + count, head[falls] + count, every[falls]),
    ]
    switches = np.arange(count, dtype=np.int32)
    return graph_of(channels, np.tile(switches, 2), switches, edges)
