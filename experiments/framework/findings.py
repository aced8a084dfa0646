"""What the reports of all experiments say of runs that do not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def of_validity(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say how many runs were made again, and how many are left out of the findings."""
    good = [row for row in rows if row["valid"]]
    if again := sum(len(row["earlier_attempts"]) for row in good):
        runs = "1 run was" if again == 1 else f"{again} runs were"
        yield f"{runs} made again because the machine was too busy to be on time."
    if len(good) < len(rows):
        left_out = f"{len(rows) - len(good)} of {len(rows)} runs"
        yield f"Not valid, and left out of these findings: {left_out}."
