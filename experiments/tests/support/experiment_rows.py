"""The rows of a campaign that needs no running fabric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knotless_experiments.framework.experiment import Common, Experiment

Rows = list[dict[str, Any]]


class Quiet:
    """Progress for nobody."""

    def begin(self, what: str) -> None:
        assert what

    def advance(self) -> None:
        pass


def rows_of(experiment: Experiment, common: Common, **options: Any) -> Rows:
    rows: Rows = []

    def record(row: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]) -> None:
        assert all(set(sample) <= set(experiment.columns.sample_types) for sample in samples)
        rows.append(dict(row))

    experiment.prepare(common, options).run(record, Quiet())
    return rows
