"""Speed of the simulator on two cores, compared with one, and with two independent simulations.

The three take turns, so that other work on the machine meets all of them. Two simulations at once
that do not need each other are the most that two cores could give: they share caches and memory.
The hash of the results must be the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from statistics import median
from typing import Any

import click

from bench.simulation import CASES, LINKS, Case
from bench.support.entry import about, as_stored, machine_line, table_option
from knotless.results.machine import machine
from knotless.routing.plan import make_plan
from knotless.simulation import Scenario, simulate
from knotless.topologies import load

CORES = 2
ROUNDS = 5
NAMES = ("128 hosts", "1,024 hosts", "torus 16x16", "torus 8x8x8", "torus 16x16x16")
SLOW = ("LSFT 17 all-to-all",)


def serve(case: Case) -> None:
    """Simulate once for each line of input, on that many cores, and print a line for each."""
    plan = make_plan(load(f"{case.spec},{LINKS}"), case.engine)
    scenario = Scenario(plan, case.pattern, case.load, duration_us=case.duration_us)
    for line in sys.stdin:
        result = simulate(scenario, cores=int(line))
        row = {
            "hosts": len(plan.fabric.hosts),
            "packet_hops": result.report.packet_hops,
            "wall_s": result.wall_s,
            "result_sha256": result.result_sha256,
            "cores": result.cores,
        }
        click.echo(json.dumps(row))


class Server:
    """A process that simulates a case."""

    def __init__(self, number: int) -> None:
        """Start it."""
        command = [sys.executable, "-m", "bench.simulation_cores", "--case", str(number)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def begin(self, cores: int) -> None:
        """Have it simulate on so many cores."""
        if self._process.stdin is not None:
            self._process.stdin.write(f"{cores}\n")
            self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """Wait for the end of a simulation."""
        line = "" if self._process.stdout is None else self._process.stdout.readline()
        row: dict[str, Any] = json.loads(line)
        return row

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def measure(number: int, rounds: int) -> dict[str, Any]:
    """Measure a case, and return its figures: medians over rounds."""
    servers = [Server(number), Server(number)]
    one: list[dict[str, Any]] = []
    several: list[dict[str, Any]] = []
    both: list[list[dict[str, Any]]] = []
    load_1min = machine()["load_1min"]
    try:
        # The first simulation of a process also allocates.
        for server in servers:
            server.begin(1)
            server.end()
        for _ in range(rounds):
            for cores, rows in ((1, one), (CORES, several)):
                servers[0].begin(cores)
                rows.append(servers[0].end())
            for server in servers:
                server.begin(1)
            both.append([server.end() for server in servers])
    finally:
        for server in servers:
            server.close()
    hashes = {row["result_sha256"] for row in [*one, *several, *(r for two in both for r in two)]}
    if len(hashes) != 1 or any(row["cores"] != CORES for row in several):
        raise click.ClickException(f"{CASES[number].name}: the results differ: {sorted(hashes)}")
    one_s = median(row["wall_s"] for row in one)
    pair_s = median(max(row["wall_s"] for row in two) for two in both)
    ratios = sorted(
        alone["wall_s"] / together["wall_s"] for alone, together in zip(one, several, strict=True)
    )
    return {
        "case": CASES[number].name,
        "fabric": CASES[number].spec,
        "pattern": CASES[number].pattern,
        "hosts": one[0]["hosts"],
        "packet_hops": one[0]["packet_hops"],
        "rounds": rounds,
        "one_core_s": round(one_s, 3),
        "two_cores_s": round(median(row["wall_s"] for row in several), 3),
        "two_runs_s": round(pair_s, 3),
        "ratio": round(median(ratios), 2),
        "least_ratio": round(ratios[0], 2),
        "most_ratio": round(ratios[-1], 2),
        "ceiling": round(2 * one_s / pair_s, 2),
        "result_sha256": next(iter(hashes)),
        "load_1min": load_1min,
    }


def table_of(run: dict[str, Any]) -> list[str]:
    """Return the table in docs/performance.md."""
    rows = [
        "| {fabric}, {hosts:,} hosts | {pattern} | {one_core_s:g} | {two_cores_s:g} | {ratio:.2f}"
        " ({least_ratio:.2f} to {most_ratio:.2f}) | {ceiling:.2f} | {rounds} |".format(**row)
        for row in run["rows"]
    ]
    return [
        "| fabric | traffic | one core, s | two cores, s | times as fast"
        " | two runs at once | rounds |",
        "|---" * 7 + "|",
        *rows,
        "",
        machine_line(run),
    ]


@click.command()
@click.option("--rounds", type=click.IntRange(1, 100), default=ROUNDS, show_default=True)
@click.option("--only", metavar="NAME", help="Only cases whose name contains this.", default="")
@click.option("--slow", is_flag=True, help="Also a case of minutes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
@click.option("--case", "number", type=click.IntRange(0, len(CASES) - 1), hidden=True)
def main(rounds: int, only: str, slow: bool, as_json: bool, number: int | None) -> None:
    """Compare the simulator on two cores with one core, and with two simulations at once.

    Example: python -m bench.simulation_cores --json; python -m bench.simulation_cores --table FILE
    """
    if number is not None:
        serve(CASES[number])
        return
    begun, rows = about(), []
    names = (*NAMES, *SLOW) if slow else NAMES
    for index, case in enumerate(CASES):
        if case.name not in names or only not in case.name:
            continue
        row = measure(index, rounds)
        rows.append(row)
        if not as_json:
            click.echo(
                "{case:20} {one_core_s:8.3f} s  {two_cores_s:8.3f} s  {ratio:.2f}"
                " ({least_ratio:.2f} to {most_ratio:.2f}), two runs at once {ceiling:.2f},"
                " load {load_1min:.1f}".format(**row)
            )
    if as_json:
        cases = [asdict(case) for case in CASES if case.name in names and only in case.name]
        click.echo(as_stored(begun, cases=cases, rows=rows))


if __name__ == "__main__":
    main()
