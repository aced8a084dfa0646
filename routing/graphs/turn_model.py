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

from routing.graphs.spanning_tree import SpanningTree
from routing.graphs.turns import Mask, Turns

LEFT_UP, RIGHT_DOWN = "left-up", "right-down"


def legal_turns(
    tree: SpanningTree, turns: Turns, into: str | None = LEFT_UP, out_of: str | None = None
) -> Mask:
    """Return which of ``turns`` are legal: a largest set of them that closes no cycle.

    Turns that go on in one direction, and from left-up to right-down, as paths along the
    ``tree`` do, are legal. The others are made legal one by one, nearest the root
    first, if no cycle closes; those from right-up to left-down late, and last those into the
    direction ``into`` and out of ``out_of``. So few are
    prohibited near the root, and none that no cycle needs.
    """
    return tree.channels.core.legal_turns(
        turns.before, turns.after, tree.root, tree.parent, tree.level, into, out_of
    )
