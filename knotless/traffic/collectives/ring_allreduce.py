"""ring-allreduce: reduce-scatter around a ring, then all-gather.

Reference: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
2009.
"""

from __future__ import annotations

from knotless.traffic.collectives.collective import Collective, Transfers, parts, ring

NAME = "ring-allreduce"


def make(ranks: int, size: int) -> Transfers:
    """Return the transfers; in each round every rank passes a part on to the next."""
    return ring(ranks, parts(NAME, ranks, size), 2 * (ranks - 1))


COLLECTIVE = Collective(
    NAME, "reduce-scatter around a ring, then all-gather", "2 (N - 1) T(M / N)", make
)
