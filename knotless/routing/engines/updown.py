"""Up*/down*: never up after down, on a breadth-first spanning tree or by the levels of a tree.

References
----------
Schroeder et al., Autonet: a high-speed, self-configuring local area network using
point-to-point links, 1991. Koibuchi et al. measured it on RHiNET-2 with 1, 2 and 4 VCs.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless._core.graph import StateGraph
from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import balanced_paths
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.next_hop_sets import NextHopSets, up_down_next_hops
from knotless.routing.graphs.spanning_tree import spanning_tree
from knotless.routing.graphs.state_graph import up_down_graph
from knotless.routing.graphs.task import Task
from knotless.routing.graphs.tree_levels import all_connected, tree_levels
from knotless.routing.routes import ExplicitRoutes, Routes

TREES_FROM_ROOT = 2
"""Rank classes over which the hosts of a switch are spread. The channels at the root have the
highest load; in measurements more classes did not reduce it, and needed more VLANs."""


def route(task: Task) -> Routes:
    """Return a shortest legal path of each pair: up channels, then down channels.

    With a root, up is towards the lower (distance from the root, switch index), and broadcasts
    use the spanning tree. Without a root, the levels of a multi-level tree
    (:func:`knotless.routing.graphs.tree_levels.tree_levels`: fat-trees, Clos, Latin squares) are
    used if every two switches with hosts have a common ancestor: up is away from the hosts, and
    paths are minimal. On any other fabric the root is the first switch.

    With N virtual channels, a host of rank r sends everything on virtual channel r mod N.
    Broadcasts use virtual channel 0.
    """
    level = tree_levels(task) if task.root is None else None
    graph, trees = (_by_tree_levels(task, level) if level is not None else None) or _from_root(task)
    vcs = task.vcs or 1
    by_rank = task.ranks if level is not None else TREES_FROM_ROOT
    rank_classes = max(vcs, by_rank if task.select == "spread" else 1)
    rows, paths, priorities = balanced_paths(
        task, graph, rank_classes=min(rank_classes, task.ranks)
    )
    if vcs > 1:
        vc = (rows.rank_class % vcs).astype(np.uint8)
        priorities = np.where(paths >= 0, vc[:, None, None], priorities)
    return ExplicitRoutes(
        rows.of_host, paths, priorities, trees, np.zeros(trees.shape, dtype=np.uint8)
    )


def next_hops(task: Task) -> NextHopSets:
    """Return all shortest paths that go up only as long as no path down leads to their end.

    Levels and root are those of :func:`route`.
    """
    level = tree_levels(task) if task.root is None else None
    if level is not None and _by_tree_levels(task, level) is not None:
        rises: NDArray[np.bool_] = level[task.channels.head] > level[task.channels.tail]
        order = np.argsort(-level, kind="stable").astype(np.int32)
    else:
        tree = spanning_tree(task.channels, task.tree_root)
        rises = tree.rises()
        order = np.argsort(tree.level, kind="stable").astype(np.int32)
    return up_down_next_hops(task, rises, ~rises, order, "updown")


def _by_tree_levels(task: Task, level: Ints) -> tuple[StateGraph, Ints] | None:
    """Return the graph of legal paths and the broadcast trees; None if not all are connected."""
    channels = task.channels
    rises: NDArray[np.bool_] = level[channels.head] > level[channels.tail]
    graph = up_down_graph(channels, rises)
    if not all_connected(task, graph):
        return None
    return graph, channels.core.up_then_down(rises, ~rises, task.receivers > 0)


def _from_root(task: Task) -> tuple[StateGraph, Ints]:
    """Return the graph of legal paths and the broadcast trees of the breadth-first tree."""
    tree = spanning_tree(task.channels, task.tree_root)
    return up_down_graph(task.channels, tree.rises()), tree.from_everywhere()


ENGINE = Engine(
    name="updown",
    summary="up*/down*, by tree levels or from a root; N virtual channels: each host keeps one",
    route=route,
    has_root=True,
    has_layers=True,
    rule="Every channel leads up or down: by the levels of a tree, or towards the root of a "
    "spanning tree. A path goes up, then down; the shortest such path is taken.",
    proof="A path never goes up after it went down, so no dependency leads from a channel "
    "down to a channel up. With several virtual channels each host keeps one.",
    use="Any fabric, with plain PAUSE. The safe choice; on irregular fabrics links near the "
    "root carry most.",
    next_hops=next_hops,
)
