"""L-turn and R-turn: up*/down* in two dimensions, with fewer turns prohibited near the root.

References
----------
Koibuchi, Funahashi, Jouraku, Amano, L-turn routing: an adaptive routing in irregular
networks, 2001; Jouraku, Koibuchi, Amano, An effective design of deadlock-free routing
algorithms based on 2D turn model for irregular networks, 2007.

"""

from __future__ import annotations

import numpy as np

from knotless.routing.engine import Engine
from knotless.routing.graphs.balance import balanced_paths
from knotless.routing.graphs.simple_paths import without_revisits
from knotless.routing.graphs.spanning_tree import spanning_tree
from knotless.routing.graphs.task import Task
from knotless.routing.graphs.turns import LEFT_UP, RIGHT_DOWN, all_turns, legal_turns, turn_graph
from knotless.routing.routes import ExplicitRoutes, Routes


def route(task: Task) -> Routes:
    """Return shortest paths that turn into left-up channels only where no cycle closes.

    Routes any fabric with one virtual channel; not always minimal.
    :func:`knotless.routing.graphs.turns.legal_turns` defines the legal turns,
    :func:`knotless.routing.graphs.balance.balanced_paths` how ties are broken.
    """
    return _route(task, into=LEFT_UP)


def route_r_turn(task: Task) -> Routes:
    """Return R-turn paths: turns out of right-down are released last, not turns into left-up."""
    return _route(task, out_of=RIGHT_DOWN)


def _route(task: Task, into: str | None = None, out_of: str | None = None) -> Routes:
    channels = task.channels
    tree = spanning_tree(channels, task.tree_root)
    turns = all_turns(channels)
    graph = turn_graph(channels, turns.only(legal_turns(tree, turns, into, out_of)))
    rows, walks, _ = balanced_paths(task, graph)
    trees = tree.from_everywhere()
    paths = without_revisits(channels, graph, rows.switch, walks, trees)
    zeros = np.zeros(paths.shape, dtype=np.uint8)
    return ExplicitRoutes(rows.of_host, paths, zeros, trees, np.zeros(trees.shape, dtype=np.uint8))


L_TURN = Engine(
    name="lturn",
    summary="2-D turn model on a tree: turns into left-up only where no cycle closes",
    route=route,
    has_root=True,
    has_layers=True,
    rule="In a spanning tree, a channel goes left or right (in the order in which the tree "
    "is visited) and up or down. Turns into left-up channels are prohibited, those that "
    "close no cycle are released again, and a shortest path along the allowed turns is "
    "taken.",
    proof="Cycles that remain without turns into left-up channels are broken turn by turn, "
    "and a prohibited turn is released only if it closes no cycle.",
    use="Irregular fabrics with plain PAUSE, where up*/down* overloads the links at the root.",
)
R_TURN = Engine(
    name="rturn",
    summary="2-D turn model on a tree: turns out of right-down only where no cycle closes",
    route=route_r_turn,
    has_root=True,
    has_layers=True,
    rule="In a spanning tree, a channel goes left or right (in the order in which the tree is "
    "visited) and up or down. Turns out of right-down channels are prohibited, those that close "
    "no cycle are released again, and a shortest path along the allowed turns is taken.",
    proof="Cycles that remain without turns out of right-down channels are broken turn by "
    "turn, and a prohibited turn is released only if it closes no cycle.",
    use="As lturn. Which of the two is better depends on the fabric, so try both.",
)
