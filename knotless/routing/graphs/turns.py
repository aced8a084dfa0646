"""Turns, maximal acyclic sets of them, and the two-dimensional turn model.

A turn is a pair of channels; the second leaves the switch that the first enters. Paths whose turns
are all in an acyclic set cannot deadlock on one virtual channel.

In the turn model, directions on a tree determine the legal turns. The coordinates of a switch are
(preorder, level) in a breadth-first tree; children are in the fabric's order. The first coordinate
determines whether a channel goes left or right, the second whether it goes up or down. Within a
level, left counts as down and right as up, which gave the shortest paths in measurements.

References
----------
Jouraku, Koibuchi, Amano, An effective design of deadlock-free routing algorithms based on
2D turn model for irregular networks, 2007.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless._core import graph as core
from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.graphs.spanning_tree import SpanningTree

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Turns:
    """Turns, sorted by (before, after); the two arrays of channels have equal length."""

    before: Ints
    after: Ints

    def __len__(self) -> int:
        """Return the number of turns."""
        return len(self.before)

    def only(self, mask: Mask) -> Turns:
        """Return the turns where ``mask`` is true."""
        return Turns(self.before[mask], self.after[mask])


def all_turns(channels: Channels) -> Turns:
    """Return all turns except those back to the previous switch."""
    return Turns(*channels.core.all_turns())


def turn_graph(
    channels: Channels, turns: Turns, layers: Sequence[Mask] | None = None
) -> core.StateGraph:
    """Return the graph of walks whose turns are all in one of ``layers`` (masks), or in any.

    A path chooses its layer with its first channel and keeps it; the layer is its priority. The
    states are (layer, input channel), then one start state per switch.
    """
    legal = np.ones((1, len(turns)), dtype=bool) if layers is None else np.stack(layers)
    return channels.core.turn_graph(turns.before, turns.after, legal)


def along_tree(channels: Channels, parent: Ints, turns: Turns) -> Mask:
    """Tell for each turn whether a path up the tree ``parent`` and then down takes it."""
    return channels.core.along_tree(turns.before, turns.after, parent)


def grow_acyclic(channels: int, turns: Turns, order: Ints, initial: Mask | None = None) -> Mask:
    """Add turns in ``order`` unless they close a cycle; tell for each turn whether it was added.

    The resulting set is maximal: no other turn can be added. The turns marked in ``initial``, which
    must be acyclic, are in the set from the start.
    """
    if initial is None:
        initial = np.zeros(len(turns), dtype=bool)
    return core.grow_acyclic(channels, turns.before, turns.after, order, initial)


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
