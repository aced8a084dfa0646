"""Tables of repairs on pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.support.entry import machine_line
from bench.support.repair_figures import PHASES

MOVED, MADE_ROOM, NEW_PLAN = ("none", "repaired"), ("extended",), ("replanned", "updown")
"""Kinds of repairs: only affected paths moved, others made room, a new plan was needed."""
_FAILURES = {"carrier": "a link loses its carrier", "silent": "a link loses all frames silently"}
_LOADS = {"idle": "little", "half": "half of what the emulator carries"}


def table_of_cuts(run: Mapping[str, Any]) -> list[str]:
    """Return the tables in docs/performance.md: times, and lost frames."""
    lines = [
        "| fabric | cut | load | attack | protection | priority | cuts (tier 1, planned ahead)"
        " | found, median"
        " | longest | new routes, median | p99 | first frame, median | p99"
        " | controller, most memory | CPU, load average | processor |",
        "|" + "---|" * 16,
    ]
    rows = [row for row in run["rows"] if "sets" not in row]
    for row in rows:
        detected, repaired, first = row["found_ms"], row["repaired_ms"], row["first_frame_ms"]
        lines.append(
            f"| `{row['fabric']}` | {row['cut']} | {_load(row)} | {row['attack'] or '-'}"
            f" | {row['protection']} | {row['priority']}"
            f" | {row['cuts']} ({row['tiers'].get('1', 0)}, {row['planned_ahead']})"
            f" | {detected['median']} ms | {detected['max']} ms"
            f" | {repaired['median']} ms | {repaired['p99']} ms"
            f" | {first['median']} ms | {first['p99']} ms"
            f" | {row['controller_peak_mb']:.0f} MB"
            f" | {row['cpu_percent']:.0f} %, {row['load_1min']}"
            f" | {row.get('cpu', run['machine']['cpu'])} |"
        )
    lines += [
        "",
        "| fabric | cut | load | attack | protection | priority | carried, hops/s"
        " | sent, frames/s"
        " | lost per cut | sent before the cut | until found | until repaired | at other times"
        " | deadlocks |",
        "|" + "---|" * 14,
    ]
    for row in rows:
        most, lost = row.get("carried_hops_per_s"), row.get("lost")
        phases = [f"{lost[name] / max(1, row['cuts']):.2f}" if lost else "-" for name in PHASES]
        lines.append(
            f"| `{row['fabric']}` | {row['cut']} | {_load(row)} | {row['attack'] or '-'}"
            f" | {row['protection']} | {row['priority']} | {'-' if most is None else f'{most:,}'}"
            f" | {row['frames_per_s']:,} | {row['lost_frames'] / max(1, row['cuts']):.2f}"
            f" | {' | '.join(phases)} | {row.get('deadlocks', '-')} |"
        )
    return [*(lines if rows else ()), *_in_a_row(run), "", machine_line(run)]


def _in_a_row(run: Mapping[str, Any]) -> list[str]:
    """Return the table of failures one after the other; an empty list if there are none."""
    lines = []
    for row in run["rows"]:
        for number in range(1, 9):
            if (figures := row.get(f"failure_{number}")) is None:
                break
            served, tiers = figures["served_ms"], figures["tiers"]
            in_one = sum(count for tier, count in tiers.items() if tier in ("0", "1"))
            lost = f"{row['lost_frames'] / row['sets']:.1f}" if number == 1 else ""
            lines.append(
                f"| `{row['fabric']}` | {number} | {row['sets']} | {in_one} | {served['none']}"
                f" | {served['median']} ms | {served['max']} ms | {lost} |"
            )
    head = (
        "| fabric | failure in a row | sets | in one step | no new routes | median | longest"
        " | frames lost in a set |"
    )
    return ["", head, "|" + "---|" * 8, *lines] if lines else []


def _load(row: Mapping[str, Any]) -> str:
    return f"{row['load']}, --soon" if row["soon"] else str(row["load"])


def table_of_proofs(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/decisions/repair.md, of a run of ``tests/prove_repairs.py``."""
    rows = run["rows"]
    groups = [row[group_name] for row in rows for group_name in ("default", "tree", "known")]
    total = sum(sum(group["kinds"].values()) for group in groups)
    return [
        f"Repaired plans of {len(rows)} engines: {total:,}.",
        "",
        "| engine | generated | generated, `tree` VLANs | known fabrics | pairs moved"
        " | by a new plan | stretch | rules changed per switch |",
        "|---" * 8 + "|",
        *(_proofs_row(row) for row in sorted(rows, key=lambda row: str(row["engine"]))),
    ]


def _proofs_row(row: Mapping[str, Any]) -> str:
    listed = row["known"]
    cells = [
        f"`{row['engine']}`",
        *(_counts(row[group_name]["kinds"]) for group_name in ("default", "tree", "known")),
    ]
    if listed["kinds"]:
        cells += [
            f"{100 * listed['moved']:.1f} %",
            f"{100 * listed['moved_by_new_plan']:.1f} %",
            f"{listed['stretch']:.2f}",
            f"{listed['rules_changed_per_switch']:.1f}",
        ]
    else:  # an engine of other fabrics
        cells += 4 * ["-"]
    return f"| {' | '.join(cells)} |"


def _counts(kinds: Mapping[str, int]) -> str:
    groups = (MOVED, MADE_ROOM, NEW_PLAN)
    return ", ".join(str(sum(kinds.get(kind, 0) for kind in group)) for group in groups)


def table_of_durations(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/controller-failures.md: how long failures last.

    Rows of fabrics that are attacked, or have backup paths, are left out.
    """
    lines = [
        "| what happens | fabric | load | known after, median | longest"
        " | over after, median | p99 | processor |",
        "|---" * 8 + "|",
    ]
    for row in run["rows"]:
        if row["attack"] or row["protection"] != "none":
            continue
        detected, over = row["found_ms"], row["repaired_ms"]
        soon = ", repairs not planned ahead" if row["soon"] else ""
        lines.append(
            f"| {_FAILURES[row['cut']]} | `{row['fabric']}` | {_LOADS[row['load']]}{soon}"
            f" | {detected['median']:.0f} ms | {detected['max']:.0f} ms"
            f" | {over['median']:,.0f} ms | {over['p99']:,.0f} ms | {row['cpu']} |"
        )
    return lines
