"""Our routing engines compared with OpenSM's, on the same fabrics."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click
import numpy as np

from bench.support.entry import Run, benchmark, machine_line, run_benchmark
from bench.support.opensm import (
    CRASHED,
    UNFINISHED,
    Network,
    Routed,
    missing,
    network,
    roots_file,
    torus_file,
)
from knotless.base.errors import KnotlessError
from knotless.cli.numbers import Whole
from knotless.routing.engine import engine_named
from knotless.routing.graphs.channels import channels_of
from knotless.routing.graphs.task import MAX_VCS, Task
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, load
from knotless.verification.checked_plan import CheckedPlan

LIMIT_S = 100.0
"""Time limit of OpenSM, including discovery and programming of tables."""
ENOUGH_S = 20.0
"""Measurements that take longer are not repeated."""

QUICK_MS = 100.0
"""Shorter measurements are repeated more often, up to 20 times, because they vary more."""

TREES = ("fattree", "lsft", "clos")
_GRID = [("dor", "torus-2QoS"), ("updown", "updn"), ("lash", "lash"), ("dfsssp", "dfsssp")]
_TREE = [
    ("minimal", "minhop"),
    ("updown", "updn"),
    ("fattree", "ftree"),
    ("lash", "lash"),
    ("dfsssp", "dfsssp"),
]
_LSFT = [*_TREE[:2], ("lsft", "ftree"), *_TREE[2:]]
ROWS: dict[str, list[tuple[str, str]]] = {
    "mesh,4,4,hosts=4": [("dor", "dor"), *_GRID[1:]],
    "torus,4,4,hosts=4": _GRID,
    "torus,8,8,hosts=4": _GRID,
    "torus,16,16,hosts=4": _GRID,
    "torus,8,8,8": _GRID,
    "fattree2,18": _TREE,
    "lsft,3": _LSFT,
    "lsft,7": _LSFT,
    "lsft,17": _LSFT,
    "random,128,degree=4,hosts=4": [*_GRID[1:], ("dl", "nue")],
}
"""Fabric -> our engine and OpenSM's of the same kind (for nue: dl, the most similar)."""


@dataclass(frozen=True)
class Ours:
    """The result of one of our engines on a fabric.

    routing_ms : median time from numbered channels and hosts to all paths and broadcast trees.
    numbering_ms : median time from the fabric to numbered channels and hosts (OpenSM: discovery).
    """

    routing_ms: float
    numbering_ms: float
    vcs: int
    max_channel_load: int
    minimal: bool
    acyclic: bool


@dataclass(frozen=True)
class Row:
    """Both engines on one fabric, and the lower bound of the largest channel load.

    load_1min : the load of the machine (one-minute average) before its fabric was measured.
    """

    fabric: str
    engine: str
    load_bound: float
    ours: Ours | None
    refused: str
    opensm_engine: str
    opensm: Routed | None
    load_1min: float


def measure_ours(fabric: Fabric, engine: str, repeat: int) -> Ours:
    """Route ``fabric`` several times; return median times and properties of the plan.

    Raises
    ------
    PlanError
        The engine cannot route the fabric with at most 8 virtual channels.

    """
    chosen = engine_named(engine)
    make_plan(fabric, engine)  # raises PlanError, and warms up
    numbering: list[float] = []
    routing: list[float] = []
    while len(routing) < repeat or (sum(routing) < QUICK_MS and len(routing) < 20 * repeat):
        if sum(routing) > 1000 * ENOUGH_S:
            break
        began = time.perf_counter()
        channels = channels_of(fabric)
        task = Task(fabric, channels, None, "spread", None)
        task.host_ranks, task.receivers  # noqa: B018 - computed at first access
        numbered = time.perf_counter()
        routes = chosen.route(task)
        routing.append(1000 * (time.perf_counter() - numbered))
        numbering.append(1000 * (numbered - began))
    plan = make_plan(fabric, engine)
    assert np.array_equal(plan.routes.channels, routes.channels)  # noqa: S101 - the timed code made this plan
    checked = CheckedPlan(plan)
    summary = checked.summary()
    return Ours(
        statistics.median(routing),
        statistics.median(numbering),
        plan.vcs,
        int(checked.loads.max(initial=0)),
        summary["minimal"] is True,
        summary["acyclic"] is True,
    )


def measure_opensm(opensm: Network, spec: str, engine: str, repeat: int) -> Routed:
    """Let OpenSM route the network several times; return its result with the median time."""
    settings = "nue_max_num_vls 8" if engine == "nue" else ""
    if engine in ("updn", "ftree"):
        switches = opensm.fabric.switches
        top = [i for i, s in enumerate(switches) if not opensm.fabric.hosts_at[s.name]]
        roots = top if spec.startswith(TREES) else [0]
        settings = f"root_guid_file {opensm.write('roots', roots_file(roots))}"
    elif engine == "torus-2QoS":
        settings = f"torus_config {opensm.write('torus', torus_file(opensm.fabric))}"
    runs: list[Routed] = []
    began = time.perf_counter()
    while len(runs) < repeat and time.perf_counter() - began < ENOUGH_S:
        runs.append(opensm.route(engine, settings, LIMIT_S, dump=False))
    times = [run.routing_ms for run in runs if run.routing_ms is not None]
    last = runs[-1] if runs[-1].failure else opensm.route(engine, settings, LIMIT_S, dump=True)
    median = statistics.median(times) if times else None
    return Routed(median, last.virtual_lanes, last.max_channel_load, last.failure)


def rows_of(spec: str, engines: tuple[str, ...], repeat: int, with_opensm: bool) -> Iterator[Row]:
    """Measure both engines on a fabric; ``engines`` empty means all."""
    pairs = [pair for pair in ROWS[spec] if not engines or pair[0] in engines]
    fabric = load(spec)
    load_1min = round(os.getloadavg()[0], 2)
    theirs: dict[str, Routed] = {}
    if with_opensm:
        with network(fabric) as opensm:
            for engine in dict.fromkeys(peer for _, peer in pairs):
                click.echo(f"{spec}: OpenSM's {engine}", err=True)
                theirs[engine] = measure_opensm(opensm, spec, engine, repeat)
    for engine, other in pairs:
        click.echo(f"{spec}: {engine}", err=True)
        ours, refused = None, ""
        try:
            ours = measure_ours(fabric, engine, repeat)
        except KnotlessError as error:
            refused = str(error)
        yield Row(spec, engine, bound(fabric), ours, refused, other, theirs.get(other), load_1min)


def bound(fabric: Fabric) -> float:
    """Return the mean channel load of shortest paths, a lower bound of any largest load."""
    plan = make_plan(fabric, "minimal", select="low-port")
    return float(CheckedPlan(plan).loads.sum() / max(1, len(plan.channels)))


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/performance.md, and in how many rows OpenSM has routes earlier."""
    lines = [
        "| fabric | bound | engine | ms | VCs | load | OpenSM's | ms | VLs | load |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in run["rows"]:
        ours, peer = row["ours"], row["opensm"]
        cells = [row["fabric"], f"{row['load_bound']:,.0f}", row["engine"]]
        if ours is None:
            cells += ["", "", "refused"]
        else:
            cells += [_ms(ours["routing_ms"]), str(ours["vcs"]), f"{ours['max_channel_load']:,}"]
        cells.append(row["opensm_engine"])
        if peer is None:
            cells += ["", "", "not run"]
        else:
            load = _failure(peer["failure"]) or f"{peer['max_channel_load']:,}"
            cells += [_ms(peer["routing_ms"]), str(peer["virtual_lanes"] or ""), load]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", f"{_earlier(run['rows'])} {machine_line(run)}"]


def _failure(reason: str) -> str:
    """Return a failure of OpenSM in few words, or an empty string."""
    for words in (UNFINISHED, CRASHED):
        if reason.startswith(words):
            return words
    return "fails" if reason else ""


def _earlier(measured: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on the rows in which both engines have routes, and OpenSM's are earlier."""
    both = [
        row for row in measured if row["ours"] and row["opensm"] and not row["opensm"]["failure"]
    ]
    earlier = [
        f"`{row['opensm_engine']}` on `{row['fabric']}`"
        for row in both
        if row["opensm"]["routing_ms"] < row["ours"]["routing_ms"]
    ]
    here = f"in {len(earlier)}: {', '.join(earlier)}" if earlier else "in none of them"
    return (
        f"Both sides have routes in {len(both)} of {len(measured)} rows; "
        f"OpenSM's are earlier {here}."
    )


def _ms(value: float | None) -> str:
    """Return three significant digits, as a decimal."""
    if value is None:
        return ""
    digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{round(value, 2 - math.floor(math.log10(value))):,.{min(digits, 3)}f}"


@benchmark(table_of, keys=("fabric",), order=lambda row: list(ROWS).index(row["fabric"]))
@click.option(
    "--only", multiple=True, type=click.Choice(list(ROWS)), help="Measure these fabrics only."
)
@click.option("--engine", "engines", multiple=True, help="Measure these of our engines only.")
@click.option("--repeat", default=5, show_default=True, type=Whole(1, 1000))
def main(run: Run, only: tuple[str, ...], engines: tuple[str, ...], repeat: int) -> None:
    """Compare routing times of our engines and OpenSM's on the same fabrics, in one run.

    Our times are from numbered channels to paths and broadcast trees. OpenSM's are from its log,
    from the start of its routing callbacks to the first table that it writes. Both are medians.

    Example: .venv/bin/python -m bench.routing --only torus,8,8,hosts=4
    """
    lacking = missing()
    if lacking:
        click.echo(f"OpenSM is skipped: install {' '.join(lacking)} to compare with it", err=True)
    run.more(vcs_most=MAX_VCS, limit_s=LIMIT_S, repeat=repeat)
    for spec in only or ROWS:
        run.add(*(asdict(row) for row in rows_of(spec, engines, repeat, not lacking)))


if __name__ == "__main__":
    run_benchmark(main)
