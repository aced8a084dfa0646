"""The two-dimensional turn model: directions on a tree determine the legal turns.

The coordinates of a switch are (preorder, level) in a breadth-first tree; children are in the
fabric's order. The first coordinate determines whether a channel goes left or right, the second
whether it goes up or down. Within a level, left counts as down and right as up, which gave the
shortest paths in measurements.

References
----------
Jouraku, Koibuchi, Amano, An effective design of deadlock-free routing algorithms based on
2D turn model for irregular networks, 2007.

"""

from __future__ import annotations

from knotless.routing.graphs.spanning_tree import SpanningTree
from knotless.routing.graphs.turns import Mask, Turns

LEFT_UP, RIGHT_DOWN = "left-up", "right-down"


def legal_turns(
    tree: SpanningTree, turns: Turns, into: str | None = LEFT_UP, out_of: str | None = None
) -> Mask:
    """Return which of ``turns`` are legal: a maximal acyclic set.

    Turns that keep their direction, and turns from left-up to right-down (as on paths along the
    ``tree``), are legal. The others are made legal one at a time if no cycle closes, those
    nearest the root first; turns from right-up to left-down are tried late, and turns into the
    direction ``into`` and out of ``out_of`` last. So few turns near the root are prohibited, and
    none without need.
    """
    return tree.channels.core.legal_turns(
        turns.before, turns.after, tree.root, tree.parent, tree.level, into, out_of
    )
