"""DFSSSP: shortest paths weighted by load, then moved to higher layers until no cycle remains.

References
----------
Domke, Hoefler, Nagel, Deadlock-free oblivious routing for arbitrary topologies, 2011.

"""

from __future__ import annotations

import numpy as np

from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import balanced_paths
from knotless.routing.graphs.channels import Ints, Priorities
from knotless.routing.graphs.layers import ShortestPaths, layered_paths, shortest_paths
from knotless.routing.graphs.state_graph import plain_graph
from knotless.routing.graphs.task import MAX_VCS, Task
from knotless.routing.graphs.turns import along_tree, grow_acyclic, legal_turns
from knotless.routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return shortest paths balanced by load, each in a single layer.

    Paths are minimal on every fabric; each layer needs a virtual channel. The paths to each
    destination avoid channels with high load
    (:func:`knotless.routing.graphs.balance.balanced_paths`). All paths start in layer 0. Turns that
    close cycles are prohibited there, the least used first, and paths with prohibited turns move to
    the next layer, and so on. If this needs more layers than are allowed, layers are computed first
    (:meth:`knotless.routing.graphs.layers.ShortestPaths.layers`), and the weighted paths are
    restricted to them. Broadcasts use the breadth-first tree from the root, in layer 0.
    """
    shortest = shortest_paths(task)
    rows, paths, _ = balanced_paths(task, plain_graph(task.channels))
    allowed = task.vcs or MAX_VCS
    layers = _layers(shortest, paths, allowed)
    if layers is None:
        others = layered_paths(task, shortest, shortest.layers())
        needed = int(others[2].max(initial=0)) + 1
        layers = _layers(shortest, paths, needed) if needed > allowed else None
        if layers is None:
            rows, paths, layers = others
    trees = shortest.tree.from_everywhere()
    return ExplicitRoutes(rows.of_host, paths, layers, trees, np.zeros(trees.shape, dtype=np.uint8))


def _layers(shortest: ShortestPaths, paths: Ints, allowed: int) -> Priorities | None:
    """Return the layer of each channel of ``paths`` (rows, switches, longest).

    Returns None if more than ``allowed`` layers are needed. In layer 0 the turns that L-turn
    allows are used instead if more paths fit into them.
    """
    channels, turns = shortest.channels, shortest.turns
    layers = np.zeros(paths.shape, dtype=np.uint8)
    row, destination = np.nonzero((paths[:, :, 1:2] >= 0).any(axis=2))
    entering, leaving = paths[row, destination, :-1], paths[row, destination, 1:]
    turn_numbers = np.where(leaving >= 0, _numbers(shortest, entering, leaving), -1)
    number = 0
    while len(row):
        if number == allowed:
            return None
        use = np.bincount(turn_numbers[turn_numbers >= 0], minlength=len(turns))
        order = np.argsort(-use, kind="stable").astype(np.int32)
        initial = None if number else along_tree(channels, shortest.tree.parent, turns)
        fit = np.append(grow_acyclic(len(channels), turns, order, initial), True)[turn_numbers].all(
            axis=1
        )
        if number == 0:
            other = np.append(legal_turns(shortest.tree, turns), True)[turn_numbers].all(axis=1)
            fit = other if other.sum() >= fit.sum() else fit
        row, destination, turn_numbers = row[~fit], destination[~fit], turn_numbers[~fit]
        number += 1
        layers[row, destination] = number
    layers[paths < 0] = 0
    return layers


def _numbers(shortest: ShortestPaths, entering: Ints, leaving: Ints) -> Ints:
    """Return the number of each turn (before, after)."""
    count = len(shortest.channels)
    codes = shortest.turns.before.astype(np.int64) * count + shortest.turns.after
    return np.searchsorted(codes, entering.astype(np.int64) * count + leaving).astype(np.int32)


ENGINE = Engine(
    name="dfsssp",
    summary="shortest paths weighted by load, in as many layers as needed",
    route=route,
    has_root=True,
    rule="All pairs take shortest paths, chosen one destination at a time so that busy "
    "channels are avoided. A path whose turns would close a cycle moves to the next "
    "layer, and a layer is a virtual channel.",
    proof="The turns of the paths in each layer form no cycle, and no path changes its layer.",
    use="Irregular fabrics, or regular ones with a missing link, whose switches have PFC with "
    "several lossless priorities.",
)
