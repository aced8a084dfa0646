"""The report of the primitives experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knotless_experiments.framework.experiment import Plot, Presentation
from knotless_experiments.studies.primitives.columns import COLUMNS


def present(
    run: Mapping[str, Any], _samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Return the presentation of a run."""
    staged = [row for row in run["rows"] if row["operation"] == "stages"]
    over_size = [row for row in run["rows"] if row["operation"] != "stages"]
    sentences = [
        f"A {row['bytes']}-byte push, us since its call: "
        + "; ".join(f"{stage} {us:.2f}" for stage, us in row["stages_us"].items())
        + "."
        for row in staged
    ]
    plots = []
    if draw:
        from knotless_experiments.workloads.messages import figures

        if over_size:
            caption = "From the call until completion is known, over the bytes moved."
            plots.append(Plot("over-size", caption, figures.over_size(over_size, "operation")))
        if staged:
            caption = f"Start of each stage of a {staged[0]['bytes']}-byte push."
            plots.append(Plot("stages", caption, figures.stages(staged[0])))
    return Presentation(
        title="Operations on remote memory",
        lead=(
            "From the call until the operation is known to be complete at the other process, one "
            "operation at a time, between two hosts of a fabric."
        ),
        sentences=sentences,
        columns=COLUMNS,
        rows=over_size,
        plots=plots,
    )
