"""The report of the LogP experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knotless_experiments.framework.experiment import Presentation
from knotless_experiments.messages.logp import ALGORITHMS
from knotless_experiments.studies.logp.columns import COLUMNS


def present(
    run: Mapping[str, Any], _samples: Sequence[Mapping[str, Any]], _draw: bool
) -> Presentation:
    """Return the presentation of a run."""
    rows = run["rows"]
    sentences = []
    if rows:
        count = len(rows)
        means = {
            name: sum(row["predicted_us"][name] for row in rows) / count for name in ALGORITHMS
        }
        text = ", ".join(f"{name} {mean:.1f}" for name, mean in means.items())
        sentences.append(f"Barriers of all {rows[0]['hosts']} hosts by the formulas (us): {text}.")
    return Presentation(
        title="LogP",
        lead=(
            "What a message costs between two hosts: o_s and o_r, how long processors are busy; "
            "g, the least time between two messages; L, the rest of half a round trip."
        ),
        sentences=sentences,
        columns=COLUMNS,
        rows=rows,
        notes=(
            (
                "o_s, o_r, g",
                "In simulation these are given (--send, --receive, --gap, --interrupt).",
            ),
        ),
    )
