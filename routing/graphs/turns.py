"""Turns, and the largest sets of them that close no cycle.

A turn is a pair of channels, the second of which leaves the switch that the first enters.
Paths that use only turns of a set without a cycle cannot deadlock on one virtual channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless_core import graph as core
from routing.graphs.channels import Channels, Ints

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Turns:
    """Turns, sorted by (before, after): the channels of each, as arrays of equal length."""

    before: Ints
    after: Ints

    def __len__(self) -> int:
        """Return the number of turns."""
        return len(self.before)

    def only(self, mask: Mask) -> Turns:
        """Return the turns where ``mask`` is true."""
        return Turns(self.before[mask], self.after[mask])


def all_turns(channels: Channels) -> Turns:
    """Return every turn that does not go back to the switch that it came from."""
    return Turns(*channels.core.all_turns())


def turn_graph(
    channels: Channels, turns: Turns, layers: Sequence[Mask] | None = None
) -> core.StateGraph:
    """Return the walks that take the turns of one of ``layers`` (masks), or of all in one layer.

    A path chooses its layer with its first channel and keeps it: the priority. The states are
    (layer, came by channel), then one for each start.
    """
    legal = np.ones((1, len(turns)), dtype=bool) if layers is None else np.stack(layers)
    return channels.core.turn_graph(turns.before, turns.after, legal)


def along_tree(channels: Channels, parent: Ints, turns: Turns) -> Mask:
    """Return which turns paths take that go up the tree ``parent`` and then down it."""
    return channels.core.along_tree(turns.before, turns.after, parent)


def grow_acyclic(channels: int, turns: Turns, order: Ints, given: Mask | None = None) -> Mask:
    """Return which turns are in the set that taking them in ``order`` gives.

    A turn is left out when with those taken before it would close a cycle; so the set is a
    largest one: no other turn can be added. ``given`` marks turns, without a cycle, that are
    in it from the start.
    """
    if given is None:
        given = np.zeros(len(turns), dtype=bool)
    return core.grow_acyclic(channels, turns.before, turns.after, order, given)
