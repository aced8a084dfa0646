"""Spanning trees: the breadth-first tree of engines with a root, and trees of broadcasts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless.routing.graphs.channels import Channels, Ints


@dataclass(frozen=True)
class SpanningTree:
    """A tree of shortest paths from a root; ties prefer lower ports, then earlier switches.

    Attributes
    ----------
    channels : Channels
        The channels of the fabric.
    root : int
        The index of the root switch.
    parent : array of int32, shape (switches,)
        The channel that enters each switch, -1 for the root.
    level : array of int32, shape (switches,)
        The hops from the root.

    """

    channels: Channels
    root: int
    parent: Ints
    level: Ints

    def rises(self) -> NDArray[np.bool_]:
        """Tell for each channel whether it goes up: to the lower (level, switch index)."""
        return self.channels.core.rises(self.level)

    def preorder(self) -> Ints:
        """Return the position of each switch in preorder, parents before children."""
        return self.channels.core.preorder(self.root, self.parent, self.level)

    def from_everywhere(self) -> Ints:
        """Return (switches, switches): the flood from each switch, up the tree and then down.

        Entry [u, v] is the channel that enters v when u floods.
        """
        return self.channels.core.flood(self.root, self.parent, self.level)


def spanning_tree(channels: Channels, root: int) -> SpanningTree:
    """Return the breadth-first tree from the switch with index ``root``.

    Examples
    --------
    >>> from knotless.routing.graphs.channels import channels_of
    >>> from knotless.topologies import load
    >>> spanning_tree(channels_of(load("ring,4")), 0).level.tolist()
    [0, 1, 2, 1]

    """
    roots = np.array([root], dtype=np.int32)
    parent, level = channels.core.breadth_first(roots)
    return SpanningTree(channels, root, parent, level)


def pruned(
    channels: Channels,
    trees: Ints,
    receivers: NDArray[np.bool_],
    sources: NDArray[np.bool_] | None = None,
) -> Ints:
    """Return ``trees`` without the branches that reach no ``receivers`` switch.

    trees : (switches, switches) entry [u, v] is the channel on which the tree of u enters v,
        or -1 if it does not.
    wanted, sources : (switches,) trees of switches that are not ``sources`` are removed.
    """
    sources = np.ones(len(receivers), dtype=bool) if sources is None else sources
    return channels.core.pruned(trees, sources, receivers)
