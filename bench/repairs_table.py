"""The table of docs/decisions/repair.md, of a run of ``tests/prove_repairs.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOVED, MADE_ROOM, NEW_PLAN = ("none", "repaired"), ("extended",), ("replanned", "updown")
"""Kinds of repairs: only affected paths moved, others made room, a new plan was needed."""


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the lines of the table of a stored run, and how many repairs it has."""
    rows = run["rows"]
    groups = [row[of] for row in rows for of in ("default", "tree", "known")]
    total = sum(sum(group["kinds"].values()) for group in groups)
    return [
        f"Repaired plans of {len(rows)} engines: {total:,}.",
        "",
        "| engine | generated | generated, `tree` VLANs | known fabrics | pairs moved"
        " | by a new plan | stretch | rules changed per switch |",
        "|---" * 8 + "|",
        *(_line(row) for row in sorted(rows, key=lambda row: str(row["engine"]))),
    ]


def _line(row: Mapping[str, Any]) -> str:
    known = row["known"]
    cells = [
        f"`{row['engine']}`",
        *(_counts(row[of]["kinds"]) for of in ("default", "tree", "known")),
        f"{100 * known['moved']:.1f} %",
        f"{100 * known['moved_by_new_plan']:.1f} %",
        f"{known['stretch']:.2f}",
        f"{known['rules_changed_per_switch']:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _counts(kinds: Mapping[str, int]) -> str:
    groups = (MOVED, MADE_ROOM, NEW_PLAN)
    return ", ".join(str(sum(kinds.get(kind, 0) for kind in group)) for group in groups)
