"""Sentences about invalid and repeated runs, for the reports of all experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def of_validity(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Report how many runs were repeated, and how many are excluded from the findings."""
    good = [row for row in rows if row["valid"]]
    if again := sum(len(row["earlier_attempts"]) for row in good):
        runs = "1 run was" if again == 1 else f"{again} runs were"
        yield f"{runs} repeated because the machine was too busy to be on time."
    if len(good) < len(rows):
        left_out = f"{len(rows) - len(good)} of {len(rows)} runs"
        yield f"Not valid, and excluded from these findings: {left_out}."
