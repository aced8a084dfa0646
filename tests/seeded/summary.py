"""``python -m tests.seeded.summary FILE...``: sum up runs of ``make seeds``: faults, times, speed.

Speed is in simulated seconds per second of processor time. Where files also have runs of the same
fabrics without invariants (``--no-invariants``), it is given for both.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option

Run = Mapping[str, Any]


def summed(runs: Iterable[Run]) -> dict[str, Any]:
    """Return the figures of runs: by fabric and number of controllers, and by kind of fault."""
    rows: defaultdict[tuple[str, int], list[Run]] = defaultdict(list)
    faults, served_s = Counter[str](), dict[str, float]()
    for run in runs:
        if "fabric" not in run:
            continue  # it ended with an exception
        spec = run["fabric"]
        fabric = spec.split(",seed=")[0]
        rows[fabric, run["controllers"]].append(run)
        if not run["judged"]:
            continue
        faults.update(run["faults"])
        for kind, seconds in run["served_after_s"].items():
            served_s[kind] = max(seconds, served_s.get(kind, 0.0))
    return {
        "commits": sorted({run["commit"] for of_row in rows.values() for run in of_row}),
        "rows": [
            {"fabric": fabric, "controllers": controllers, **_row(rows[fabric, controllers])}
            for fabric, controllers in sorted(rows)
        ],
        "kinds": [
            {"kind": kind, "faults": faults[kind], "served_after_s": served_s.get(kind)}
            for kind in sorted({*faults, *served_s})
        ],
    }


def _row(runs: Sequence[Run]) -> dict[str, Any]:
    judged = [run for run in runs if run["judged"]]
    return {
        "runs": len(judged),
        "simulated_hours": round(sum(run["simulated_s"] for run in judged) / 3600, 3),
        "faults": sum(sum(run["faults"].values()) for run in judged),
        "failed": sum(run["violated"] > 0 for run in judged),
        "suspended": sum(run["suspended"] for run in judged),
        "settled_s": max(
            (run["settled_s"] for run in judged if not run["suspended"]), default=None
        ),
        "speed": _speed(judged),
        "speed_unjudged": _speed([run for run in runs if not run["judged"]]),
    }


def _speed(runs: Sequence[Run]) -> float | None:
    processor_s = sum(run["processor_s"] for run in runs)
    return round(sum(run["simulated_s"] for run in runs) / processor_s, 1) if runs else None


def table_of(stored: Mapping[str, Any]) -> list[str]:
    """Return the tables of docs/seeded-controllers.md."""
    rows, kinds = stored["rows"], stored["kinds"]
    return [
        "| fabric | controllers | runs | simulated hours | faults | settled after, at most"
        " | runs that wait for ever | with violations | speed | without invariants |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(
            f"| `{row['fabric']}` | {row['controllers']} | {row['runs']:,}"
            f" | {row['simulated_hours']:.2f} | {row['faults']:,} | {_seconds(row['settled_s'])}"
            f" | {row['suspended']} | {row['failed']} | {_times(row['speed'])}"
            f" | {_times(row['speed_unjudged'])} |"
            for row in rows
        ),
        "",
        "| the last fault was | faults | all was served after, at most |",
        "|---|---|---|",
        *(
            f"| {kind['kind']} | {kind['faults']:,} | {_seconds(kind['served_after_s'])} |"
            for kind in kinds
        ),
        "",
        machine_line(stored),
    ]


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def _times(speed: float | None) -> str:
    return "-" if speed is None else f"{speed:.0f}"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@table_option(table_of)
def main(files: Sequence[Path], as_json: bool) -> None:
    """Sum up files of runs that `make seeds` has written."""
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    begun, results = about(), summed(map(json.loads, lines))
    click.echo(
        as_stored(begun, **results) if as_json else "\n".join(table_of({**begun, **results}))
    )


if __name__ == "__main__":
    run_benchmark(main)
