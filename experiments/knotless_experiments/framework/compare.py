"""Comparison of several runs of one experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from knotless.results.spread import Spread, spread_of
from knotless_experiments.framework.experiment import Experiment, ExperimentError

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """A case and one of its measures; one spread per run, None if a run lacks it."""

    case: Mapping[str, Any]
    measure: str
    spreads: tuple[Spread | None, ...]

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """The mean of each run divided by that of the first run."""
        first = self.spreads[0]
        return tuple(
            spread.mean / first.mean if spread and first and first.mean else None
            for spread in self.spreads
        )

    def as_json(self) -> dict[str, Any]:
        """Return the line as a value for :func:`json.dumps`."""
        spreads = [None if spread is None else vars(spread) for spread in self.spreads]
        head = {"case": dict(self.case), "measure": self.measure}
        return {**head, "runs": spreads, "ratios": list(self.ratios)}


def figure(row: Mapping[str, Any], measure: str) -> float | None:
    """Return a measure of a row: a number, or the mean of a list; None if missing."""
    value = row.get(measure)
    if isinstance(value, list):
        return fmean(value) if value else None
    return float(value) if isinstance(value, int | float) else None


def compare(experiment: Experiment, runs: Sequence[Run]) -> list[Line]:
    """Return a line for each case and measure in any of the runs.

    Invalid rows are omitted. Raises ExperimentError for runs of other experiments, or if the
    experiment does not define measures.
    """
    for run in runs:
        if run["experiment"] != experiment.name:
            raise ExperimentError(
                f"run {run['id']} is of {run['experiment']}, not of {experiment.name}: "
                "only runs of one experiment can be compared"
            )
    if not experiment.columns.identity:
        raise ExperimentError(f"runs of {experiment.name} have no measures to compare")
    by_case: dict[tuple[Any, ...], list[dict[str, list[float]]]] = {}
    for place, run in enumerate(runs):
        for row in run["rows"]:
            key = tuple(row.get(name) for name in experiment.columns.identity)
            measured = by_case.setdefault(key, [{} for _ in runs])[place]
            for measure in experiment.columns.measures:
                value = figure(row, measure)
                if row["valid"] and value is not None:
                    measured.setdefault(measure, []).append(value)
    return [
        Line(
            dict(zip(experiment.columns.identity, key, strict=True)),
            measure,
            tuple(spread_of(measured.get(measure, [])) for measured in of_runs),
        )
        for key, of_runs in by_case.items()
        for measure in experiment.columns.measures
        if any(measure in measured for measured in of_runs)
    ]
