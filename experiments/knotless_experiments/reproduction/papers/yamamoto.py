"""Yamamoto et al.: what its claims compute beyond selectors."""

from __future__ import annotations

from collections.abc import Sequence

from knotless.results.spread import Spread, spread_of
from knotless_experiments.framework.routed import Routed
from knotless_experiments.reproduction.rows import Row
from knotless_experiments.reproduction.selectors import where
from knotless_experiments.studies.primitives.stages import STAGES

ARRIVED = "area written, answer posted"
OURS = STAGES[: STAGES.index(ARRIVED) + 1]
"""Our stages until the data is in the remote memory."""


def share_of_line(rows: Sequence[Row], kind: str, size: int) -> Spread | None:
    """Return the bandwidth of messages of ``size`` bytes as a share of the line's."""
    test = where(kind=kind, bytes=size)
    return spread_of(
        [
            float(row["mbit_per_s"] / Routed(row["fabric"]).fabric.hosts[0].rate_mbps)
            for row in rows
            if test(row)
        ]
    )


def share_of_push(rows: Sequence[Row], stage: str) -> Spread | None:
    """Return when a stage of ours ended, as a share of the time until the area is written."""
    test = where(operation="stages")
    return spread_of(
        [float(row["stages_us"][stage] / row["stages_us"][ARRIVED]) for row in rows if test(row)]
    )
