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
from routing.channels import Channels, Ints
from routing.engine import Engine, Routes, Task
from routing.engines.minimal import breadth_first_trees
from routing.engines.updown import levels, tree_from_everywhere
from routing.simple_paths import without_revisits
from routing.turns import Turns, all_turns, grow_acyclic, turn_graph
from routing.walks import distances

_LU, _LD, _RU, _RD = range(4)


def route(task: Task) -> Routes:
    """Return shortest paths that turn into channels to the left and up only where it is safe.

    Runs on any fabric with one virtual channel; not always minimal. A switch's
    place is (preorder, level) in the breadth-first tree from the root, children in the order
    of the fabric; a channel within one level counts as down to the left and as up to the right.
    Turns that go on in one direction, and from left-up to right-down, as paths along the
    tree do, are legal. The others are made legal one by one, nearest the root first, if no
    cycle closes; those from right-up to left-down late and those into left-up last. So few
    are prohibited near the root, and none that no cycle needs.
    Ties as :func:`routing.balance.choose_walks` says.
    """
    return _route(task, into=_LU)


def route_r_turn(task: Task) -> Routes:
    """Return the same with the turns out of right-down last instead of those into left-up."""
    return _route(task, out_of=_RD)


def _route(task: Task, into: int = -1, out_of: int = -1) -> Routes:
    channels = task.channels
    parent = breadth_first_trees(channels)[task.root]
    turns = _legal_turns(task, parent, into, out_of)
    graph = turn_graph(channels, turns)
    hops = distances(graph)
    rows, edges = walk_all(task, graph, choose_walks(task, graph, hops))
    trees = tree_from_everywhere(channels, parent)
    sources = np.zeros(len(edges), dtype=np.int32)
    sources[rows] = task.host_switches
    paths = without_revisits(graph, hops, sources, channels_along(graph, edges), trees)
    zeros = np.zeros(paths.shape, dtype=np.uint8)
    return Routes(rows, paths, zeros, trees, np.zeros(trees.shape, dtype=np.uint8))


def _legal_turns(task: Task, parent: Ints, into: int, out_of: int) -> Turns:
    """Return the legal turns; the last to be tried are those into and out of a direction."""
    channels = task.channels
    level = levels(channels, parent, task.root)
    direction = _directions(channels, level, _preorder(channels, parent, task.root))
    turns = all_turns(channels)
    before, after = direction[turns.before], direction[turns.after]
    given = (before == after) | ((before == _LU) & (after == _RD))
    late = np.where((before == _RU) & (after == _LD), 1, 0)
    late[((after == into) & (before != into)) | ((before == out_of) & (after != out_of))] = 2
    order = np.lexsort((level[channels.head[turns.before]], late)).astype(np.int32)
    return turns.only(grow_acyclic(len(channels), turns, order, given))


def _directions(channels: Channels, level: Ints, place: Ints) -> Ints:
    """Return for each channel in which of the four directions it goes."""
    left = place[channels.head] < place[channels.tail]
    fall = level[channels.head] - level[channels.tail]
    up = (fall < 0) | ((fall == 0) & ~left)
    return np.where(left, np.where(up, _LU, _LD), np.where(up, _RU, _RD)).astype(np.int32)


def _preorder(channels: Channels, parent: Ints, root: int) -> Ints:
    """Return the place of each switch when the tree is walked, parents before children."""
    children: list[list[int]] = [[] for _ in parent]
    for switch, channel in enumerate(parent.tolist()):
        if channel >= 0:
            children[channels.tail[channel]].append(switch)
    place = np.zeros(len(parent), dtype=np.int32)
    stack = [root]
    for number in range(len(parent)):
        switch = stack.pop()
        place[switch] = number
        stack += reversed(children[switch])
    return place


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
