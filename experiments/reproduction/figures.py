"""Figures out of rows: each with its spread over the repeats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from runs.spread import Spread, spread_of

Row = Mapping[str, Any]
Test = Callable[[Row], bool]


def where(**wanted: Any) -> Test:
    """Return a test for rows that have these values; of a tuple, any of them."""

    def test(row: Row) -> bool:
        return all(
            row.get(key) in value if isinstance(value, tuple) else row.get(key) == value
            for key, value in wanted.items()
        )

    return test


def ratios(
    rows: Sequence[Row], value: str, above: Test, below: Test, paired: Sequence[str]
) -> dict[tuple[Any, ...], list[float]]:
    """Return ``value`` of rows ``above`` over those ``below``, by the keys they are ``paired`` by.

    The n-th row of a case is divided by the n-th one of the other, so that there are as many
    ratios as both have repeats.
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
    """Return the spread of the case with the greatest mean."""
    known = {key: values for key, values in found.items() if values}
    return spread_of(list(max(known.values(), key=fmean))) if known else None


def typical(found: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the mean over all cases and repeats, with the least and the greatest."""
    return spread_of([value for values in found.values() for value in values])


def values(rows: Sequence[Row], value: Callable[[Row], float], test: Test) -> Spread | None:
    """Return the spread of a figure of some rows."""
    return spread_of([value(row) for row in rows if test(row)])
