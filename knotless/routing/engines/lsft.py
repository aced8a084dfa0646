"""Latin-square fat-trees: the path through the spine that two leaves share.

References
----------
Shimizu, Nakashima: all-to-all communication on Latin-square fat-trees.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.routing.engine import Engine
from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.graphs.task import Task
from knotless.routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return leaf-spine-leaf paths: minimal, one virtual channel, unique unless sides=2.

    Leaves are the switches with hosts. The two leaves of one point, one on each side, share all
    their spines. Between them the spine is selected by the number of the destination switch
    times the hosts per leaf, plus with ``spread`` the rank of the source host.

    Raises
    ------
    PlanError
        A link does not connect a leaf and a spine, or two leaves share neither exactly one
        spine nor all.

    """
    channels = task.channels
    count = len(channels.names)
    leaves = np.flatnonzero(task.receivers)
    ups, downs, first, counts = _two_hop_paths(task, leaves)
    places = np.full(count, -1, dtype=np.int64)
    places[leaves] = np.arange(len(leaves))
    ranks = task.host_ranks
    rank_classes = task.ranks if task.select == "spread" and counts.max(initial=0) > 1 else 1
    keys = ranks % rank_classes * len(leaves) + places[task.host_switches]
    used, rows = np.unique(keys, return_inverse=True)
    rank, leaf = np.divmod(used, len(leaves))
    number = np.arange(len(leaves)) * task.ranks
    chosen = first[leaf] + (number[None, :] + rank[:, None]) % np.maximum(1, counts[leaf])
    paths = np.full((len(used), count, 2), -1, dtype=np.int32)
    row, target = np.nonzero(leaf[:, None] != np.arange(len(leaves))[None, :])
    path = chosen[row, target]
    paths[row, leaves[target], 0] = ups[path]
    paths[row, leaves[target], 1] = downs[path]
    trees = _trees(channels, leaves, ups, downs, first)
    zeros = np.zeros(paths.shape, dtype=np.uint8)
    return ExplicitRoutes(
        rows.astype(np.int32), paths, zeros, trees, np.zeros(trees.shape, dtype=np.uint8)
    )


def _two_hop_paths(task: Task, leaves: NDArray[np.intp]) -> tuple[Ints, Ints, Ints, Ints]:
    """Return all two-hop paths between leaves, sorted by (source, destination, up channel).

    Returns
    -------
    ups, downs : (paths,)
        The channels.
    first, counts : (leaves, leaves)
        The index of the first path of each pair, and the number of its paths.

    """
    channels, name = task.channels, task.fabric.name
    is_leaf = np.zeros(len(channels.names), dtype=bool)
    is_leaf[leaves] = True
    wrong = np.nonzero(is_leaf[channels.tail] == is_leaf[channels.head])[0]
    if len(wrong):
        a, b = (channels.names[end[wrong[0]]] for end in (channels.tail, channels.head))
        raise PlanError(
            f"lsft needs links between leaves (with hosts) and spines (without); {name} has one"
            f" from {a} to {b}; updown runs on any fabric"
        )
    up = np.nonzero(is_leaf[channels.tail])[0].astype(np.int32)
    down_first = np.searchsorted(channels.tail, np.arange(len(channels.names) + 1))
    fan = np.diff(down_first)[channels.head[up]]
    ups = np.repeat(up, fan)
    offset = np.arange(len(ups)) - np.repeat(np.cumsum(fan) - fan, fan)
    downs = (down_first[channels.head[ups]] + offset).astype(np.int32)
    away = channels.tail[ups] != channels.head[downs]
    ups, downs = ups[away], downs[away]
    places = np.zeros(len(channels.names), dtype=np.int32)
    places[leaves] = np.arange(len(leaves))
    pair = places[channels.tail[ups]].astype(np.int64) * len(leaves) + places[channels.head[downs]]
    order = np.lexsort((downs, ups, pair))
    counts = np.bincount(pair, minlength=len(leaves) ** 2).reshape(len(leaves), len(leaves))
    _check_counts(task, leaves, counts)
    first = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
    return ups[order], downs[order], first.astype(np.int32), counts.astype(np.int32)


def _check_counts(task: Task, leaves: NDArray[np.intp], counts: NDArray[np.intp]) -> None:
    """Raise PlanError unless every two leaves share exactly one spine, or all."""
    links = np.bincount(task.channels.tail, minlength=len(task.channels.names))[leaves]
    fine = (counts == 1) | (counts == np.minimum(links[:, None], links[None, :]))
    np.fill_diagonal(fine, val=True)
    fine &= (counts > 0) | np.eye(len(leaves), dtype=bool)
    wrong = np.argwhere(~fine)
    if len(wrong):
        a, b = (task.channels.names[leaves[i]] for i in wrong[0])
        raise PlanError(
            f"lsft needs one spine between every two leaves; {task.fabric.name} has"
            f" {counts[wrong[0][0], wrong[0][1]]} between {a} and {b}; updown runs on any fabric"
        )


def _trees(
    channels: Channels, leaves: NDArray[np.intp], ups: Ints, downs: Ints, first: Ints
) -> Ints:
    """Return the broadcast trees: up to all spines of a leaf, down the first path to each leaf."""
    count = len(channels.names)
    trees = np.full((count, count), -1, dtype=np.int32)
    if len(ups):
        trees[channels.tail[ups[::-1]], channels.head[ups[::-1]]] = ups[::-1]
        source, target = np.nonzero(~np.eye(len(leaves), dtype=bool))
        trees[leaves[source], leaves[target]] = downs[first[source, target]]
    return trees


ENGINE = Engine(
    name="lsft",
    summary="Latin-square fat-trees: through the spine that two leaves share",
    route=route,
    rule="Two leaves of a Latin-square fat-tree share exactly one spine. The path is leaf, "
    "spine, leaf.",
    proof="Every path is one channel up and one channel down, so no dependency leads from a "
    "channel down to a channel up.",
    use="Latin-square fat-trees. Together with their schedule, an all-to-all without contention.",
)
