"""``python -m bench.datapath``: frames per second on both datapaths of Open vSwitch, in pairs.

A kernel without the module openvswitch needs another one, as a process:

    python -m tests.kernel.machine .venv/bin/python -m bench.datapath --json
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from bench import variants
from bench.entry import about, machine_line, run_benchmark, table_option
from knotless.emulation.datapath import chosen
from knotless.emulation.runtime import require_root

FABRICS = (
    ("ring,4,rate=1000,delay=50", "shift:2"),
    ("torus,4,4,rate=1000,delay=50", "shift:1"),
)
DATAPATHS = ("user", "kernel")
WINDOW_S = 0.02
"""Virtual time; 1,600 full frames of each host."""


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/decisions/datapath.md."""
    lines = [
        "| fabric | userspace, hops/s | kernel, hops/s | kernel / userspace | worst flow | valid |",
        "|---|---|---|---|---|---|",
    ]
    for fabric in dict.fromkeys(row["fabric"] for row in run["rows"]):
        rows = [row for row in run["rows"] if row["fabric"] == fabric]
        user, kernel = (
            [row["hops_per_s"] for row in rows if row["datapath"] == datapath]
            for datapath in DATAPATHS
        )
        lines.append(
            f"| `{fabric}` | {variants.spread(user)} | {variants.spread(kernel)}"
            f" | {variants.ratio(kernel, user)}"
            f" | {max(row['worst'] for row in rows):.2%}"
            f" | {sum(row['valid'] for row in rows)} of {len(rows)} |"
        )
    return [*lines, "", machine_line(run)]


@click.command(epilog="Example: sudo .venv/bin/python -m bench.datapath --pairs 3")
@click.option("--pairs", type=click.IntRange(1), default=5, show_default=True)
@click.option("--window", "window_s", default=WINDOW_S, show_default=True, help="Virtual s.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(pairs: int, window_s: float, as_json: bool) -> None:
    """Compare both datapaths: hops per second of real time, and flows with the simulator's."""
    require_root()
    begun = about()
    chosen("kernel")
    rows = variants.measure(pairs, FABRICS, "datapath", DATAPATHS, window_s)
    variants.report(begun, rows, table_of, as_json=as_json)


if __name__ == "__main__":
    run_benchmark(main)
