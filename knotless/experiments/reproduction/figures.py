"""Computation of figures from rows, each with its spread over the repeats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from knotless.experiments.reproduction.rows import Row, condition
from knotless.results.spread import Spread, spread_of

Test = Callable[[Row], bool]


def where(**wanted: Any) -> Test:
    """Return a test for rows with these values; a tuple allows any of its values."""

    def test(row: Row) -> bool:
        return all(
            row.get(key) in value if isinstance(value, tuple) else row.get(key) == value
            for key, value in wanted.items()
        )

    return test


def ratios(
    rows: Sequence[Row], value: str, above: Test, below: Test, free: tuple[str, ...]
) -> dict[tuple[Any, ...], list[float]]:
    """Return ``value`` of rows ``above`` divided by that of rows ``below``, for each condition.

    The two rows agree in every condition
    (:data:`knotless.experiments.reproduction.rows.CONDITIONS`) except the ``free`` ones, which are
    compared. The n-th row above is divided by the n-th row below, so there is one ratio per repeat.
    """
    upper: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    lower: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in rows:
        key = condition(row, free)
        if above(row):
            upper[key].append(row[value])
        if below(row):
            lower[key].append(row[value])
    return {
        key: [a / b for a, b in zip(values, lower[key], strict=False) if b]
        for key, values in upper.items()
        if lower.get(key)
    }


def best(found: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the spread of the case with the largest mean."""
    known = {key: values for key, values in found.items() if values}
    return spread_of(list(max(known.values(), key=fmean))) if known else None


def worst(found: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the spread of the case with the smallest mean."""
    known = {key: values for key, values in found.items() if values}
    return spread_of(list(min(known.values(), key=fmean))) if known else None


def larger(found: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the spread of the case farthest from 1, as a ratio above 1."""
    both = {(key, 1): values for key, values in found.items()}
    both |= {(key, -1): [1 / v for v in values] for key, values in found.items()}
    return best(both)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of (x, y) by least squares; 0 if all x are equal."""
    mean_x, mean_y = fmean(x for x, _ in points), fmean(y for _, y in points)
    square = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / square if square else 0.0


def losing(found: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the number of cases whose mean is below 1."""
    known = [values for values in found.values() if values]
    return spread_of([float(sum(fmean(values) < 1 for values in known))]) if known else None


def typical(found: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the mean over all cases and repeats, with minimum and maximum."""
    return spread_of([value for values in found.values() for value in values])


def values(rows: Sequence[Row], value: Callable[[Row], float], test: Test) -> Spread | None:
    """Return the spread of a figure of the rows that pass the test."""
    return spread_of([value(row) for row in rows if test(row)])
