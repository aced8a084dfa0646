"""Trees of channels, one for each source switch, by which broadcasts and multicasts spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routing.channels import Channels, Ints


def pruned(channels: Channels, trees: Ints, wanted: NDArray[np.bool_]) -> Ints:
    """Return ``trees`` without the branches that lead to no ``wanted`` switch.

    trees : (switches, switches) entry [u, v] is the channel by which the tree of u enters v,
        -1 where it does not.
    wanted : (switches,)
    """
    needed = (trees >= 0) & wanted[None, :]
    while True:
        source, switch = np.nonzero(needed)
        parent = channels.tail[trees[source, switch]]
        inner = trees[source, parent] >= 0
        more = needed.copy()
        more[source[inner], parent[inner]] = True
        if np.array_equal(more, needed):
            return np.where(needed, trees, -1).astype(np.int32)
        needed = more
