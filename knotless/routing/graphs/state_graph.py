"""State graphs, with which most engines define the legal paths.

A state is a switch and what the engine must remember of the path so far: nothing for shortest
paths, 'already went down' for up*/down*. The engine defines the edges; each edge takes one
channel. A legal path is a walk from the start state of its source switch to any state of its
destination switch. The Rust core finds the paths.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless._core.graph import StateGraph
from knotless.routing.graphs.channels import Channels, Ints, Priorities

Mask = NDArray[np.bool_]

FAR = 1 << 20
"""More hops than any path has; the distance to an unreachable state."""


def graph_of(
    channels: Channels,
    switch: Ints,
    start: Ints,
    edges: list[tuple[Ints, Ints, Ints]],
    priority: Priorities | None = None,
) -> StateGraph:
    """Return the graph whose edges are the concatenated (tail, head, channel) arrays ``edges``.

    ``switch`` is the switch of each state, ``start`` the start state of each switch, and
    ``priority`` the priority of the channel that leads to each state (default 0).
    """
    tail, head, channel = (np.concatenate(part) for part in zip(*edges, strict=True))
    return StateGraph(switch, start, tail, head, channel, len(channels), priority)


def plain_graph(channels: Channels) -> StateGraph:
    """Return the graph in which all paths are legal: states are switches, edges are channels."""
    return channels.core.graph()


def up_down_graph(channels: Channels, rises: Mask, falls: Mask | None = None) -> StateGraph:
    """Return the graph of paths that go up, then down; by default every channel not up is down.

    The states are the switches while going up, then the switches again while going down.
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
