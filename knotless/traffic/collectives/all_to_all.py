"""all-to-all: each rank sends a part of its data to every other rank, as among experts.

Rank r sends first to r + 1, then to r + 2, and so on, so that at first no two ranks send to one.
"""

from __future__ import annotations

import numpy as np

from knotless.traffic.collectives.collective import Collective, Transfers, parts, transfers

NAME = "all-to-all"


def make(ranks: int, size: int) -> Transfers:
    """Return the transfers, which wait for nothing."""
    sizes = parts(NAME, ranks, size)
    rank = np.tile(np.arange(ranks), ranks - 1)
    to = (rank + np.repeat(np.arange(1, ranks), ranks)) % ranks
    return transfers(ranks, [(rank, to, sizes[to])], [])


COLLECTIVE = Collective(
    NAME,
    "each rank sends a part to every other",
    "the line's time for N - 1 parts of M / N, and the rest of the path of the last packet",
    make,
)
