"""Layers: sets of turns without a cycle, in one of which each pair has a shortest path.

A layer is a largest set of turns that closes no cycle, so that a path fits into it
just when all its turns are legal there. The first layer also holds the turns of a spanning
tree, for broadcasts. The Rust core makes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from knotless_core import graph as core
from routing.graphs.balance import Rows, balanced_paths
from routing.graphs.channels import Channels, Ints, Priorities
from routing.graphs.spanning_tree import SpanningTree, spanning_tree
from routing.graphs.task import Task
from routing.graphs.turns import Mask, Turns


@dataclass(frozen=True)
class ShortestPaths:
    """All shortest paths of a fabric between switches with hosts, as each turn sees them.

    tree : the spanning tree from the root.
    turns : those of shortest paths between different switches with hosts, and those along the
        tree between switches with hosts.
    """

    tree: SpanningTree
    turns: Turns
    core: core.ShortestPaths

    @property
    def channels(self) -> Channels:
        """The channels that they take."""
        return self.tree.channels

    def wanted(self) -> Mask:
        """Return (switches, switches): whether both have hosts, and are different."""
        return self.core.wanted()

    def fitting(self, layer: Mask) -> Mask:
        """Return (switches, switches) at [destination, source]: whether a shortest path fits."""
        return self.core.fitting(layer)

    def layers(self) -> Mask:
        """Return layers (layers, turns) until every pair fits into one.

        The first layer is all turns if they close no cycle, else what L-turn makes legal. Each
        further one takes turns in the order of how much the pairs that are left would use
        them, those legal for up*/down* first where that is equal; if more pairs fit into a
        first layer made so, it is taken instead.
        """
        return self.core.layers(self.tree.root, self.tree.parent, self.tree.level)


def shortest_paths(task: Task) -> ShortestPaths:
    """Work out the shortest paths between switches with hosts, and the tree from the root."""
    tree = spanning_tree(task.channels, task.tree_root)
    paths = task.channels.core.shortest_paths(tree.root, tree.parent, tree.level, task.receivers)
    return ShortestPaths(tree, Turns(*paths.turns()), paths)


def layered_paths(task: Task, paths: ShortestPaths, layers: Mask) -> tuple[Rows, Ints, Priorities]:
    """Return balanced shortest paths, each whole in one of ``layers``, its priority.

    For what is returned see :func:`routing.graphs.balance.balanced_paths`.
    """
    return balanced_paths(task, paths.core.graph(layers))
