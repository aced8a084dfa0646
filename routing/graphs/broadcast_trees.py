"""Trees of channels, one for each source switch, by which broadcasts and multicasts spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routing.graphs.channels import Channels, Ints


def pruned(
    channels: Channels,
    trees: Ints,
    wanted: NDArray[np.bool_],
    sources: NDArray[np.bool_] | None = None,
) -> Ints:
    """Return ``trees`` without the branches that lead to no ``wanted`` switch.

    trees : (switches, switches) entry [u, v] is the channel by which the tree of u enters v,
        -1 where it does not.
    wanted, sources : (switches,) trees of other switches than ``sources`` are left out.
    """
    sources = np.ones(len(wanted), dtype=bool) if sources is None else sources
    return channels.core.pruned(trees, sources, wanted)
