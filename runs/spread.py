"""The spread of a figure that was measured several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Spread:
    """The mean of a figure over the valid rows of a case, its least and greatest, and how many."""

    mean: float
    least: float
    most: float
    count: int


def spread_of(values: Sequence[float]) -> Spread | None:
    """Return the spread of some values, None of none."""
    if not values:
        return None
    return Spread(fmean(values), min(values), max(values), len(values))
