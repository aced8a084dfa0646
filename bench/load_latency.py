"""Load and latency beside those of CAMINOS, on a torus and a dragonfly with credits.

CAMINOS is a cycle-level simulator by others. Its configurations and runs are stored in
``references/caminos``. A cycle here is the time of a phit, 64 bytes, on a line.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from knotless.base.errors import KnotlessError
from knotless.base.files import read_text
from knotless.routing.plan import Plan, make_plan
from knotless.simulation import Buffers, Load, Scenario, simulate
from knotless.simulation.traffic import line_bytes
from knotless.topologies import load

RESULTS = Path(__file__).resolve().parent / "references" / "caminos" / "results.csv"
RATE_MBPS = 100_000.0
PHIT_BYTES = 64
PACKET_PHITS, BUFFER_PHITS = 16, 64
CYCLE_US = 8 * PHIT_BYTES / RATE_MBPS
LINK_CYCLES = 10
"""The delay of a link of the configurations, from one router's output to the next one's."""
WARM_UP_CYCLES, CYCLES = 10_000, 40_000
PACKET_BYTES = PACKET_PHITS * PHIT_BYTES - (line_bytes(1000, 1000) - 1000)
"""The payload of a packet that takes the line for 16 phits, header and gap included."""
ZERO_LOAD = 0.01
COMPARED_SHARE = 0.6
"""Latencies are compared below this share of the lower saturation."""


@dataclass(frozen=True)
class Network:
    """A network of both simulators. ``paths`` are the engine of ours."""

    spec: str
    engine: str

    @property
    def plan(self) -> Plan:
        """The plan; a link is shorter by the cycle that the head of a packet takes to arrive."""
        delay_us = (LINK_CYCLES - 1) * CYCLE_US
        return make_plan(load(f"{self.spec},rate={RATE_MBPS:g},delay={delay_us:.5f}"), self.engine)


DRAGONFLY = Network("dragonfly,a=4,h=2,p=2,g=9", "dragonfly")
NETWORKS = {
    "torus": Network("torus,5,5", "dor"),
    "dragonfly": DRAGONFLY,
    "dragonfly-wide": DRAGONFLY,
}
"""By name of the configuration. The wide one has four virtual channels for each hop in CAMINOS."""


def reference() -> list[dict[str, Any]]:
    """Return the rows of CAMINOS; raises KnotlessError."""
    rows = csv.DictReader(read_text(RESULTS).splitlines())
    return [
        {
            "network": row["fabric"],
            "simulator": "caminos",
            "load": float(row["load"]),
            "seed": int(row["seed"]),
            "accepted": float(row["accepted_load"]),
            "cycles": float(row["delay_cycles"]),
        }
        for row in rows
    ]


def simulated(network: str, offered: float, seed: int) -> dict[str, Any]:
    """Return the row of a run of ours."""
    plan = NETWORKS[network].plan
    result = simulate(
        Scenario(
            plan,
            "uniform",
            Load("poisson", offered),
            flow_control="credits",
            buffers=Buffers(credit=BUFFER_PHITS * PHIT_BYTES),
            packet_bytes=PACKET_BYTES,
            cut_through=PHIT_BYTES,
            warm_up_us=WARM_UP_CYCLES * CYCLE_US,
            duration_us=CYCLES * CYCLE_US,
            seed=seed,
        )
    )
    values = result.summary()
    if values["deadlock"] or values["lost_frames"]:
        raise KnotlessError(f"{network} at {offered:g}: {result.verdict}")
    lines_mbps = RATE_MBPS * len(plan.fabric.hosts) * PACKET_BYTES / (PACKET_PHITS * PHIT_BYTES)
    return {
        "network": network,
        "simulator": "ours",
        "load": offered,
        "seed": seed,
        "accepted": round(values["throughput_mbps"] / lines_mbps, 6),
        "cycles": round(values["latency_us"]["mean"] / CYCLE_US, 4),
        "result_sha256": values["result_sha256"],
    }


def measure() -> Iterator[dict[str, Any]]:
    """Yield the rows of CAMINOS, each followed by ours of the same network, load and seed."""
    for row in reference():
        yield row
        yield simulated(row["network"], row["load"], row["seed"])


def means(rows: Sequence[Mapping[str, Any]], network: str) -> dict[str, dict[float, Any]]:
    """Return simulator -> load -> mean (accepted, cycles) over the seeds."""
    found: dict[str, dict[float, Any]] = {"caminos": {}, "ours": {}}
    for simulator, by_load in found.items():
        own = [r for r in rows if (r["network"], r["simulator"]) == (network, simulator)]
        for offered in dict.fromkeys(row["load"] for row in own):
            of_load = [row for row in own if row["load"] == offered]
            by_load[offered] = tuple(
                fmean(row[key] for row in of_load) for key in ("accepted", "cycles")
            )
    return found


def compared(rows: Sequence[Mapping[str, Any]], network: str) -> tuple[float, float]:
    """Return the lower saturation, and the largest difference of latencies below 60 % of it."""
    found = means(rows, network)
    saturation = min(max(row[0] for row in by_load.values()) for by_load in found.values())
    apart = [
        abs(ours[1] / found["caminos"][offered][1] - 1)
        for offered, ours in found["ours"].items()
        if offered < COMPARED_SHARE * saturation
    ]
    return saturation, max(apart)


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/validation.md."""
    lines = [
        "| network, load | latency of CAMINOS | ours | difference | accepted by CAMINOS | ours |",
        "|---" * 6 + "|",
    ]
    notes = []
    for network in NETWORKS:
        found = means(run["rows"], network)
        for offered, (accepted, cycles) in found["caminos"].items():
            own_accepted, own_cycles = found["ours"][offered]
            lines.append(
                f"| {network}, {offered:g} | {cycles:,.1f} | {own_cycles:,.1f} |"
                f" {own_cycles / cycles - 1:+.1%} | {accepted:.3f} | {own_accepted:.3f} |"
            )
        saturation, apart = compared(run["rows"], network)
        notes.append(
            f"On the {network}, latencies below {COMPARED_SHARE:.0%} of the lower saturation"
            f" ({saturation:.3f}) differ by {apart:.1%} at most."
        )
    seeds = len({row["seed"] for row in run["rows"]})
    last = f"Latencies in cycles, means of {seeds} seeds; loads in phits per cycle and host."
    return [*lines, "", " ".join([*notes, last]), "", machine_line(run)]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(as_json: bool) -> None:
    """Simulate the networks and loads of CAMINOS, and compare latencies.

    Example: python -m bench.load_latency --json > docs/benchmarks/load-latency.json
    """
    begun = about()
    rows = list(measure())
    click.echo(
        as_stored(begun, rows=rows) if as_json else "\n".join(table_of({**begun, "rows": rows}))
    )


if __name__ == "__main__":
    run_benchmark(main)
