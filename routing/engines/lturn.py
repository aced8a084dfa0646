"""L-turn and R-turn: up*/down* in two dimensions, with fewer turns prohibited near the root.

References
----------
Koibuchi, Funahashi, Jouraku, Amano, L-turn routing: an adaptive routing in irregular
networks, 2001; Jouraku, Koibuchi, Amano, An effective design of deadlock-free routing
algorithms based on 2D turn model for irregular networks, 2007.

"""

from __future__ import annotations

import numpy as np

from routing.assemble import channels_along, walk_all
from routing.balance import choose_walks
from routing.engine import Engine, Routes, Task
from routing.engines.minimal import breadth_first_trees
from routing.engines.updown import tree_from_everywhere
from routing.simple_paths import without_revisits
from routing.turn_model import LEFT_UP, RIGHT_DOWN, legal_turns
from routing.turns import all_turns, turn_graph
from routing.walks import distances


def route(task: Task) -> Routes:
    """Return shortest paths that turn into channels to the left and up only where it is safe.

    Runs on any fabric with one virtual channel; not always minimal. What is legal is told by
    :func:`routing.turn_model.legal_turns`, ties by :func:`routing.balance.choose_walks`.
    """
    return _route(task, into=LEFT_UP)


def route_r_turn(task: Task) -> Routes:
    """Return the same with the turns out of right-down last instead of those into left-up."""
    return _route(task, out_of=RIGHT_DOWN)


def _route(task: Task, into: int = -1, out_of: int = -1) -> Routes:
    channels = task.channels
    parent = breadth_first_trees(channels)[task.root]
    turns = all_turns(channels)
    legal = legal_turns(channels, parent, turns, into, out_of)
    graph = turn_graph(channels, turns.only(legal))
    hops = distances(graph)
    rows, edges = walk_all(task, graph, choose_walks(task, graph, hops))
    trees = tree_from_everywhere(channels, parent)
    sources = np.zeros(len(edges), dtype=np.int32)
    sources[rows] = task.host_switches
    paths = without_revisits(graph, hops, sources, channels_along(graph, edges), trees)
    zeros = np.zeros(paths.shape, dtype=np.uint8)
    return Routes(rows, paths, zeros, trees, np.zeros(trees.shape, dtype=np.uint8))


L_TURN = Engine(
    name="lturn",
    summary="2-D turn model on a tree: turns into left-up only where no cycle closes",
    route=route,
    has_root=True,
)
R_TURN = Engine(
    name="rturn",
    summary="2-D turn model on a tree: turns out of right-down only where no cycle closes",
    route=route_r_turn,
    has_root=True,
)
