"""DFSSSP: shortest paths weighted by use, then layers until no cycle is left.

References
----------
Domke, Hoefler, Nagel, Deadlock-free oblivious routing for arbitrary topologies, 2011.

"""

from __future__ import annotations

import numpy as np

from routing.assemble import channels_along, walk_all
from routing.balance import choose_walks
from routing.channels import Ints, Priorities
from routing.engine import MAX_VCS, Engine, Routes, Task
from routing.engines.updown import tree_from_everywhere
from routing.layers import ShortestPaths, shortest_paths
from routing.turn_model import legal_turns
from routing.turns import Mask, along_tree, grow_acyclic, turn_graph
from routing.walks import distances

_PENALTIES = (0.0, 0.03, 0.1, 0.3, 1.0, 10.0)
"""How much dearer a turn that L-turn forbids is, in units of the most loaded channel."""


def route(task: Task) -> Routes:
    """Return shortest paths balanced by load, each whole in one layer.

    Minimal on every fabric; needs as many virtual channels as there are layers.
    Each destination's paths avoid the channels that are much used
    (:func:`routing.balance.choose_walks`). All start in layer 0, where the turns that close
    cycles are prohibited, the least used first; the paths that take them go on to the next
    layer, and so on. When more layers would be needed than there may be, paths are chosen
    again with the turns that L-turn forbids made dearer, step by step. Broadcasts go along
    the breadth-first tree from the root, in layer 0.
    """
    channels = task.channels
    known = shortest_paths(task)
    legal = legal_turns(channels, known.parent, known.turns)
    graph = turn_graph(channels, known.turns)
    hops = distances(graph)
    turning = np.nonzero(graph.tail < len(channels))[0]
    turn = _numbers(known, graph.tail[turning], graph.channel[turning])
    best: tuple[Ints, Ints, Priorities] | None = None
    for penalty in _PENALTIES if task.select == "spread" else (0.0,):
        dearer = np.zeros(len(graph.tail))
        dearer[turning] = penalty * ~legal[turn]
        rows, edges = walk_all(task, graph, choose_walks(task, graph, hops, dearer))
        paths = channels_along(graph, edges)
        layers = _layers(known, legal, paths)
        if best is None or layers.max(initial=0) < best[2].max(initial=0):
            best = rows, paths, layers
        if best[2].max(initial=0) < (task.vcs or MAX_VCS):
            break
    assert best is not None  # noqa: S101 - there is at least one penalty
    trees = tree_from_everywhere(channels, known.parent)
    return Routes(*best, trees, np.zeros(trees.shape, dtype=np.uint8))


def _layers(known: ShortestPaths, legal: Mask, paths: Ints) -> Priorities:
    """Return the layer of each channel of ``paths`` (rows, switches, longest).

    In layer 0 the turns that ``legal`` marks are taken instead if more paths fit into them.
    """
    channels, turns = known.channels, known.turns
    onward = paths[:, :, 1:] >= 0
    taken = np.full(onward.shape, -1, dtype=np.int64)
    taken[onward] = _numbers(known, paths[:, :, :-1][onward], paths[:, :, 1:][onward])
    layers = np.zeros(paths.shape, dtype=np.uint8)
    row, destination = np.nonzero(onward.any(axis=2))
    number = 0
    while len(row):
        left = taken[row, destination]
        use = np.bincount(left[left >= 0], minlength=len(turns))
        order = np.argsort(-use, kind="stable").astype(np.int32)
        given = None if number else along_tree(channels, known.parent, turns)
        layer = grow_acyclic(len(channels), turns, order, given)
        fit = np.append(layer, True)[left].all(axis=1)
        if number == 0:
            other = np.append(legal, True)[left].all(axis=1)
            fit = other if other.sum() >= fit.sum() else fit
        row, destination = row[~fit], destination[~fit]
        number += 1
        layers[row, destination] = number
    return np.where(paths >= 0, layers, 0).astype(np.uint8)


def _numbers(known: ShortestPaths, before: Ints, after: Ints) -> Ints:
    """Return the number of each turn."""
    count = len(known.channels)
    codes = known.turns.before.astype(np.int64) * count + known.turns.after
    return np.searchsorted(codes, before.astype(np.int64) * count + after).astype(np.int32)


ENGINE = Engine(
    name="dfsssp",
    summary="shortest paths weighted by use, in as many layers as it takes",
    route=route,
    has_root=True,
)
