"""Computation of figures from rows, each with its spread over the repeats.

The selectors at the end are those that ``claims.yaml`` names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from knotless.results.spread import Spread, spread_of
from knotless_experiments.framework.experiment import EMULATION
from knotless_experiments.reproduction.rows import Row, condition

Test = Callable[[Row], bool]


def where(**wanted: Any) -> Test:
    """Return a test for rows with these values; a tuple or list allows any of its values."""

    def test(row: Row) -> bool:
        return all(
            row.get(key) in value if isinstance(value, tuple | list) else row.get(key) == value
            for key, value in wanted.items()
        )

    return test


def cuts_through(row: Row) -> bool:
    """Tell whether switches of a row cut through; emulated ones can only store and forward."""
    return row["on"] == EMULATION or row["cut_through"] is not None


def number(row: Row, column: str) -> float:
    """Return a figure of a row; that of a list is its mean."""
    value = row[column]
    return fmean(value) if isinstance(value, list) else float(value)


def ratios(
    rows: Sequence[Row], value: str, above: Test, below: Test, free: tuple[str, ...]
) -> dict[tuple[Any, ...], list[float]]:
    """Return ``value`` of rows ``above`` divided by that of rows ``below``, for each condition.

    The two rows agree in every condition
    (:data:`knotless_experiments.reproduction.rows.CONDITIONS`) except the ``free`` ones, which are
    compared. The n-th row above is divided by the n-th row below, so there is one ratio per repeat.
    """
    upper: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    lower: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in rows:
        key = condition(row, free)
        if above(row):
            upper[key].append(number(row, value))
        if below(row):
            lower[key].append(number(row, value))
    return {
        key: [a / b for a, b in zip(values, lower[key], strict=False) if b]
        for key, values in upper.items()
        if lower.get(key)
    }


def best(cases: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the spread of the case with the largest mean."""
    filled = {key: values for key, values in cases.items() if values}
    return spread_of(list(max(filled.values(), key=fmean))) if filled else None


def worst(cases: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the spread of the case with the smallest mean."""
    filled = {key: values for key, values in cases.items() if values}
    return spread_of(list(min(filled.values(), key=fmean))) if filled else None


def larger(cases: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the spread of the case farthest from 1, as a ratio above 1."""
    both = {(key, 1): values for key, values in cases.items()}
    both |= {(key, -1): [1 / v for v in values] for key, values in cases.items()}
    return best(both)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of (x, y) by least squares; 0 if all x are equal."""
    mean_x, mean_y = fmean(x for x, _ in points), fmean(y for _, y in points)
    square = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / square if square else 0.0


def losing(cases: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the number of cases whose mean is below 1."""
    filled = [values for values in cases.values() if values]
    return spread_of([float(sum(fmean(values) < 1 for values in filled))]) if filled else None


def typical(cases: Mapping[tuple[Any, ...], Sequence[float]]) -> Spread | None:
    """Return the mean over all cases and repeats, with minimum and maximum.

    A repeat is the mean of all cases in it.
    """
    filled = [values for values in cases.values() if values]
    repeats = [fmean(each) for each in zip(*filled, strict=False)]
    return spread_of([value for values in filled for value in values], repeats)


Pick = Literal["typical", "best", "worst", "larger", "losing"]
PICKS: Mapping[str, Callable[[Mapping[tuple[Any, ...], Sequence[float]]], Spread | None]] = {
    "typical": typical,
    "best": best,
    "worst": worst,
    "larger": larger,
    "losing": losing,
}
"""The functions that make one figure of the ratios of all cases."""


def _conditions(wanted: dict[str, Any]) -> dict[str, Any]:
    for name, value in wanted.items():
        if isinstance(value, dict):
            raise ValueError(f"{name} must be a value or a list of values")
    return wanted


Conditions = Annotated[dict[str, Any], AfterValidator(_conditions)]
"""The values of columns; a list allows any of its values."""
Names = str | list[str]
"""A column, or several of which the first counts that the rows have."""


def _first(rows: Sequence[Row], names: Names) -> str:
    """Return the first of the columns that any row has, else the last."""
    if isinstance(names, str):
        return names
    filled = (name for name in names if any(row.get(name) is not None for row in rows))
    return next(filled, names[-1])


class Selector(BaseModel):
    """The rows of an experiment from which a figure is computed.

    ``starts`` are columns whose text begins so; ``switching``: ``cut-through`` takes simulated rows
    only of switches that cut through, see :func:`cuts_through`.
    """

    model_config = ConfigDict(extra="forbid")

    where: Conditions = {}
    starts: dict[str, str] = {}
    switching: Literal["any", "cut-through"] = "any"

    def chosen(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows from which the figure is computed."""
        test, starts = where(**self.where), self.starts.items()
        return [
            row
            for row in rows
            if test(row)
            and all(row[name].startswith(text) for name, text in starts)
            and (self.switching == "any" or cuts_through(row))
        ]

    def names(self) -> set[str]:
        """Return the columns that are used."""
        return {*self.where, *self.starts}

    def compute(self, rows: Sequence[Row]) -> Spread | None:
        """Return the figure, or None if the rows do not have it."""
        raise NotImplementedError


class Values(Selector):
    """The values of a column."""

    values: Names

    def names(self) -> set[str]:
        """Return the columns that are used."""
        return super().names() | ({self.values} if isinstance(self.values, str) else {*self.values})

    def compute(self, rows: Sequence[Row]) -> Spread | None:
        """Return the spread over all rows."""
        chosen = self.chosen(rows)
        column = _first(chosen, self.values)
        return spread_of([number(row, column) for row in chosen])


class Ratio(Selector):
    """A column of rows ``above`` over that of rows ``below``, see :func:`ratios`."""

    ratio: Names
    above: Conditions
    below: Conditions
    free: list[str]
    pick: Pick = "typical"

    def names(self) -> set[str]:
        """Return the columns that are used; ``free`` may name conditions that there are not."""
        columns = {self.ratio} if isinstance(self.ratio, str) else {*self.ratio}
        return super().names() | columns | {*self.above, *self.below}

    def compute(self, rows: Sequence[Row]) -> Spread | None:
        """Return one figure of the ratios of all cases."""
        above, below = where(**self.above), where(**self.below)
        chosen = [row for row in self.chosen(rows) if above(row) or below(row)]
        column = _first(chosen, self.ratio)
        return PICKS[self.pick](ratios(chosen, column, above, below, tuple(self.free)))


class Slope(Selector):
    """The growth of a column per unit of another one, by least squares, times a factor."""

    slope: str
    over: str
    times: float = 1.0

    def names(self) -> set[str]:
        """Return the columns that are used."""
        return super().names() | {self.slope, self.over}

    def compute(self, rows: Sequence[Row]) -> Spread | None:
        """Return the slope over all rows."""
        points = [(number(row, self.over), number(row, self.slope)) for row in self.chosen(rows)]
        return spread_of([self.times * slope(points)]) if points else None


SELECTORS: Mapping[str, type[Selector]] = {"values": Values, "ratio": Ratio, "slope": Slope}
"""The selectors by the key that names them."""
