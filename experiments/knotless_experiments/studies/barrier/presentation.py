"""The report of the barrier experiment: sentences, table and plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knotless.base.counting import counted
from knotless_experiments.framework.experiment import Plot, Presentation
from knotless_experiments.workloads.barriers.columns import COLUMNS, off

Row = Mapping[str, Any]

TITLE = "Barriers"
LEAD = (
    "Every process enters a barrier, and no process leaves before all have arrived. The measured "
    "time of a barrier is from entering to leaving, over all processes and barriers."
)
NOTES = tuple(
    (column.heading, column.meaning)
    for column in COLUMNS.shown
    if column.name in ("predicted_us", "off", "one_way_us", "switches", "asked")
)


def sentences(rows: Sequence[Row]) -> list[str]:
    """Return the findings of the valid rows."""
    valid = [row for row in rows if row["valid"]]
    findings = []
    for where, same in _testbeds(valid):
        by_algorithm = _means(same, "algorithm")
        if len(by_algorithm) > 1:
            order = " < ".join(f"{name} {mean:.1f}" for name, mean in by_algorithm)
            findings.append(f"{where}, by algorithm (us): {order}.")
        for algorithm in dict.fromkeys(row["algorithm"] for row in same):
            mine = [row for row in same if row["algorithm"] == algorithm]
            by_engine = _means(mine, "engine", "vcs")
            if len(by_engine) > 1:
                order = " < ".join(f"{name} {mean:.1f}" for name, mean in by_engine)
                findings.append(f"{where}, {algorithm} by routing (us): {order}.")
    if valid:
        worst = max(valid, key=lambda row: abs(off(row)))
        findings.append(
            f"Farthest from its formula: {worst['algorithm']} on {worst['fabric']},"
            f" {100 * off(worst):+.1f} %."
        )
    if len(valid) < len(rows):
        findings.append(
            f"Not valid (see remarks): {len(rows) - len(valid)} of {counted(len(rows), 'runs')}."
        )
    return findings


def _testbeds(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return the rows grouped by what is comparable: the same hosts on the same fabric."""
    by_testbed: dict[str, list[Row]] = {}
    for row in rows:
        twice = " on two networks" if row["networks"] == 2 else ""
        by_testbed.setdefault(f"{row['fabric']}, {row['hosts']} hosts{twice}", []).append(row)
    return list(by_testbed.items())


def _means(rows: Sequence[Row], *keys: str) -> list[tuple[str, float]]:
    """Return (name, mean of the means) of the rows by ``keys``, fastest first."""
    means: dict[str, list[float]] = {}
    for row in rows:
        name = ":".join(str(row[key]) for key in keys)
        means.setdefault(name, []).append(row["mean_us"])
    averaged = [(name, sum(times_us) / len(times_us)) for name, times_us in means.items()]
    return sorted(averaged, key=lambda pair: (pair[1], pair[0]))


def present(
    run: Mapping[str, Any], _samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Return the presentation of a run."""
    rows = run["rows"]
    plots = []
    if draw and rows:
        from knotless_experiments.studies.barrier import figures

        plots.append(
            Plot("barriers", "Barrier time over hosts; crosses are LogP's.", figures.by_hosts(rows))
        )
    return Presentation(
        title=TITLE,
        lead=LEAD,
        sentences=sentences(rows),
        columns=COLUMNS,
        rows=rows,
        notes=NOTES,
        plots=plots,
    )
