"""Graph algorithms of routing. Arrays must be contiguous; ValueError if shapes do not match.

Paths are two arrays (rows, switches, longest): channels, padded with -1, and their priorities,
padded with 0. A row is the set of hosts of one rank class on one switch; rows are ordered by
rank class.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Mask = NDArray[np.bool_]
Paths = tuple[Ints, NDArray[np.uint8]]

PRIORITIES: int
LAST_VLAN: int
MAX_PORT: int
MAX_BYTES: int
MAX_PACKET_BYTES: int
MAX_DELAY_US: float
"""Limits: see core/graph/src/limits.rs."""

def blocking(
    nodes: int, holds: Ints, ends: Ints, requests: Ints
) -> tuple[list[int], list[int], list[int]]:
    """Return which nodes below ``nodes`` can block each other for ever.

    Wait w holds the node ``holds[w]`` and requests the first free of the distinct nodes
    ``requests[ends[w - 1]:ends[w]]``. Returns the nodes that hold something and cannot be blocked,
    in an order in which each wait of a node has a member that comes before it or holds nothing; the
    other ones, ascending; and the waits of a small part of these that block each other, one for
    each of its nodes. See core/graph/src/blocking.rs.
    """

class Channels:
    """The channels of a fabric, ordered by ``tail``, the switch that they leave.

    ``head`` is the switch that each enters, ``reverse`` the other channel of its link. A tree is
    its root and, for each switch, the tree channel that enters it (``parent``) and its level.
    """

    def __init__(self, tail: Ints, head: Ints, reverse: Ints, switches: int) -> None:
        """Check and index them."""

    def graph(self) -> StateGraph:
        """Return the graph in which every path is legal: states are switches, edges channels."""

    def rises(self, level: Ints) -> Mask:
        """Return whether each channel goes up, which is to the lower (level, switch)."""

    def breadth_first(self, roots: Ints) -> tuple[Ints, Ints]:
        """Return parents (-1: none) and levels in the breadth-first forest of the roots."""

    def breadth_first_trees(self) -> Ints:
        """Return (roots, switches): the channel that enters each switch in each root's tree."""

    def preorder(self, root: int, parent: Ints, level: Ints) -> Ints:
        """Return the position of each switch in preorder, parents before children."""

    def flood(self, root: int, parent: Ints, level: Ints) -> Ints:
        """Return (sources, switches): the channel through which a flood enters each switch."""

    def up_then_down(self, rises: Mask, falls: Mask, sources: Mask) -> Ints:
        """Return (switches, switches): the same, with paths that first go up, then down.

        Only ``sources`` have trees.
        """

    def phase_trees(
        self, kind: Ints, following: Ints, priority: NDArray[np.uint8]
    ) -> tuple[Ints, NDArray[np.uint8]]:
        """Return trees of paths in phases, and their priorities, both (sources, switches).

        The arrays are those of :class:`knotless.routing.graphs.phases.Phases`; trees grow level by
        level, and take the lowest of the channels that enter a switch.
        """

    def all_turns(self) -> tuple[Ints, Ints]:
        """Return the channels before and after each turn, sorted; without U-turns."""

    def along_tree(self, before: Ints, after: Ints, parent: Ints) -> Mask:
        """Return which turns occur on paths up the tree and then down."""

    def legal_turns(
        self,
        before: Ints,
        after: Ints,
        root: int,
        parent: Ints,
        level: Ints,
        into: str | None,
        out_of: str | None,
    ) -> Mask:
        """Return which turns are legal in the two-dimensional turn model on a tree.

        Turns ``into`` and ``out_of`` a direction (left-up, left-down, right-up, right-down) are
        made legal last, if they close no cycle.
        """

    def turn_graph(self, before: Ints, after: Ints, legal: Mask) -> StateGraph:
        """Return the graph of paths that choose a layer at the first channel and keep it.

        ``legal`` is (layers, turns). The layer is the priority. The states are (layer, channel),
        then one start state for each switch.
        """

    def shortest_paths(
        self, root: int, parent: Ints, level: Ints, receivers: Ints
    ) -> ShortestPaths:
        """Return the shortest paths between the switches that have ``receivers`` (hosts)."""

    def dimension_order_tables(
        self, dims: Ints, wrap: bool, at: Ints, table: Ints, spread: bool, dateline: bool
    ) -> tuple[NextHops, Ints, Ints, NDArray[np.uint8]]:
        """Return the tables of dimension-order routing.

        ``at`` and ``table`` are the switch and the table of each row. Returns the next hops
        (tables, switches, destinations), the changes (.., 4) as in :class:`Tables`, the trees
        (switches, switches) formed by the paths of table 0, and the priorities of the trees. With
        ``spread``, table t breaks a tie in the positive direction if t plus the coordinate is
        even. LookupError(from, to) if a link is missing.
        """

    def pruned(self, trees: Ints, sources: Mask, wanted: Mask) -> Ints:
        """Return ``trees`` (sources, switches) without branches that reach no wanted switch."""

    def total_hops(self, senders: Ints, receivers: Ints) -> int:
        """Return the sum of shortest-path hops; the arguments are the hosts of each switch."""

class NextHops:
    """Next hops of tables; destinations that a switch treats alike in all tables are kept once.

    A column is a destination. Entries are channels; -1: there is none.
    """

    shape: tuple[int, int, int]
    """The number of tables, of switches and of columns."""

    def __init__(self, array: Ints) -> None:
        """Take the next hops from an array (tables, switches, columns)."""

    def __len__(self) -> int:
        """Return the number of tables."""

    def get(self, table: int, switch: int, column: int) -> int:
        """Return the channel to take, or -1; IndexError if there is no such entry."""

    def array(self) -> Ints:
        """Return all next hops, written out as (tables, switches, columns)."""

class Tables:
    """Next-hop tables and the rows that use them: see ``knotless.routing.routes.TableRoutes``."""

    def __init__(
        self,
        channels: Channels,
        next_hop: NextHops,
        at: Ints,
        table: Ints,
        first_priority: NDArray[np.uint8],
        changes: Ints,
        columns: Ints | None = None,
    ) -> None:
        """Keep the arrays, which must not change; they are checked when they are used."""

    def longest(self) -> int:
        """Return the number of channels of the longest path."""

    def paths(self, longest: int) -> Paths:
        """Return the paths of every row to every switch, ``longest`` as above."""

    def row_vlans(self, receives: Mask, limit: int) -> Ints:
        """Return the VLAN of each row, numbered from 0; OverflowError: more than ``limit``."""

    def pair_vlans(self, receives: Mask, limit: int) -> Ints:
        """Return (rows, switches): the VLAN of each path, -1 if there is no path."""

class ShortestPaths:
    """All shortest paths between switches with hosts: :meth:`Channels.shortest_paths`."""

    def turns(self) -> tuple[Ints, Ints]:
        """Return the channels before and after each turn of these paths or of the tree."""

    def wanted(self) -> Mask:
        """Return (destinations, sources): whether the two differ and both have hosts."""

    def fitting(self, legal: Mask) -> Mask:
        """Return (destinations, sources): whether a shortest path has only legal turns."""

    def layers(self, root: int, parent: Ints, level: Ints) -> Mask:
        """Return (layers, turns): acyclic layers, at least one of which has a path of each pair."""

    def graph(self, layers: Mask) -> StateGraph:
        """Return the graph of paths within one layer; of all paths if no turn is prohibited."""

class StateGraph:
    """States and edges. Each edge uses one channel; edges are sorted by (tail, channel)."""

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
        """Sort and index edges: the states that they leave and enter, the channel they use.

        ``switch`` is the switch of each state, ``start`` the state in which paths start at each
        switch, ``priority`` the priority of the channel that leads to each state (default 0).
        """

    def states(self) -> tuple[Ints, Ints]:
        """Return the switch of each state, and the state in which paths start at each switch."""

    def edges(self) -> tuple[Ints, Ints, Ints]:
        """Return the state that each edge leaves, the state that it enters, and its channel."""

    def hops(self) -> Ints:
        """Return (destinations, sources): hops between switches, 2**20 if unreachable."""

    def hops_to(self, switch: int) -> Ints:
        """Return the hops from each state to a switch, 2**20 if unreachable."""

    def balanced_paths(
        self,
        rank_class: Ints,
        switch: Ints,
        host_count: Ints,
        receivers: Ints,
        rounds: int,
        max_hops: int,
    ) -> Paths:
        """Return shortest paths that avoid loaded channels; each tree is chosen ``rounds`` times.

        ValueError if there is no path; OverflowError(longest) if rows * switches * longest exceeds
        ``max_hops``. With 0 rounds, the first channel is taken at every state. ``host_count`` are
        the hosts of each row, ``receivers`` those of each switch.
        """

    def balanced_tables(
        self, rank_class: Ints, switch: Ints, host_count: Ints, receivers: Ints, rounds: int
    ) -> tuple[tuple[NextHops, NDArray[np.uint8], Ints] | None, bool]:
        """Return the same paths as tables, one for each rank class, and whether there was a choice.

        The tables are next hops (tables, switches, columns), a column for each switch with hosts;
        first priorities (tables, switches); and changes (.., 4). None if tables cannot hold the
        paths. LookupError(from, to) if there is no path.
        """

    def counted_tables(
        self, level: Ints, number: NDArray[np.int64], receives: Mask, tables: int
    ) -> NextHops:
        """Return (tables, switches, columns): next hops chosen by the digits of ``number``.

        Each switch that receives has a column, in their order.

        The paths of the graph go up by ``level``, then down. One table if there is no choice.
        LookupError(from, to) if there is no path between two switches that receive.
        """

def rows(
    switch: Ints, rank: Ints, rank_classes: int, switches: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the row of each host; rank class, switch and number of hosts of each row.

    ``switch`` and ``rank`` have an entry for each host; its class is its rank modulo
    ``rank_classes``.
    """

def last_hops(paths: Ints, priorities: NDArray[np.uint8], at: Ints) -> Paths:
    """Return (sources, switches): the last channel of each path and its priority, -1 and 0 if none.

    ``paths`` are (rows, switches, longest); row i is at switch ``at[i]``.
    """

def is_acyclic(nodes: int, before: Ints, after: Ints) -> bool:
    """Return whether the edges form no cycle."""

def grow_acyclic(nodes: int, before: Ints, after: Ints, order: Ints, given: Mask) -> Mask:
    """Return a maximal acyclic set of edges: those of ``given``, then edges in ``order``."""

def shortest_cycle(before: NDArray[np.int64], after: NDArray[np.int64]) -> list[int]:
    """Return the shortest cycle, starting at its smallest node; empty if there is none.

    Among cycles of equal length, the one with the smallest nodes is returned.
    """

def components(nodes: int, before: Ints, after: Ints) -> NDArray[np.uint32]:
    """Return the number of the strongly connected component of each node.

    ValueError if an end of an edge is no node.
    """

def repair(
    channels: Channels,
    routes: Tables | Paths,
    trees: Paths,
    at: Ints,
    vlan: Ints,
    tree_vlans: bool,
    receives: Mask,
    failed: Mask,
    part: Ints,
    vcs: int,
    by_channel: bool,
) -> dict[str, Any]:
    """Move the paths and broadcast trees that use ``failed`` channels; all others stay.

    ``routes`` and ``trees`` are those of the intact fabric, ``at`` the switch of each row, ``vlan``
    (rows,) or (rows * switches,) the VLAN of each row or path, from 0; with ``tree_vlans`` its
    links close no loop. ``receives`` (switches,) marks those with hosts, ``part`` is the connected
    part of each, -1 for one that has failed. ``vcs`` virtual channels are allowed; with
    ``by_channel`` all priorities of a channel pause together. The result has these keys:

    promise : what has no cycle, as in the intact plan: dependencies under ``pause``, ``pfc``, or
        ``none``.
    extended : whether further paths have moved, which were in the way.
    row, to, before, hops : the moved paths, their channels in the intact fabric and now (0: none).
    channels, priorities : those of all moved paths, one path after the other.
    unrouted, unrouted_tree : a path (row, destination) and a branch (source, destination) of a tree
        for which there is no way, or None; if there is one, the rest is incomplete.
    tree_channels, tree_priorities : all trees.
    changes : all changes of priority of unicasts, as in :class:`Tables`.
    next_hop : the repaired tables, flat; empty for paths.
    """

def assign_vlans(channels: Channels, paths: Ints, trees: bool, by_pair: bool, limit: int) -> Ints:
    """Return (rows, switches): the VLAN of each path, numbered from 0; -1 if there is no path.

    Paths share a VLAN if their links together form no loop (``trees``), or if, at every switch,
    they use the same next hop to the same destination. In the order of the rows, each row (each
    path if ``by_pair``) gets the first VLAN that it can share. LookupError(row): the paths of that
    row form a loop. OverflowError: more than ``limit`` VLANs are needed.
    """

def first_loop(channels: Channels, wanted: Ints) -> int | None:
    """Return the index of the first channel whose link closes a loop with the earlier ones."""
