"""Layers: sets of turns without a cycle, in one of which each pair has a shortest path.

A layer is a largest set of turns that closes no cycle, so that a path fits into it
just when all its turns are legal there. The first layer also holds the turns of a spanning
tree, for broadcasts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knotless_core import graph as core
from routing.balance import Rows, balanced_paths
from routing.channels import Channels, Ints, Priorities
from routing.engine import Task
from routing.spanning import SpanningTree, spanning_tree
from routing.turn_model import legal_turns
from routing.turns import Mask, Turns, all_turns, along_tree, grow_acyclic, turn_graph
from routing.walks import plain_graph


@dataclass(frozen=True)
class ShortestPaths:
    """All shortest paths of a fabric, as each turn sees them.

    hops : (switches, switches) at [destination, source].
    wanted : (switches, switches) whether both have hosts, and are different.
    tree : the spanning tree from the root.
    turns : those of shortest paths between wanted pairs, and those along the tree between
        switches with hosts.
    """

    channels: Channels
    hops: Ints
    wanted: Mask
    tree: SpanningTree
    turns: Turns


def shortest_paths(task: Task) -> ShortestPaths:
    """Work out the shortest paths between switches with hosts, and the tree from the root."""
    channels = task.channels
    tree = spanning_tree(channels, task.tree_root)
    has_host = task.receivers > 0
    wanted = has_host[:, None] & has_host[None, :]
    np.fill_diagonal(wanted, val=False)
    turns = all_turns(channels)
    paths = ShortestPaths(channels, plain_graph(channels).hops(), wanted, tree, turns)
    needed = turn_use(paths, wanted) > 0
    needed |= along_tree(channels, _with_hosts_below(tree, has_host), turns)
    return replace(paths, turns=turns.only(needed))


def _with_hosts_below(tree: SpanningTree, has_host: Mask) -> Ints:
    """Return the parents in the tree without the branches that have no host."""
    if has_host.all():
        return tree.parent
    needed = has_host.copy()
    for switch in np.argsort(-tree.level, kind="stable").tolist():
        if needed[switch] and tree.parent[switch] >= 0:
            needed[tree.channels.tail[tree.parent[switch]]] = True
    return np.where(needed, tree.parent, -1).astype(np.int32)


def make_layers(paths: ShortestPaths) -> list[Mask]:
    """Return layers (masks of turns) until every wanted pair fits into one.

    The first layer is what L-turn makes legal. Each further one takes turns in the order
    of how much the pairs that are left would use them, those legal for up*/down* first where
    that is equal; if more pairs fit into a first layer made so, it is taken instead.
    """
    layers = [legal_turns(paths.tree, paths.turns)]
    left = paths.wanted & ~fitting(paths, layers[0])
    if left.any():
        other = _by_use(
            paths, paths.wanted, along_tree(paths.channels, paths.tree.parent, paths.turns)
        )
        other_left = paths.wanted & ~fitting(paths, other)
        if other_left.sum() < left.sum():
            layers, left = [other], other_left
    while left.any():
        layers.append(_by_use(paths, left, _one_path(paths, left)))
        left &= ~fitting(paths, layers[-1])
    return layers


def _by_use(paths: ShortestPaths, wanted: Mask, given: Mask) -> Mask:
    """Return the layer that takes the turns that wanted pairs use most first."""
    up = paths.tree.rises()
    illegal = ~up[paths.turns.before] & up[paths.turns.after]
    order = np.lexsort((illegal, -turn_use(paths, wanted))).astype(np.int32)
    return grow_acyclic(len(paths.channels), paths.turns, order, given)


def turn_use(paths: ShortestPaths, wanted: Mask) -> NDArray[np.float64]:
    """Return how many of the wanted pairs' shortest paths take each turn, equals sharing evenly.

    ``wanted`` (switches, switches) is true at [destination, source].
    """
    channels, turns = paths.channels, paths.turns
    return core.turn_use(
        channels.tail, channels.head, paths.hops, turns.before, turns.after, wanted
    )


def fitting(paths: ShortestPaths, layer: Mask) -> Mask:
    """Return (switches, switches) at [destination, source]: whether a shortest path fits."""
    channels, turns = paths.channels, paths.turns
    return core.fitting(channels.tail, channels.head, paths.hops, turns.before, turns.after, layer)


def _one_path(paths: ShortestPaths, wanted: Mask) -> Mask:
    """Return the turns of one shortest path of the first wanted pair: it will surely fit."""
    channels, turns = paths.channels, paths.turns
    destination, at = np.argwhere(wanted)[0].tolist()
    hops = paths.hops[destination]
    mask = np.zeros(len(turns), dtype=bool)
    before = -1
    while at != destination:
        nearer = (channels.tail == at) & (hops[channels.head] + 1 == hops[at])
        after = int(np.argmax(nearer))
        mask |= (turns.before == before) & (turns.after == after)
        before, at = after, int(channels.head[after])
    return mask


def layered_paths(
    task: Task, paths: ShortestPaths, layers: list[Mask]
) -> tuple[Rows, Ints, Priorities]:
    """Return balanced shortest paths, each whole in one of ``layers``, its priority.

    For what is returned see :func:`routing.balance.balanced_paths`.
    """
    return balanced_paths(task, turn_graph(paths.channels, paths.turns, layers))
