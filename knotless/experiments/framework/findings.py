"""What the reports of all experiments say about the validity and the pace of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def of_validity(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Report how many runs are excluded from the findings."""
    good = [row for row in rows if row["valid"]]
    if len(good) < len(rows):
        left_out = f"{len(rows) - len(good)} of {len(rows)} runs"
        yield f"Not valid, and excluded from these findings: {left_out}."
