"""The spread of repeated measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean, stdev

T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""The 97.5 % quantiles of Student's t distribution for 1 to 30 degrees of freedom."""


@dataclass(frozen=True)
class Spread:
    """Mean, minimum and maximum of a measure over the valid rows of a case, and their count.

    ``half_width`` is half of the 95 % interval of the mean over repeats; None without repeats.
    """

    mean: float
    least: float
    most: float
    count: int
    half_width: float | None = field(default=None, compare=False)


def half_width_95(repeats: Sequence[float]) -> float | None:
    """Return half of the 95 % interval of a mean by Student's t; None for fewer than two repeats.

    Examples
    --------
    >>> round(half_width_95([1.0, 2.0, 3.0]), 3)
    2.484

    """
    if len(repeats) < 2:
        return None
    t = T_95[min(len(repeats) - 1, len(T_95)) - 1]
    return t * stdev(repeats) / sqrt(len(repeats))


def spread_of(values: Sequence[float], repeats: Sequence[float] | None = None) -> Spread | None:
    """Return the spread of ``values``, or None if there are none.

    ``repeats`` are the means of each repeat where ``values`` are of several cases.
    """
    if not values:
        return None
    half_width = half_width_95(values if repeats is None else repeats)
    return Spread(fmean(values), min(values), max(values), len(values), half_width)
