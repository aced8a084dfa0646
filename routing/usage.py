"""What a plan's unicasts and broadcasts use: channel loads and channel dependencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.cdg import dependencies
from routing.channels import Channels, Ints
from routing.routes import ExplicitRoutes, Routes, TableRoutes


@dataclass(frozen=True)
class Usage:
    """Loads and dependencies.

    loads : (channels,) the paths between hosts that take each channel.
    longest : how many channels the longest path between hosts has.
    before, after : the edges of the channel dependency graph; an edge may come more than once.
    """

    loads: NDArray[np.int64]
    longest: int
    before: Ints
    after: Ints


def usage(channels: Channels, routes: Routes, senders: Ints, receivers: Ints) -> Usage:
    """Return what ``routes`` use; ``senders`` are the hosts of each row, ``receivers`` of a switch.

    The paths of tables are not written out.
    """
    if isinstance(routes, TableRoutes):
        trees = (routes.tree_channels, routes.tree_priorities)
        return Usage(*routes.core.usage(senders, receivers, *trees))
    return _usage_of_paths(channels, routes, senders, receivers)


def _usage_of_paths(
    channels: Channels, routes: ExplicitRoutes, senders: Ints, receivers: Ints
) -> Usage:
    taken = routes.channels
    pairs = (senders[:, None] * receivers[None, :])[:, :, None]
    weights = np.broadcast_to(pairs, taken.shape)[taken >= 0]
    counted = np.bincount(taken[taken >= 0], weights=weights, minlength=len(channels))
    longest = (taken[:, receivers > 0] >= 0).sum(axis=2).max(initial=0)
    edges = dependencies(channels, routes, receivers)
    return Usage(counted.astype(np.int64), int(longest), *edges)
