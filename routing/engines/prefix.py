"""Prefix routing: the channel whose label is the longest prefix of the destination's label.

References
----------
Wu and Sheng, Deadlock-free routing in irregular networks using prefix routing, 1999.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routing.assemble import channels_along, walk_all
from routing.channels import Channels, Ints
from routing.engine import Engine, Routes, Task
from routing.engines.minimal import breadth_first_trees
from routing.engines.updown import levels, tree_from_everywhere
from routing.walks import candidates, pick, plain_graph


def route(task: Task) -> Routes:
    """Return the prefix path for each pair; needs nothing, is seldom minimal, one channel.

    In the breadth-first tree from the root a switch's label is its parent's and one number more.
    A channel to another branch or to a child has the label of the switch that it enters, a
    channel to the parent the empty one. So a path goes up the tree, takes at most one channel
    across, and goes down: no cycle. Only parallel links tie: ``spread`` gives them
    to the hosts of a switch by turns, ``low-port`` takes the first.
    """
    channels = task.channels
    parent = breadth_first_trees(channels)[task.root]
    graph = plain_graph(channels)
    choices: list[Ints] = [np.full((len(parent), len(parent)), -1, dtype=np.int32)]
    if len(channels):
        good = _longest_labels(channels, parent, levels(channels, parent, task.root))
        counts = candidates(graph, good)[1]
        most = min(int(counts.max()), max(task.host_ranks) + 1) if task.select == "spread" else 1
        choices = [pick(graph, good, np.full_like(counts, rank)) for rank in range(most)]
    rows, edges = walk_all(task, graph, choices)
    paths = channels_along(graph, edges)
    trees = tree_from_everywhere(channels, parent)
    zeros = np.zeros(paths.shape, dtype=np.uint8)
    return Routes(rows, paths, zeros, trees, np.zeros(trees.shape, dtype=np.uint8))


def _longest_labels(channels: Channels, parent: Ints, level: Ints) -> NDArray[np.bool_]:
    """Return (switches, channels): whether no channel of its switch has a longer prefix."""
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
    good: NDArray[np.bool_] = length == np.repeat(longest, per_switch, axis=1)
    good &= channels.tail[None, :] != np.arange(count)[:, None]
    return good


ENGINE = Engine(
    name="prefix",
    summary="longest prefix of tree labels: up, at most once across, down",
    route=route,
    has_root=True,
)
