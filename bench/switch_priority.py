"""``python -m bench.switch_priority``: frames per second with and without real-time priority.

Open vSwitch has real-time priority unless it is told otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from bench import variants
from bench.entry import about, machine_line, run_benchmark, table_option
from knotless.emulation.priority import PRIORITY
from knotless.emulation.runtime import require_root

FABRICS = (
    ("ring,4,rate=10000,delay=5", "shift:2"),
    ("ring,4,rate=100000,delay=0.5", "shift:2"),
    ("torus,4,4,rate=1000,delay=50", "shift:1"),
    ("torus,4,4,rate=1000,delay=5", "shift:1"),
    ("torus,4,4,hosts=4,rate=1000,delay=5", "shift:1"),
    ("torus,10,10,rate=1000,delay=50", "shift:1"),
)
PRIORITIES = (0, PRIORITY)
WINDOW_S = 0.004
"""Virtual time; 320 full frames of each host at 1 Gbit/s."""


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/decisions/real-time-switches.md."""
    lines = [
        "| fabric | ports | ordinary, hops/s | real-time, hops/s | real-time / ordinary"
        " | worst flow | valid |",
        "|---|---|---|---|---|---|---|",
    ]
    for spec in dict.fromkeys(row["spec"] for row in run["rows"]):
        rows = [row for row in run["rows"] if row["spec"] == spec]
        ordinary, prompt = (
            [row["hops_per_s"] for row in rows if bool(row["switch_priority"]) is is_prompt]
            for is_prompt in (False, True)
        )
        lines.append(
            f"| `{spec}` | {rows[0]['ports']} | {variants.spread(ordinary)}"
            f" | {variants.spread(prompt)} | {variants.ratio(prompt, ordinary)}"
            f" | {max(row['worst'] for row in rows):.2%}"
            f" | {sum(row['valid'] for row in rows)} of {len(rows)} |"
        )
    return [*lines, "", machine_line(run)]


@click.command(epilog="Example: sudo .venv/bin/python -m bench.switch_priority --pairs 3")
@click.option("--pairs", type=click.IntRange(1), default=5, show_default=True)
@click.option("--window", "window_s", default=WINDOW_S, show_default=True, help="Virtual s.")
@click.option("--only", multiple=True, metavar="TEXT", help="Fabrics with TEXT in their spec.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(pairs: int, window_s: float, only: tuple[str, ...], as_json: bool) -> None:
    """Compare priorities of Open vSwitch: hops per second, and flows with the simulator's."""
    require_root()
    begun = about()
    fabrics = [one for one in FABRICS if not only or any(part in one[0] for part in only)]
    rows = variants.measure(pairs, fabrics, "switch_priority", PRIORITIES, window_s)
    variants.report(begun, rows, table_of, as_json=as_json)


if __name__ == "__main__":
    run_benchmark(main)
