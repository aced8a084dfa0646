"""``python -m bench.switch_processes``: one Open vSwitch process, or several.

Light traffic is all-to-all datagrams at a few rates, as on a fabric that people try out: nearly
every frame wakes a process, which then polls all of its ports. At full rate, each wake-up handles
many frames.
"""

from __future__ import annotations

import secrets
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import psutil

from bench import variants
from bench.entry import about, machine_line, run_benchmark, table_option
from bench.offered import traffic
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.runtime import require_root
from knotless.topologies import load

FABRICS: Mapping[str, Sequence[int]] = {"torus,4,4,hosts=4": (1, 3), "torus,10,10": (1, 4, 10)}
"""Spec -> numbers of processes."""
RATES = (1000, 300)
"""Frames per second of all hosts together."""
WARM_S, WINDOW_S = 10.0, 5.0
FULL = (",rate=1000,delay=50", "shift:1", 0.004)
"""Links, pattern and virtual seconds of the full rate."""


def light(spec: str, count: int) -> dict[str, Any]:
    """Return the stretch at each rate, the cores that Open vSwitch took, and problems of runs."""
    lab = EmulatedFabric(
        load(spec),
        name=f"bench-{secrets.token_hex(2)}",
        openflow_port=0,
        rest_port=0,
        static_arp=True,
        switch_processes=count,
    )
    stretch, cores, problems = {}, {}, list[str]()
    with tempfile.TemporaryDirectory() as folder, lab:
        for rate in RATES:
            with traffic(lab, rate / len(lab.fabric.hosts), Path(folder) / "log"):
                time.sleep(WARM_S)
                lab.daemon.reset()
                began, before = time.monotonic(), _cpu_s(lab)
                time.sleep(WINDOW_S)
                cores[str(rate)] = round((_cpu_s(lab) - before) / (time.monotonic() - began), 3)
                status = lab.daemon.status()
                stretch[str(rate)] = status["stretch"]
                problems += status["problems"]
    return {"stretch": stretch, "ovs_cores": cores, "light_problems": problems}


def _cpu_s(lab: EmulatedFabric) -> float:
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in lab.ovs.pids)


def measured(pairs: int, only: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each repetition, fabric and number of processes."""
    links, pattern, window_s = FULL
    for pair in range(pairs):
        for spec, counts in FABRICS.items():
            if only and not any(part in spec for part in only):
                continue
            for count in counts if pair % 2 == 0 else reversed(counts):
                fabrics = [(spec + links, pattern)]
                for full in variants.measure(1, fabrics, "switch_processes", [count], window_s):
                    yield {**full, "spec": spec, "pair": pair, **light(spec, count)}


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/decisions/switch-processes.md: medians."""
    lines = [
        "| fabric | ports | processes | "
        + " | ".join(f"stretch at {rate:,} frames/s (cores)" for rate in RATES)
        + " | full rate, hops/s | worst flow | valid |",
        "|" + "---|" * (6 + len(RATES)),
    ]
    cases = dict.fromkeys((row["spec"], row["switch_processes"]) for row in run["rows"])
    for spec, count in sorted(cases):
        rows = [r for r in run["rows"] if (r["spec"], r["switch_processes"]) == (spec, count)]

        def median(key: str, rate: int, rows: list[Any] = rows) -> float:
            return float(statistics.median(row[key][str(rate)] for row in rows))

        stretches = " | ".join(
            f"{median('stretch', rate):.2f} ({median('ovs_cores', rate):.2f})" for rate in RATES
        )
        lines.append(
            f"| `{spec}` | {rows[0]['ports']} | {count} | {stretches}"
            f" | {variants.spread([row['hops_per_s'] for row in rows])}"
            f" | {max(row['worst'] for row in rows):.2%}"
            f" | {sum(row['valid'] and not row['light_problems'] for row in rows)}"
            f" of {len(rows)} |"
        )
    return [*lines, "", machine_line(run)]


@click.command(epilog="Example: sudo .venv/bin/python -m bench.switch_processes --pairs 2")
@click.option("--pairs", type=click.IntRange(1), default=2, show_default=True)
@click.option("--only", multiple=True, metavar="TEXT", help="Fabrics with TEXT in their spec.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(pairs: int, only: tuple[str, ...], as_json: bool) -> None:
    """Compare numbers of Open vSwitch processes: stretch, processor time and full rate."""
    require_root()
    begun = about()
    variants.report(begun, measured(pairs, only), table_of, as_json=as_json)


if __name__ == "__main__":
    run_benchmark(main)
