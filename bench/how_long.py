"""The table of docs/controller.md: how long failures last, of the runs of repairs and takeovers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FAILURES = {"carrier": "a link loses its carrier", "silent": "a link loses all frames silently"}
_LOADS = {"idle": "little", "half": "half of what the emulator carries"}


def table_of(runs: Mapping[str, Any]) -> list[str]:
    """Return the lines of the table; ``runs`` has the stored runs ``repair`` and ``takeover``.

    Rows of fabrics that are attacked, or have backup paths, are left out.
    """
    lines = [
        "| what happens | fabric | load | known after, median | longest"
        " | over after, median | p99 | processor |",
        "|---" * 8 + "|",
    ]
    for row in runs["repair"]["rows"]:
        if row["attack"] or row["protection"] != "none":
            continue
        found, over = row["found_ms"], row["repaired_ms"]
        soon = ", repairs not planned ahead" if row["soon"] else ""
        lines.append(
            f"| {_FAILURES[row['cut']]} | `{row['fabric']}` | {_LOADS[row['load']]}{soon}"
            f" | {found['median']:.0f} ms | {found['max']:.0f} ms"
            f" | {over['median']:,.0f} ms | {over['p99']:,.0f} ms | {row['cpu']} |"
        )
    run = runs["takeover"]
    over = run["taken_over_ms"]
    lines.append(
        f"| the active controller is killed | `{run['fabric']}` | little | | |"
        f" {over['median']:,.0f} ms | {over['p99']:,.0f} ms | {run['machine']['cpu']} |"
    )
    return lines
