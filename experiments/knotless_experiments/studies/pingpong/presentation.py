"""The report of the ping-pong experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knotless_experiments.framework.experiment import Plot, Presentation
from knotless_experiments.studies.pingpong.columns import COLUMNS


def present(
    run: Mapping[str, Any], _samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Return the presentation of a run."""
    rows = run["rows"]
    plots = []
    if draw and rows:
        from knotless_experiments.workloads.messages import figures

        caption = "Half a round trip, and the one-way rate, over the size of a message."
        plots.append(Plot("over-size", caption, figures.over_size(rows, "kind")))
    return Presentation(
        title="Messages between two hosts",
        lead=(
            "Half a round trip between two processes on two hosts of a fabric, and one-way rates "
            "with at most 64 messages in flight; UDP for comparison. In simulation a processor is "
            "busy for o_s and o_r with each message of any kind."
        ),
        sentences=[],
        columns=COLUMNS,
        rows=rows,
        plots=plots,
    )
