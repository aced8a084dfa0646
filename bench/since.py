"""What ``knotless check --since`` takes beside a full check, after different files have changed.

Each check is a process of its own, on the files of a Clos network of SONiC switches
(:mod:`bench.support.clos_files`). What a check of changed files prints is compared with what a full
check prints of them; a difference ends the benchmark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import click

from bench.support.entry import Run, benchmark, machine_line, run_benchmark
from knotless.base.errors import KnotlessError
from knotless.base.package import python_module
from knotless.cli.numbers import Whole
from knotless.importers.manifest import TICK_NS

SIZE = (32, 16, 8, 32)
"""Pods, leaves of each, aggregation switches of each, and core switches of each plane."""
LEAF, CORE = "pod1-leaf1", "core0-1"
NETWORK = "ROUTE_TABLE:10.0.1.0/24"
LONG_S = 15.0
"""Seconds of processors after which nothing is measured again."""


def _edit(file: Path, change: Callable[[Any], object]) -> None:
    value = json.loads(file.read_text(encoding="utf-8"))
    change(value)
    file.write_text(json.dumps(value), encoding="utf-8")


def _fewer(route: dict[str, str]) -> None:
    for name, text in route.items():
        route[name] = ",".join(text.split(",")[1:])


def _one(route: dict[str, str]) -> None:
    for name, text in route.items():
        route[name] = text.split(",")[0]


def _every_route(tables: dict[str, dict[str, str]]) -> None:
    for key, route in tables.items():
        if key.startswith("ROUTE_TABLE:") and "," in route.get("ifname", ""):
            _fewer(route)


CHANGES: Mapping[str, tuple[str, Callable[[Any], object]]] = {
    "a next hop less for one network, at a leaf": (
        f"{LEAF}/appl_db.json",
        lambda tables: _fewer(tables[NETWORK]),
    ),
    "one next hop for one network, at an aggregation switch": (
        "pod1-agg0/appl_db.json",
        lambda tables: _one(tables[NETWORK]),
    ),
    "a next hop less for all networks, at a leaf": (f"{LEAF}/appl_db.json", _every_route),
    "another log server, at a core switch": (
        f"{CORE}/config_db.json",
        lambda tables: tables.update(SYSLOG_SERVER={"10.0.0.9": {}}),
    ),
    "PFC of a port, at a leaf": (
        f"{LEAF}/config_db.json",
        lambda tables: tables["PORT_QOS_MAP"]["Ethernet0"].update(pfc_enable="3"),
    ),
}
"""What changes -> the file, and how."""


def _checked(*words: str) -> tuple[dict[str, float], str]:
    """Return what a check took and printed."""
    begun = time.perf_counter()
    command = python_module("knotless", "check", "--json", *words)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.read() if process.stdout else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise KnotlessError(f"check {' '.join(words)}: exit status {process.returncode}")
    took = {
        "wall_s": round(time.perf_counter() - begun, 3),
        "cpu_s": round(used.ru_utime + used.ru_stime, 3),
        "peak_mib": round(used.ru_maxrss / 1024, 1),
    }
    return took, printed


def _since(fabric: str, state: str, times: int, full: str) -> dict[str, float]:
    """Return the median of what checks with a state took, and how many there were.

    One that takes as long as a full check is not repeated.
    """
    takes: list[dict[str, float]] = []
    while len(takes) < times and sum(take["cpu_s"] for take in takes) < LONG_S:
        took, printed = _checked(fabric, "--since", state)
        if printed != full:
            raise KnotlessError("--since does not print what a full check prints")
        takes.append(took)
    return {"times": len(takes), **_median(takes)}


def _median(takes: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(median(take[key] for take in takes), 3) for key in takes[0]}


def measure(folder: Path, times: int, failures: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each check of the files in ``folder``."""
    fabric, state = str(folder / "clos"), str(folder / "state")
    took, before = _checked(fabric)
    yield {"check": "check", "changed": None, "times": 1, **took}
    if failures:
        took, _ = _checked(fabric, "--failures", str(failures))
        yield {"check": f"check --failures {failures}", "changed": None, "times": 1, **took}
    took, _ = _checked(fabric, "--write-state", state)
    yield {"check": "check --write-state", "changed": None, "times": 1, **took}
    row = {"check": "check --since", "changed": "nothing"}
    yield {**row, **_since(fabric, state, times, before)}
    for what, (name, change) in CHANGES.items():
        file = folder / "clos" / name
        former = file.read_bytes()
        _edit(file, change)
        _, full = _checked(fabric)
        row = {"check": "check --since", "changed": what}
        yield {**row, **_since(fabric, state, times, full)}
        file.write_bytes(former)


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/check-changes.md."""
    has_peaks = all("peak_mib" in row for row in run["rows"])
    lines = ["| check | changed | s | s of processors |", "|---|---|---|---|"]
    if has_peaks:
        lines = [f"{lines[0]} peak MiB |", f"{lines[1]}---|"]
    for row in run["rows"]:
        times = f"{row['wall_s']:.2f} | {row['cpu_s']:.2f}"
        peak = f" {row['peak_mib']:.0f} |" if has_peaks else ""
        lines.append(f"| `{row['check']}` | {row['changed'] or ''} | {times} |{peak}")
    times = max(row["times"] for row in run["rows"])
    size = f"{run['switches']} SONiC switches, {run['files']} files, {run['bytes'] / 1e6:.0f} MB"
    note = f"{size}. Each time is of a whole process; the median of up to {times}."
    return [*lines, "", note, "", machine_line(run)]


@benchmark(table_of)
@click.option("--times", type=Whole(1, 1000), default=5, show_default=True)
@click.option("--failures", type=Whole(0, 1), default=1, show_default=True)
def main(run: Run, times: int, failures: int) -> None:
    """Time checks of a Clos network of 1,024 switches, before and after files have changed.

    Example: python -m bench.since --json > docs/benchmarks/since.json
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        # A process of its own: what a process takes counts as the peak of those that it starts.
        arguments = [str(folder / "clos"), *map(str, SIZE)]
        command = [sys.executable, "-m", "bench.support.clos_files", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        switches = sum(1 for _ in (folder / "clos").iterdir())
        config = folder / "clos" / CORE / "config_db.json"
        _edit(config, lambda tables: tables.update(SYSLOG_SERVER={"10.0.0.8": {}}))
        files = [file for file in (folder / "clos").rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files)
        newest = max(file.stat().st_ctime_ns for file in files)
        while time.time_ns() <= newest + TICK_NS:
            os.sched_yield()  # files as new as this are read again by every check
        run.more(switches=switches, files=len(files), bytes=size)
        for row in measure(folder, times, failures):
            run.add(row)


if __name__ == "__main__":
    run_benchmark(main)
