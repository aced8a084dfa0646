"""Collective operations as transfers between ranks, one module each.

To add one, add a module to this package that defines a :class:`Collective`.
"""

from __future__ import annotations

from knotless.traffic.collectives.collective import (
    Collective,
    CollectiveError,
    Transfers,
    collective_named,
    collectives,
    side_by_side,
)

__all__ = [
    "Collective",
    "CollectiveError",
    "Transfers",
    "collective_named",
    "collectives",
    "side_by_side",
]
