"""Runs that count less or not at all, in the sentences of reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from knotless.base.counting import counted
from knotless.base.printable import listed
from knotless_experiments.framework.columns import Row

SLOWER = 8.0
"""The ``--slow-down`` with which a row is measured again for which the machine was too busy."""
REPEATS = f"Only what was too slow for TCP's timers is measured again, with --slow-down {SLOWER:g}."
"""What reports say of repeated runs."""
_TCP_NOTICED = "timers of TCP may have noticed"
"""How the emulator's problem begins (core/emulator/src/report.rs)."""


def too_late_for_tcp(row: Row) -> bool:
    """Return whether a row is not valid because timers of TCP, in real time, may have noticed."""
    return not row["valid"] and any(_TCP_NOTICED in line for line in row["problems"])


def excluded(rows: Sequence[Row]) -> Iterator[str]:
    """Report how many runs were measured more slowly, and how many the findings leave out."""
    slower = [row for row in rows if row.get("slow_down") == SLOWER]
    if 0 < len(slower) < len(rows):
        yield (
            f"In {len(slower)} of {counted(len(rows), 'runs')} the machine was too busy for TCP,"
            f" whose timers run in real time: they were measured again with --slow-down {SLOWER:g}."
        )
    left_out = [row for row in rows if not row["valid"]]
    if not left_out:
        return
    runs = counted(len(rows), "runs")
    yield f"Not valid, and excluded from these findings: {len(left_out)} of {runs}."
    if late := sum(map(too_late_for_tcp, left_out)):
        yield (
            f"In {late} of them the machine was too busy for TCP even so: run them again with a"
            " larger --slow-down, or let the machine do less."
        )


def without_virtual_time(rows: Sequence[Row]) -> Iterator[str]:
    """Name the programs on hosts that had no virtual time; rows of older runs do not tell."""
    seen = dict.fromkeys(one for row in rows for one in row.get("real_time_programs") or ())
    if seen:
        yield (
            f"Note: {counted(len(seen), 'programs')} on hosts had no virtual time, so that what"
            f" they measured, and when they sent, depended on the machine: {listed(seen)}."
        )
