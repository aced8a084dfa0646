"""Processor time and peak memory of ``plan``, ``flows`` and ``check`` on very large fabrics.

Each command is a process of its own, as a user runs it: ``check`` reads the files that ``flows``
has written. Processor seconds are those of all threads, in user mode and in the kernel; they depend
less than the wall clock on what else the machine does. A command that needs more memory than
``--most-gb`` of addresses fails, and its row says so.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from bench.support.entry import Run, benchmark, machine_line, run_benchmark
from knotless.results.machine import machine
from knotless.topologies import load

CASES = ("fattree3,48", "torus,32,32,10", "fattree3,64", "dragonfly,a=26,h=13,p=13")
COMMANDS = ("plan", "flows", "check")


def measured(arguments: list[str], most_gb: float) -> dict[str, Any]:
    """Run a command of ``knotless``; return its exit status, times and peak memory."""
    most = int(most_gb * 1e9)
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "knotless", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "status": process.returncode,
        "processor_s": round(used.ru_utime + used.ru_stime, 1),
        "wall_s": round(time.perf_counter() - began, 1),
        "peak_gb": round(used.ru_maxrss / 1e6, 2),
    }


def row_of(spec: str, version: str, most_gb: float) -> dict[str, Any]:
    """Measure the three commands on a fabric; a command that fails ends the row."""
    fabric = load(spec)
    row: dict[str, Any] = {
        "fabric": spec,
        "version": version,
        "switches": len(fabric.switches),
        "hosts": len(fabric.hosts),
        "most_gb": most_gb,
    }
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "rules")
        arguments = {"plan": [spec], "flows": [spec, "--out", out], "check": [out]}
        for command in COMMANDS:
            row[command] = measured([command, *arguments[command]], most_gb)
            if row[command]["status"] != 0:
                break
    return {**row, "load_1min": machine()["load_1min"]}


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/performance.md."""

    def shown(row: Mapping[str, Any], command: str) -> str:
        cell = row.get(command)
        if cell is None:
            return ""
        if cell["status"] != 0:
            return f"fails with {row['most_gb']:g} GB"
        return f"{cell['processor_s']:,.0f} s, {cell['peak_gb']:.1f} GB"

    return [
        "| fabric | switches | hosts | version | plan | flows | check |",
        "|---" * 7 + "|",
        *(
            f"| {row['fabric']} | {row['switches']:,} | {row['hosts']:,} | {row['version']} | "
            + " | ".join(shown(row, command) for command in COMMANDS)
            + " |"
            for row in run["rows"]
        ),
        "",
        machine_line(run),
    ]


@benchmark(
    table_of,
    keys=("fabric", "version"),
    order=lambda row: (row["hosts"], row["fabric"], row["version"] == "now"),
)
@click.option("--only", multiple=True, metavar="SPEC", help="Measure this fabric; may be repeated.")
@click.option("--version", default="now", show_default=True, help="The name of the rows.")
@click.option("--most-gb", default=10.5, show_default=True, help="The most memory of a command.")
def main(run: Run, only: tuple[str, ...], version: str, most_gb: float) -> None:
    """Measure plan, flows and check on very large fabrics (takes minutes).

    Example: python -m bench.scale --only fattree3,48 --into docs/benchmarks/scale.json
    """
    for spec in only or CASES:
        run.add(row_of(spec, version, most_gb))


if __name__ == "__main__":
    run_benchmark(main)
