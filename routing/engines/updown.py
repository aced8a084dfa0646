"""Up*/down*: never up after down, on a breadth-first spanning tree or on the tiers of a fabric.

References
----------
Schroeder et al., Autonet: a high-speed, self-configuring local area network using
point-to-point links, 1991. Koibuchi et al. measured it on RHiNET-2 with 1, 2 and 4 VCs.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless_core.graph import StateGraph, up_then_down
from routing.balance import balanced_paths
from routing.channels import Ints
from routing.engine import Engine, Routes, Task
from routing.spanning import spanning_tree
from routing.tiers import joined, tiers
from routing.walks import up_down_graph


def route(task: Task) -> Routes:
    """Return a shortest legal path for each pair: ups first, then downs.

    With a root, up is towards the lower (level, switch index), where the level counts hops from
    the root, and broadcasts go along the spanning tree. Without one, on a fabric of tiers
    (:func:`routing.tiers.tiers`: fat-trees, Clos, Latin squares) where every two switches
    with hosts have one above them both, up is away from the hosts, as if all that
    is on top were one root; so paths are minimal there. On any other fabric the root is the
    first switch.

    With N virtual channels a host of rank r uses r mod N for everything that it sends.
    Broadcasts keep to virtual channel 0.
    """
    graph, trees = _legal(task)
    vcs = task.vcs or 1
    planes = None if task.select == "spread" else min(vcs, task.ranks)
    rows, paths, priorities = balanced_paths(task, graph, planes=planes)
    if vcs > 1:
        vc = (rows.plane % vcs).astype(np.uint8)
        priorities = np.where(paths >= 0, vc[:, None, None], priorities)
    return Routes(rows.of_host, paths, priorities, trees, np.zeros(trees.shape, dtype=np.uint8))


def _legal(task: Task) -> tuple[StateGraph, Ints]:
    """Return the legal walks, and the broadcast trees."""
    channels = task.channels
    tier = tiers(task) if task.root is None else None
    if tier is not None:
        rises: NDArray[np.bool_] = tier[channels.head] > tier[channels.tail]
        graph = up_down_graph(channels, rises)
        if joined(task, graph):
            count = len(channels.names)
            return graph, up_then_down(channels.tail, channels.head, count, rises, ~rises)
    tree = spanning_tree(channels, task.tree_root)
    return up_down_graph(channels, tree.rises()), tree.from_everywhere()


ENGINE = Engine(
    name="updown",
    summary="up*/down*, by tiers or from a root; N virtual channels: each host keeps one",
    route=route,
    has_root=True,
)
