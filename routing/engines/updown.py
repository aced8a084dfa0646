"""Up*/down*: never up after down, on a breadth-first spanning tree or on the tiers of a fabric.

References
----------
Schroeder et al., Autonet: a high-speed, self-configuring local area network using
point-to-point links, 1991. Koibuchi et al. measured it on RHiNET-2 with 1, 2 and 4 VCs.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless_core.graph import StateGraph
from routing.engine import Engine
from routing.graphs.balance import balanced_paths
from routing.graphs.channels import Ints
from routing.graphs.spanning_tree import spanning_tree
from routing.graphs.state_graph import up_down_graph
from routing.graphs.task import Task
from routing.graphs.tree_levels import joined, tiers
from routing.routes import ExplicitRoutes, Routes

TREES_FROM_ROOT = 2
"""Planes that hosts of one switch are spread over: the channels by the root tell the largest
load, and more planes were measured to lower it nowhere, and to need more VLANs."""


def route(task: Task) -> Routes:
    """Return a shortest legal path for each pair: ups first, then downs.

    With a root, up is towards the lower (level, switch index), where the level counts hops from the
    root, and broadcasts go along the spanning tree. Without one, on a fabric of tiers
    (:func:`routing.graphs.tree_levels.tiers`: fat-trees, Clos, Latin squares) where every two
    switches with hosts have one above them both, up is away from the hosts, as if all that is on
    top were one root; so paths are minimal there. On any other fabric the root is the first switch.

    With N virtual channels a host of rank r uses r mod N for everything that it sends.
    Broadcasts keep to virtual channel 0.
    """
    tier = tiers(task) if task.root is None else None
    graph, trees = (_by_tiers(task, tier) if tier is not None else None) or _from_root(task)
    vcs = task.vcs or 1
    by_rank = task.ranks if tier is not None else TREES_FROM_ROOT
    planes = max(vcs, by_rank if task.select == "spread" else 1)
    rows, paths, priorities = balanced_paths(task, graph, planes=min(planes, task.ranks))
    if vcs > 1:
        vc = (rows.plane % vcs).astype(np.uint8)
        priorities = np.where(paths >= 0, vc[:, None, None], priorities)
    return ExplicitRoutes(
        rows.of_host, paths, priorities, trees, np.zeros(trees.shape, dtype=np.uint8)
    )


def _by_tiers(task: Task, tier: Ints) -> tuple[StateGraph, Ints] | None:
    """Return the legal walks and the broadcast trees; None where they do not join all hosts."""
    channels = task.channels
    rises: NDArray[np.bool_] = tier[channels.head] > tier[channels.tail]
    graph = up_down_graph(channels, rises)
    if not joined(task, graph):
        return None
    return graph, channels.core.up_then_down(rises, ~rises)


def _from_root(task: Task) -> tuple[StateGraph, Ints]:
    """Return the legal walks and the broadcast trees of the breadth-first tree."""
    tree = spanning_tree(task.channels, task.tree_root)
    return up_down_graph(task.channels, tree.rises()), tree.from_everywhere()


ENGINE = Engine(
    name="updown",
    summary="up*/down*, by tiers or from a root; N virtual channels: each host keeps one",
    route=route,
    has_root=True,
)
