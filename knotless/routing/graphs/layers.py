"""Layers: acyclic sets of turns, such that each pair has a shortest path in one of them.

A layer is a maximal acyclic set of turns, so a path fits into it if all its turns are in the set.
The first layer also contains the turns of a spanning tree, for broadcasts. The Rust core computes
the layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from knotless._core import graph as core
from knotless.routing.graphs.balance import Rows, balanced_paths
from knotless.routing.graphs.channels import Channels, Ints, Priorities
from knotless.routing.graphs.spanning_tree import SpanningTree, spanning_tree
from knotless.routing.graphs.task import Task
from knotless.routing.graphs.turns import Mask, Turns


@dataclass(frozen=True)
class ShortestPaths:
    """All shortest paths of a fabric between switches with hosts.

    tree : the spanning tree from the root.
    turns : those of shortest paths between different switches with hosts, and those along the
        tree between switches with hosts.
    """

    tree: SpanningTree
    turns: Turns
    core: core.ShortestPaths

    @property
    def channels(self) -> Channels:
        """The channels of the fabric."""
        return self.tree.channels

    def pairs_to_route(self) -> Mask:
        """Return (switches, switches): whether both have hosts and they differ."""
        return self.core.wanted()

    def fitting(self, layer: Mask) -> Mask:
        """Return (switches, switches) at [destination, source]: whether a shortest path fits."""
        return self.core.fitting(layer)

    def layers(self) -> Mask:
        """Return layers (layers, turns), enough for every pair to fit into one.

        The first layer contains all turns if they are acyclic, else those that L-turn allows. A
        further layer takes turns in the order of their use by the pairs that remain; ties prefer
        turns that are legal for up*/down*. If a first layer made in this way fits more pairs, it
        is used instead.
        """
        return self.core.layers(self.tree.root, self.tree.parent, self.tree.level)


def shortest_paths(task: Task) -> ShortestPaths:
    """Compute the shortest paths between switches with hosts, and the tree from the root."""
    tree = spanning_tree(task.channels, task.tree_root)
    paths = task.channels.core.shortest_paths(tree.root, tree.parent, tree.level, task.receivers)
    return ShortestPaths(tree, Turns(*paths.turns()), paths)


def layered_paths(task: Task, paths: ShortestPaths, layers: Mask) -> tuple[Rows, Ints, Priorities]:
    """Return balanced shortest paths, each in one of ``layers``, which is its priority.

    Returns the same as :func:`knotless.routing.graphs.balance.balanced_paths`.
    """
    return balanced_paths(task, paths.core.graph(layers))
