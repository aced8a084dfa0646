"""tree-allreduce: all data to rank 0 along a binomial tree, and the sum back.

The parent of a rank is that rank without its lowest bit. Reference: Thakur, Rabenseifner, Gropp:
Optimization of collective communication operations in MPICH, 2005.
"""

from __future__ import annotations

import numpy as np

from knotless.traffic.collectives.collective import Collective, Transfers, parts, transfers

NAME = "tree-allreduce"


def make(ranks: int, size: int) -> Transfers:
    """Return the transfers: each rank sends all its data when all its children have sent theirs."""
    parts(NAME, ranks, size)
    distances = [1 << level for level in range((ranks - 1).bit_length())]
    upward = [np.arange(distance, ranks, 2 * distance) for distance in distances]
    downward = [(distance, upward[level]) for level, distance in reversed([*enumerate(distances)])]
    rounds = [
        *((child, child - distance) for distance, child in zip(distances, upward, strict=True)),
        *((child - distance, child) for distance, child in downward),
    ]
    received: dict[int, list[int]] = {}
    pairs: list[tuple[int, int]] = []
    number = 0
    for place, (sources, destinations) in enumerate(rounds):
        arriving = []
        for source, destination in zip(sources.tolist(), destinations.tolist(), strict=True):
            needed = received.get(source, [])
            # Downward, all but the root need what their parent sends, which came last.
            root = place < len(distances) or source == 0
            pairs += [(number, other) for other in (needed if root else needed[-1:])]
            arriving.append((destination, number))
            number += 1
        for destination, other in arriving:
            received.setdefault(destination, []).append(other)
    needs = np.array(pairs, dtype=np.uint32).reshape(-1, 2)
    return transfers(
        ranks,
        [(source, to, np.full(len(source), size)) for source, to in rounds],
        [(needs[:, 0], needs[:, 1])],
    )


COLLECTIVE = Collective(
    NAME,
    "to rank 0 along a binomial tree, and back",
    "2 log2(N) T(M) for a power of two",
    make,
)
