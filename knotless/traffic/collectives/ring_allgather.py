"""ring-allgather: each rank gets the parts of all, around a ring.

Reference: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
2009.
"""

from __future__ import annotations

from knotless.traffic.collectives.collective import Collective, Transfers, parts, ring

NAME = "ring-allgather"


def make(ranks: int, size: int) -> Transfers:
    """Return the transfers; in each round every rank passes a part on to the next."""
    return ring(ranks, parts(NAME, ranks, size), ranks - 1)


COLLECTIVE = Collective(
    NAME, "each rank gets the parts of all, around a ring", "(N - 1) T(M / N)", make
)
