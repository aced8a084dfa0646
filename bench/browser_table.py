"""The table of docs/web.md, of a run that ``tests/measure_page.py`` made in Chromium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.entry import machine_line

REPEATS = 10
"""How many deadlocks the page has to show."""


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the lines of the table of a stored run."""
    lines = [
        "| Chromium | frames/s | frame ms | script ms | draw ms | CPU ms: page | compositing |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in run["replay"].items():
        used = row["processor_ms"]
        lines.append(
            f"| {name} | {row['frames_per_s']} | {row['frame_ms']} | {row['script_ms']}"
            f" | {row['draw_ms']} | {used['renderer']} | {used['gpu-process']} |"
        )
    live = run["live"]
    return [
        *lines,
        "",
        f"A deadlock is red {live['red_after_ms_median']} ms after its detection (median of"
        f" {REPEATS}; longest {live['red_after_ms_longest']} ms). The server of 16 switches"
        f" takes {live['server_share_of_a_core']:.3f} of a core. {machine_line(run)}",
    ]
