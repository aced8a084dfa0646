"""Several runs of one experiment, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from experiments.framework.experiment import Experiment, ExperimentError
from runs.spread import Spread, spread_of

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """A case and one of its figures; a spread for each run, None where a run has none."""

    case: Mapping[str, Any]
    measure: str
    spreads: tuple[Spread | None, ...]

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Each run's mean over that of the first run."""
        first = self.spreads[0]
        return tuple(
            spread.mean / first.mean if spread and first and first.mean else None
            for spread in self.spreads
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        spreads = [None if spread is None else vars(spread) for spread in self.spreads]
        head = {"case": dict(self.case), "measure": self.measure}
        return {**head, "runs": spreads, "ratios": list(self.ratios)}


def figure(row: Mapping[str, Any], measure: str) -> float | None:
    """Return a figure of a row: a number, or the mean of a list of them; None for none."""
    value = row.get(measure)
    if isinstance(value, list):
        return fmean(value) if value else None
    return float(value) if isinstance(value, int | float) else None


def compare(experiment: Experiment, runs: Sequence[Run]) -> list[Line]:
    """Return a line for each case and figure that any of the runs has.

    Rows that are not valid are left out. Raises ExperimentError for runs of other experiments,
    or where the experiment does not say what is to be compared.
    """
    for run in runs:
        if run["experiment"] != experiment.name:
            raise ExperimentError(
                f"run {run['id']} is of {run['experiment']}, not of {experiment.name}: "
                "only runs of one experiment can be compared"
            )
    if not experiment.identity:
        raise ExperimentError(f"runs of {experiment.name} have nothing to compare them by")
    found: dict[tuple[Any, ...], list[dict[str, list[float]]]] = {}
    for place, run in enumerate(runs):
        for row in run["rows"]:
            key = tuple(row.get(name) for name in experiment.identity)
            figures = found.setdefault(key, [{} for _ in runs])[place]
            for measure in experiment.measures:
                value = figure(row, measure)
                if row["valid"] and value is not None:
                    figures.setdefault(measure, []).append(value)
    return [
        Line(
            dict(zip(experiment.identity, key, strict=True)),
            measure,
            tuple(spread_of(figures.get(measure, [])) for figures in of_runs),
        )
        for key, of_runs in found.items()
        for measure in experiment.measures
        if any(measure in figures for figures in of_runs)
    ]
