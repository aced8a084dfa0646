"""What a session takes to judge other next hops of one router, of a Clos network in memory.

A session (:class:`knotless.sessions.Session`) has the files of SONiC switches in memory
(:mod:`bench.support.clos_files`). One route of a random leaf or core switch gets other next hops,
and then its own again. Each time is that of the processor from the routes that have changed to the
verdict and its findings with their causes; reading the file is apart.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

import click

import knotless as kn
from bench.since import SIZE
from bench.support.entry import Run, benchmark, machine_line, run_benchmark
from knotless.cli.numbers import Whole
from knotless.sessions import Session
from knotless.verification.verdict_findings import findings

Tables = dict[str, dict[str, str]]


def _onward(tables: Tables) -> list[str]:
    """Return the keys of routes to other switches."""
    return [
        key
        for key, row in tables.items()
        if key.startswith("ROUTE_TABLE:") and row.get("nexthop", "0.0.0.0") != "0.0.0.0"  # noqa: S104
    ]


def _other_hops(tables: Tables, key: str, rng: random.Random) -> dict[str, str]:
    """Return other next hops for a route, of those that the switch has: as many, or fewer."""
    rows = [tables[one] for one in _onward(tables)]
    hops = {
        hop
        for row in rows
        for hop in zip(row["ifname"].split(","), row["nexthop"].split(","), strict=True)
    }
    own = len(tables[key]["ifname"].split(","))
    while True:
        chosen = sorted(rng.sample(sorted(hops), rng.randint(1, own)))
        ports, addresses = (",".join(part) for part in zip(*chosen, strict=True))
        if tables[key] != (row := {"ifname": ports, "nexthop": addresses}):
            return row


def _judged(session: Session, file: str, tables: Tables) -> tuple[float, Any]:
    """Return the milliseconds of the processor that a change takes, and the verdict."""
    read = session.read({file: json.dumps(tables)})
    begun = time.process_time_ns()
    verdict = session.apply(read).source
    list(findings(verdict, None))
    return (time.process_time_ns() - begun) / 1e6, verdict


def measure(session: Session, times: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield a row for changes at leaves and at cores, and for those that restore the routes."""
    rng = random.Random(seed)  # noqa: S311
    routers = sorted({file.source.path.parent.name for file in session.snapshot.files})
    for kind in ("leaf", "core"):
        took: dict[str, list[float]] = {"other next hops": [], "its own again": []}
        seen = {"cycles": 0, "undelivered": 0}
        before = session.full_checks.total()
        for _ in range(times):
            router = rng.choice([name for name in routers if kind in name])
            file = f"{router}/appl_db.json"
            tables: Tables = json.loads(session.snapshot.text(file))
            key = rng.choice(_onward(tables))
            changed = {**tables, key: _other_hops(tables, key, rng)}
            ms, verdict = _judged(session, file, changed)
            took["other next hops"].append(ms)
            seen["cycles"] += verdict.acyclic is False
            seen["undelivered"] += verdict.undelivered > 0
            took["its own again"].append(_judged(session, file, tables)[0])
        for changes, of_kind in took.items():
            cuts = quantiles(of_kind, n=100, method="inclusive")
            yield {
                "at": kind,
                "changes": changes,
                "times": times,
                "median_ms": round(cuts[49], 2),
                "p99_ms": round(cuts[98], 2),
                "full_checks": session.full_checks.total() - before,
                **(seen if changes == "other next hops" else {"cycles": 0, "undelivered": 0}),
            }


def table_of(run: Mapping[str, Any]) -> Sequence[str]:
    """Return the table of a stored run."""
    lines = [
        "| at a | one route gets | times | median ms | 99 % ms | cycles | not all delivered |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in run["rows"]:
        lines.append(
            f"| {row['at']} | {row['changes']} | {row['times']} | {row['median_ms']:.1f} |"
            f" {row['p99_ms']:.1f} | {row['cycles']} | {row['undelivered']} |"
        )
    begun = (
        f"It begins with {run['read_s']:.1f} s of reading, {run['check_s']:.1f} s of a full check"
    )
    return [
        *lines,
        "",
        f"{run['switches']} SONiC switches; milliseconds of the processor. {begun} and"
        f" {run['resident_s']:.1f} s to follow the packets of each destination.",
        "",
        machine_line(run),
    ]


@benchmark(table_of)
@click.option("--times", type=Whole(2, 10_000), default=100, show_default=True)
@click.option("--seed", type=Whole(), default=1, show_default=True)
def main(run: Run, times: int, seed: int) -> None:
    """Time other next hops of one router among 1,024 switches in memory.

    Example: python -m bench.session --json > docs/benchmarks/session.json
    """
    with TemporaryDirectory() as name:
        folder = Path(name, "clos")
        command = [sys.executable, "-m", "bench.support.clos_files", str(folder), *map(str, SIZE)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        marks = (time.process_time() for _ in count())
        begun = next(marks)
        snapshot = kn.snapshot(folder)
        read = next(marks)
        snapshot.verdict()
        checked = next(marks)
        session = kn.session(snapshot)
        run.more(
            switches=sum(1 for _ in folder.iterdir()),
            read_s=round(read - begun, 2),
            check_s=round(checked - read, 2),
            resident_s=round(next(marks) - checked, 2),
        )
        for row in measure(session, times, seed):
            run.add(row)


if __name__ == "__main__":
    run_benchmark(main)
