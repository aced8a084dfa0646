"""``python -m bench.datapath``: frames per second on both datapaths of Open vSwitch, in pairs.

The hosts send at full rate on links that are faster than the machine, so the machine is the limit.
A kernel without the module openvswitch needs another one, as a process:

    python -m tests.kernel.machine .venv/bin/python -m bench.datapath --json
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console

from bench import emulation_time
from bench.entry import about, as_stored, machine_line, run_benchmark, table_option
from emulation.datapath import chosen
from emulation.runtime import require_root
from experiments.framework.routed import Routed
from experiments.studies.agreement.cases import Case
from routing.request import PlanRequest

FABRICS = (("ring,4", "shift:2"), ("torus,4,4", "shift:1"))
RATE_MBPS, DELAY_US = 1000, 50
WINDOW_S = 0.02
"""Virtual time; at this rate 1,600 full frames of each host."""


def case(fabric: str, pattern: str, datapath: str) -> Case:
    """Return the case of a fabric on a datapath."""
    spec = f"{fabric},rate={RATE_MBPS},delay={DELAY_US}"
    settings = (("datapath", datapath),)
    routed = Routed(spec, PlanRequest(engine="updown"), settings=settings)
    return Case("datapath", routed, pattern, "pause")


def measure(pairs: int, window_s: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each run; the datapath that comes first changes with each pair."""
    for pair in range(pairs):
        for fabric, pattern in FABRICS:
            order = ("user", "kernel") if pair % 2 == 0 else ("kernel", "user")
            for datapath in order:
                one = case(fabric, pattern, datapath)
                for line in emulation_time.run(one, [0], window_s):
                    yield {"datapath": datapath, "pair": pair, "good": line.good, **asdict(line)}


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/decisions/datapath.md."""
    lines = [
        "| fabric | userspace, hops/s | kernel, hops/s | kernel / userspace | worst flow | valid |",
        "|---|---|---|---|---|---|",
    ]
    for fabric, _ in FABRICS:
        rows = [row for row in run["rows"] if row["fabric"] == fabric]
        of = {
            datapath: [row["hops_per_s"] for row in rows if row["datapath"] == datapath]
            for datapath in ("user", "kernel")
        }
        ratios = [kernel / user for user, kernel in zip(of["user"], of["kernel"], strict=True)]
        lines.append(
            f"| `{fabric}` | {_spread(of['user'])} | {_spread(of['kernel'])}"
            f" | {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            f" | {max(row['worst'] for row in rows):.2%}"
            f" | {sum(row['valid'] for row in rows)} of {len(rows)} |"
        )
    return [*lines, "", machine_line(run)]


def _spread(values: Sequence[int]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,} to {max(values):,})"


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
    console = Console(stderr=True)
    rows = []
    for row in measure(pairs, window_s):
        console.print(row, highlight=False)
        rows.append(row)
    click.echo(
        as_stored(begun, rows=rows) if as_json else "\n".join(table_of({**begun, "rows": rows}))
    )
    if not all(row["good"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    run_benchmark(main)
