"""Broadcast and multicast trees: one tree of channels per source switch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless.routing.graphs.channels import Channels, Ints


def pruned(
    channels: Channels,
    trees: Ints,
    wanted: NDArray[np.bool_],
    sources: NDArray[np.bool_] | None = None,
) -> Ints:
    """Return ``trees`` without the branches that reach no ``wanted`` switch.

    trees : (switches, switches) entry [u, v] is the channel on which the tree of u enters v,
        or -1 if it does not.
    wanted, sources : (switches,) trees of switches that are not ``sources`` are removed.
    """
    sources = np.ones(len(wanted), dtype=bool) if sources is None else sources
    return channels.core.pruned(trees, sources, wanted)
