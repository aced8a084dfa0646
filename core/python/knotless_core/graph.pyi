"""The heavy graph work of routing. Arrays must be contiguous; those that misfit raise ValueError.

Channels are ordered by the switch that they leave, ``tail``, and enter ``head``. Paths are
arrays (rows, switches, longest) of channels, then -1, and of the priority of each, 0 where none.
A row is the hosts of one rank (plane) on one switch; rows are ordered by plane.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Mask = NDArray[np.bool_]
Paths = tuple[Ints, NDArray[np.uint8]]

class StateGraph:
    """States and edges, each of which takes one channel; edges are sorted by (tail, channel)."""

    def __init__(
        self,
        switch: Ints,
        start: Ints,
        tail: Ints,
        head: Ints,
        channel: Ints,
        channels: int,
        priority: NDArray[np.uint8] | None = None,
    ) -> None:
        """Sort and index edges: the states that they leave and enter, the channel they take.

        ``switch`` is that of each state, ``start`` the state where a path starts at each switch,
        ``priority`` that of the channel that leads to each state: 0 unless told.
        """

    @property
    def switch(self) -> Ints: ...
    @property
    def start(self) -> Ints: ...
    @property
    def tail(self) -> Ints: ...
    @property
    def head(self) -> Ints: ...
    @property
    def channel(self) -> Ints: ...
    def hops(self) -> Ints:
        """Return (destinations, sources): hops between switches, 2**20 where there is no way."""

    def hops_to(self, switch: int) -> Ints:
        """Return the hops from each state to a switch, 2**20 where there is no way."""

    def ways(self, counts: Mask) -> Ints:
        """Return (switches, states): how many marked edges of shortest walks leave each state."""

    def balanced_paths(
        self,
        plane: Ints,
        at: Ints,
        senders: Ints,
        receivers: Ints,
        rounds: int,
    ) -> Paths:
        """Return shortest paths that avoid loaded channels, each tree chosen ``rounds`` times.

        ValueError where there is no way. With no rounds, the first channel at every state.
        ``senders`` are the hosts of each row,
        ``receivers`` those of each switch.
        """

    def counted_paths(
        self,
        plane: Ints,
        at: Ints,
        receives: Mask,
        wanted: Ints,
    ) -> Paths:
        """Return shortest paths by good edge number ``wanted`` modulo their number at each state.

        ``wanted`` is (planes, switches, states).
        """

def breadth_first(tail: Ints, head: Ints, switches: int, roots: Ints) -> tuple[Ints, Ints]:
    """Return the channel that enters each switch in the roots' tree (-1: none), and its level."""

def breadth_first_trees(tail: Ints, head: Ints, switches: int) -> Ints:
    """Return (roots, switches): the channel that enters each switch in each root's tree."""

def preorder(tail: Ints, head: Ints, parent: Ints, root: int) -> Ints:
    """Return the place of each switch when the tree is walked, parents before children."""

def turns(tail: Ints, head: Ints, switches: int) -> tuple[Ints, Ints]:
    """Return the channels before and after each turn, sorted; none goes straight back."""

def flood(tail: Ints, head: Ints, parent: Ints, reverse: Ints) -> Ints:
    """Return (sources, switches): the channel that enters each switch when a source floods."""

def up_then_down(tail: Ints, head: Ints, switches: int, rises: Mask, falls: Mask) -> Ints:
    """Return (sources, switches): likewise, first by channels that rise, then that fall."""

def last_hops(paths: Ints, priorities: NDArray[np.uint8], at: Ints) -> Paths:
    """Return (sources, switches): the last channel of each path and its priority, -1 and 0 if none.

    ``paths`` are (rows, switches, longest), row i that of the switch ``at[i]``.
    """

def is_acyclic(nodes: int, before: Ints, after: Ints) -> bool:
    """Tell whether the edges close no cycle."""

def grow_acyclic(nodes: int, before: Ints, after: Ints, order: Ints, given: Mask) -> Mask:
    """Return a largest set of edges without a cycle: ``given`` first, then in ``order``."""

def shortest_cycle(before: NDArray[np.int64], after: NDArray[np.int64]) -> list[int]:
    """Return the shortest cycle with the smallest members, from the smallest on, or nothing."""

def layered_graph(
    tail: Ints, head: Ints, switches: int, before: Ints, after: Ints, legal: Mask
) -> StateGraph:
    """Return the walks that choose a layer with their first channel, and keep it as priority.

    ``legal`` is (layers, turns). The states are (layer, channel), then one for each start.
    """

def turn_use(
    tail: Ints, head: Ints, hops: Ints, before: Ints, after: Ints, wanted: Mask
) -> NDArray[np.float64]:
    """Return how many shortest paths of the wanted (destination, source) take each turn."""

def fitting(tail: Ints, head: Ints, hops: Ints, before: Ints, after: Ints, legal: Mask) -> Mask:
    """Return (destinations, sources): whether a shortest path takes only legal turns."""

def dimension_order_paths(
    dims: Ints,
    wrap: bool,
    tail: Ints,
    head: Ints,
    starts: Ints,
    parity: Ints | None,
    dateline: bool,
) -> Paths:
    """Return dimension-order paths from ``starts``; LookupError(from, to) if a link lacks."""
