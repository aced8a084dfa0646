"""tree-broadcast: all data of rank 0 to every rank, along a binomial tree.

The parent of a rank is that rank without its lowest bit. Reference: Thakur, Rabenseifner, Gropp:
Optimization of collective communication operations in MPICH, 2005.
"""

from __future__ import annotations

import numpy as np

from knotless.traffic.collectives.collective import Collective, Transfers, parts, transfers

NAME = "tree-broadcast"


def make(ranks: int, size: int) -> Transfers:
    """Return the transfers: each rank passes on what its parent has sent, far children first."""
    parts(NAME, ranks, size)
    distances = [1 << level for level in reversed(range((ranks - 1).bit_length()))]
    children = [np.arange(distance, ranks, 2 * distance) for distance in distances]
    # The number of the transfer to each rank; rank 0 needs none.
    arrival = np.zeros(ranks, dtype=np.int64)
    order = np.concatenate(children)
    arrival[order] = np.arange(len(order))
    parents = order & (order - 1)
    waits = np.flatnonzero(parents)
    return transfers(
        ranks,
        [(child & (child - 1), child, np.full(len(child), size)) for child in children],
        [(waits, arrival[parents[waits]])],
    )


COLLECTIVE = Collective(
    NAME,
    "from rank 0 to all along a binomial tree",
    "log2(N) T(M) for a power of two",
    make,
)
