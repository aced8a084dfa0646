"""Speed of the simulator on one core, in data packets transmitted on links.

Each case runs in its own process, so that peak memory is measured per case. The hash of each result
is in its row; it must be the same on every machine.
"""

from __future__ import annotations

import resource
import time
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import click

from bench.support.entry import (
    Run,
    benchmark,
    case_option,
    in_its_own_process,
    machine_line,
    run_benchmark,
)
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Scenario, simulate
from knotless.topologies import load

LINKS = "rate=10000,delay=1"
"""10 Gbit/s and 1 us, as in a data centre."""


@dataclass(frozen=True)
class Case:
    """One row. ``target`` is the project's target in packet-link-hops per second."""

    name: str
    spec: str
    engine: str
    pattern: str
    load: Load
    duration_us: float | None
    runs: int
    target: float | None = None
    slow: bool = False


SATURATE, POISSON = Load(), Load("poisson", 0.2)
PHASES = Load(barrier=False)
CASES = (
    Case("128 hosts", "fattree3,8", "fattree", "permutation", SATURATE, 20_000, 7, 10e6),
    Case("1,024 hosts", "fattree3,16", "fattree", "permutation", SATURATE, 4_000, 5, 5e6),
    Case("torus 16x16", "torus,16,16", "dor", "uniform", POISSON, 20_000, 5),
    Case("torus 8x8x8", "torus,8,8,8", "dor", "uniform", POISSON, 5_000, 3),
    Case("LSFT 7 all-to-all", "lsft,7", "lsft", "schedule", PHASES, None, 3),
    Case("LSFT 17 all-to-all", "lsft,17", "lsft", "schedule", PHASES, None, 1, slow=True),
    Case("torus 16x16x16", "torus,16,16,16", "dor", "uniform", POISSON, 500, 1, slow=True),
)


def measure(case: Case) -> dict[str, Any]:
    """Run one case in this process, and return its figures; rates are medians over runs."""
    began = time.perf_counter()
    plan = make_plan(load(f"{case.spec},{LINKS}"), case.engine)
    plan_s = time.perf_counter() - began
    scenario = Scenario(plan, case.pattern, case.load, duration_us=case.duration_us)
    results = [simulate(scenario) for _ in range(case.runs)]
    rates = [result.report.packet_hops / result.wall_s for result in results]
    last = results[-1].summary()
    return {
        "case": case.name,
        "fabric": case.spec,
        "pattern": case.pattern,
        "hosts": len(plan.fabric.hosts),
        "packet_hops": last["packet_hops"],
        "packet_hops_per_s": round(median(rates)),
        "best_packet_hops_per_s": round(max(rates)),
        "events_per_s": round(last["events"] * median(rates) / last["packet_hops"]),
        "runs": case.runs,
        "plan_s": round(plan_s, 2),
        "setup_s": last["setup_s"],
        "wall_s": round(median(result.wall_s for result in results), 3),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "lost_frames": last["lost_frames"],
        "deadlock": last["deadlock"],
        "messages": last["messages"],
        "throughput_mbps": last["throughput_mbps"],
        "complete_us": last["complete_us"],
        "result_sha256": last["result_sha256"],
        "target": case.target,
    }


def table_of(run: dict[str, Any]) -> list[str]:
    """Return the table in docs/performance.md."""
    rows = [
        "| {fabric}, {hosts:,} hosts | {pattern} | {packet_hops:,} | {wall_s:g} | {m:.1f} M"
        " | {best:.1f} M | {peak_mb:,} MB | {runs} |".format(
            **row, m=row["packet_hops_per_s"] / 1e6, best=row["best_packet_hops_per_s"] / 1e6
        )
        for row in run["rows"]
    ]
    return [
        "| fabric | traffic | packet-link-hops | seconds | hops/s | best | memory | runs |",
        "|---" * 8 + "|",
        *rows,
        "",
        machine_line(run),
    ]


@benchmark(table_of)
@click.option(
    "--slow",
    is_flag=True,
    help="Also run cases with thousands of switches and hosts (takes minutes).",
)
@case_option(lambda number: measure(CASES[number]))
def main(run: Run, slow: bool) -> None:
    """Measure the simulator's speed.

    Example: python -m bench.simulation --slow --json; python -m bench.simulation --table FILE
    """
    chosen = {n: case for n, case in enumerate(CASES) if slow or not case.slow}
    run.more(cases=[asdict(case) for case in chosen.values()])
    for number, case in chosen.items():
        run.add(in_its_own_process("bench.simulation", number, 3600 if case.slow else 300))


if __name__ == "__main__":
    run_benchmark(main)
