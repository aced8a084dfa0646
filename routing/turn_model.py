"""The two-dimensional turn model: which turns are legal by their directions on a tree.

A switch's place is (preorder, level) in a breadth-first tree, children in the order
of the fabric. A channel goes left or right by the one and up or down by the other; within one
level it counts as down to the left and as up to the right, which was found to make the
shortest paths.

References
----------
Jouraku, Koibuchi, Amano, An effective design of deadlock-free routing algorithms based on
2D turn model for irregular networks, 2007.

"""

from __future__ import annotations

import numpy as np

from routing.channels import Ints
from routing.spanning import SpanningTree
from routing.turns import Mask, Turns, grow_acyclic

LEFT_UP, LEFT_DOWN, RIGHT_UP, RIGHT_DOWN = range(4)


def legal_turns(tree: SpanningTree, turns: Turns, into: int = LEFT_UP, out_of: int = -1) -> Mask:
    """Return which of ``turns`` are legal: a largest set of them that closes no cycle.

    Turns that go on in one direction, and from left-up to right-down, as paths along the
    ``tree`` do, are legal. The others are made legal one by one, nearest the root
    first, if no cycle closes; those from right-up to left-down late, and last those into the
    direction ``into`` and out of ``out_of`` (-1: none). So few are
    prohibited near the root, and none that no cycle needs.
    """
    direction = _directions(tree)
    before, after = direction[turns.before], direction[turns.after]
    given = (before == after) | ((before == LEFT_UP) & (after == RIGHT_DOWN))
    late = np.where((before == RIGHT_UP) & (after == LEFT_DOWN), 1, 0)
    late[((after == into) & (before != into)) | ((before == out_of) & (after != out_of))] = 2
    order = np.lexsort((tree.level[tree.channels.head[turns.before]], late)).astype(np.int32)
    return grow_acyclic(len(tree.channels), turns, order, given)


def _directions(tree: SpanningTree) -> Ints:
    """Return for each channel in which of the four directions it goes."""
    channels, level, place = tree.channels, tree.level, tree.preorder()
    left = place[channels.head] < place[channels.tail]
    fall = level[channels.head] - level[channels.tail]
    up = (fall < 0) | ((fall == 0) & ~left)
    return np.where(
        left, np.where(up, LEFT_UP, LEFT_DOWN), np.where(up, RIGHT_UP, RIGHT_DOWN)
    ).astype(np.int32)
