"""The tables of ``python -m bench.repair`` in docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.entry import machine_line
from bench.repair_figures import PHASES


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the tables in docs/performance.md: times, and lost frames."""
    lines = [
        "| fabric | cut | load | attack | protection | cuts (tier 1, planned ahead) | found, median"
        " | longest | new routes, median | p99 | first frame, median | p99"
        " | controller, most memory | CPU, load average | processor |",
        "|" + "---|" * 15,
    ]
    for row in run["rows"]:
        found, repaired, first = row["found_ms"], row["repaired_ms"], row["first_frame_ms"]
        lines.append(
            f"| `{row['fabric']}` | {row['cut']} | {_load(row)} | {row['attack'] or '-'}"
            f" | {row['protection']}"
            f" | {row['cuts']} ({row['tiers'].get('1', 0)}, {row['planned_ahead']})"
            f" | {found['median']} ms | {found['max']} ms"
            f" | {repaired['median']} ms | {repaired['p99']} ms"
            f" | {first['median']} ms | {first['p99']} ms"
            f" | {row['controller_peak_mb']:.0f} MB"
            f" | {row['cpu_percent']:.0f} %, {row['load_1min']}"
            f" | {row.get('cpu', run['machine']['cpu'])} |"
        )
    lines += [
        "",
        "| fabric | cut | load | attack | protection | carried, hops/s | sent, frames/s"
        " | lost per cut | sent before the cut | until found | until repaired | at other times"
        " | deadlocks |",
        "|" + "---|" * 13,
    ]
    for row in run["rows"]:
        most, lost = row.get("carried_hops_per_s"), row.get("lost")
        phases = [f"{lost[name] / max(1, row['cuts']):.2f}" if lost else "-" for name in PHASES]
        lines.append(
            f"| `{row['fabric']}` | {row['cut']} | {_load(row)} | {row['attack'] or '-'}"
            f" | {row['protection']} | {'-' if most is None else f'{most:,}'}"
            f" | {row['frames_per_s']:,} | {row['lost_frames'] / max(1, row['cuts']):.2f}"
            f" | {' | '.join(phases)} | {row.get('deadlocks', '-')} |"
        )
    return [*lines, "", machine_line(run)]


def _load(row: Mapping[str, Any]) -> str:
    return f"{row['load']}, --soon" if row["soon"] else str(row["load"])
