"""Prefix routing: the channel whose label is the longest prefix of the destination's label.

References
----------
Wu and Sheng, Deadlock-free routing in irregular networks using prefix routing, 1999.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless._core.graph import NextHops
from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import rows_in
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.spanning_tree import SpanningTree, spanning_tree
from knotless.routing.graphs.task import Task
from knotless.routing.routes import Routes, TableRoutes, no_changes


def route(task: Task) -> Routes:
    """Return the prefix path of each pair; routes any fabric on one channel, rarely minimal.

    In the breadth-first tree from the root, a switch's label is its parent's label with one more
    number. A channel to a child or to another branch has the label of the switch that it enters;
    a channel to the parent has the empty label. So a path goes up the tree, takes at most one
    cross channel, and goes down, which cannot close a cycle. Only parallel links tie: ``spread``
    distributes the hosts of a switch over them, ``low-port`` takes the first.
    """
    tree = spanning_tree(task.channels, task.tree_root)
    next_hop = _choices(task, tree)
    rows = rows_in(task, len(next_hop))
    trees = tree.from_everywhere()
    none = np.zeros(trees.shape, dtype=np.uint8)
    first = np.zeros((len(next_hop), len(trees)), dtype=np.uint8)
    return TableRoutes(
        rows.of_host,
        task.channels,
        rows.switch,
        rows.rank_class,
        next_hop,
        first,
        no_changes(),
        trees,
        none,
    )


def _choices(task: Task, tree: SpanningTree) -> NextHops:
    """Return the next channel, shape (host ranks, switches, destinations); -1 on arrival."""
    channels = task.channels
    none: Ints = np.full((len(tree.parent), len(tree.parent)), -1, dtype=np.int32)
    if len(channels) == 0:
        return NextHops(none[None])
    is_longest = _longest_labels(tree)
    first = np.searchsorted(channels.tail, np.arange(len(tree.parent)))
    counts = np.add.reduceat(is_longest, first, axis=1, dtype=np.int32)
    upto = np.cumsum(is_longest, axis=1, dtype=np.int32)
    place = upto - 1 - (upto - is_longest)[:, first][:, channels.tail]
    choices = []
    for rank in range(min(int(counts.max()), task.ranks) if task.select == "spread" else 1):
        selected = (rank % np.maximum(counts, 1))[:, channels.tail]
        destination, channel = np.nonzero(is_longest & (place == selected))
        choice = none.copy()
        choice[channels.tail[channel], destination] = channel
        choices.append(choice)
    return NextHops(np.stack(choices))


def _longest_labels(tree: SpanningTree) -> NDArray[np.bool_]:
    """Return (switches, channels): whether the channel has the longest label at its switch."""
    channels, parent, level = tree.channels, tree.parent, tree.level
    count = len(parent)
    above = np.where(parent >= 0, channels.tail[parent], np.arange(count))
    is_prefix = np.eye(count, dtype=bool)
    for switch in np.argsort(level, kind="stable").tolist():
        is_prefix[:, switch] |= is_prefix[:, above[switch]]
    length = np.where(is_prefix.T[:, channels.head], level[channels.head] + 1, -1)
    length[:, channels.head == above[channels.tail]] = 0
    first = np.unique(channels.tail, return_index=True)[1]
    longest = np.maximum.reduceat(length, first, axis=1)
    per_switch = np.diff(first, append=len(channels))
    is_longest: NDArray[np.bool_] = length == np.repeat(longest, per_switch, axis=1)
    is_longest &= channels.tail[None, :] != np.arange(count)[:, None]
    return is_longest


ENGINE = Engine(
    name="prefix",
    summary="longest prefix of tree labels: up, at most once across, down",
    route=route,
    has_root=True,
    has_layers=True,
    rule="Switches get labels along a spanning tree. A packet takes the channel whose label "
    "is the longest prefix of the destination's label: up the tree, at most once "
    "across, then down.",
    proof="Dependencies lead from channels up to channels across or down, and from those to "
    "channels further down the tree only.",
    use="To compare with the literature: the rule needs no routing tables.",
)
