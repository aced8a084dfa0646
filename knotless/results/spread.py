"""The spread of repeated measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Spread:
    """Mean, minimum and maximum of a measure over the valid rows of a case, and their count."""

    mean: float
    least: float
    most: float
    count: int


def spread_of(values: Sequence[float]) -> Spread | None:
    """Return the spread of ``values``, or None if there are none."""
    if not values:
        return None
    return Spread(fmean(values), min(values), max(values), len(values))
