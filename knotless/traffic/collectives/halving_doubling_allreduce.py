"""halving-doubling-allreduce: reduce-scatter by halving, then all-gather by doubling.

Reference: Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in
MPICH, 2005.
"""

from __future__ import annotations

import numpy as np

from knotless.traffic.collectives.collective import (
    Collective,
    CollectiveError,
    Transfers,
    parts,
    transfers,
)

NAME = "halving-doubling-allreduce"


def make(ranks: int, size: int) -> Transfers:
    """Return the transfers; in each round every rank exchanges a block with another.

    Raises CollectiveError unless the number of ranks is a power of two.
    """
    sizes = parts(NAME, ranks, size)
    if ranks & (ranks - 1):
        raise CollectiveError(f"{NAME} needs a power of two hosts, not {ranks}")
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
    rank = np.arange(ranks)
    distances = [ranks >> level for level in range(1, ranks.bit_length())]
    rounds = []
    for distance in distances:
        # The half of its block that the partner keeps.
        begin = (rank ^ distance) & ~(distance - 1)
        rounds.append((rank, rank ^ distance, ends[begin + distance] - ends[begin]))
    for distance in reversed(distances):
        begin = rank & ~(distance - 1)
        rounds.append((rank, rank ^ distance, ends[begin + distance] - ends[begin]))
    partners = [*distances, *reversed(distances)]
    # A block is complete only when the parts of all rounds before have arrived.
    needs = [
        (number * ranks + rank, before * ranks + (rank ^ partners[before]))
        for number in range(1, len(rounds))
        for before in range(number)
    ]
    return transfers(ranks, rounds, needs)


COLLECTIVE = Collective(
    NAME,
    "reduce-scatter by halving, then all-gather by doubling",
    "2 (T(M / 2) + T(M / 4) + ... + T(M / N))",
    make,
)
