"""Computation of figures from rows, each with its spread over the repeats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from runs.spread import Spread, spread_of

Row = Mapping[str, Any]
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
    rows: Sequence[Row], value: str, above: Test, below: Test, paired: Sequence[str]
) -> dict[tuple[Any, ...], list[float]]:
    """Return ``value`` of rows ``above`` divided by that of rows ``below``, grouped by ``paired``.

    The n-th row above is divided by the n-th row below with the same ``paired`` values, so there
    is one ratio per repeat.
    """
    upper: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    lower: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in rows:
        key = tuple(row.get(name) for name in paired)
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


def typical(found: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the mean over all cases and repeats, with minimum and maximum."""
    return spread_of([value for values in found.values() for value in values])


def values(rows: Sequence[Row], value: Callable[[Row], float], test: Test) -> Spread | None:
    """Return the spread of a figure of the rows that pass the test."""
    return spread_of([value(row) for row in rows if test(row)])
