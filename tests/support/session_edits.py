"""Random edits of fabrics in memory, each compared with a full check.

``python -m tests.support.session_edits --json`` counts by what 1,000 edits were answered.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

import knotless as kn
from bench.support.entry import Run, benchmark, run_benchmark
from knotless.cli.numbers import Whole
from knotless.sessions import Session
from tests.support.fabric_edits import buffered, write_files
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import clos, leaf_spine, random_net

Tables = dict[str, Any]
NETS: tuple[Callable[[], RouterNet], ...] = (
    lambda: buffered(clos(2, 2, 2, 1)),
    lambda: leaf_spine(3, 2),
    lambda: random_net(7),
    lambda: clos(2, 2, 2, 2),
)


class Edits:
    """Random edits of the routes, and sometimes of the configuration, of a fabric's switches."""

    def __init__(self, session: Session, rng: random.Random) -> None:
        self.session, self.rng = session, rng
        self.routers = sorted({file.source.path.parent.name for file in session.snapshot.files})
        self.first = {name: self.tables(name, "appl_db.json") for name in self.routers}
        self.edited: list[tuple[str, str]] = []

    def tables(self, router: str, file: str) -> Tables:
        tables: Tables = json.loads(self.session.snapshot.text(f"{router}/{file}"))
        return tables

    def ports(self, router: str) -> list[tuple[str, str]]:
        """Return interfaces and addresses of the next hops that a router had first."""
        hops = {
            hop
            for key, row in self.first[router].items()
            if key.startswith("ROUTE_TABLE:") and row.get("nexthop")
            for hop in zip(row["ifname"].split(","), row["nexthop"].split(","), strict=False)
            if hop[1] not in ("", "0.0.0.0")  # noqa: S104
        }
        return sorted(hops)

    def routed(self, router: str) -> list[str]:
        """Return the keys of routes that a router had first by next hops."""
        return [
            key
            for key, row in self.first[router].items()
            if key.startswith("ROUTE_TABLE:") and row.get("nexthop", "0")[0] != "0"
        ]

    def any(self) -> dict[str, str]:
        """Return the next edit: files and their contents."""
        cyclic = self.session.snapshot.verdict()["acyclic"] is False
        if self.edited and self.rng.random() < (0.8 if cyclic else 0.1):
            router, key = self.edited.pop(-1 if cyclic else 0)
            tables = self.tables(router, "appl_db.json")
            tables[key] = self.first[router][key]
            return {f"{router}/appl_db.json": json.dumps(tables)}
        router = self.rng.choice([name for name in self.routers if self.routed(name)])
        if self.rng.random() < 0.08:
            return self.other(router)
        tables = self.tables(router, "appl_db.json")
        key = self.rng.choice(self.routed(router))
        self.edited.append((router, key))
        some = self.ports(router)
        chosen = sorted(self.rng.sample(some, min(len(some), self.rng.choice([0, 1, 1, 2, 3]))))
        if chosen:
            ports, addresses = zip(*chosen, strict=True)
            tables[key] = {"ifname": ",".join(ports), "nexthop": ",".join(addresses)}
        else:
            tables.pop(key, None)
        return {f"{router}/appl_db.json": json.dumps(tables, indent=self.rng.choice([None, 1]))}

    def other(self, router: str) -> dict[str, str]:
        """Return an edit of more than routes to other switches."""
        name = f"{router}/config_db.json"
        tables = self.tables(router, "config_db.json")
        match self.rng.randrange(4):
            case 0:
                tables.setdefault("SYSLOG_SERVER", {})[f"10.0.0.{self.rng.randrange(9)}"] = {}
            case 1:
                ports = tables["PORT_QOS_MAP"]
                ports[self.rng.choice(sorted(ports))]["pfc_enable"] = self.rng.choice(["3", "3,4"])
            case 2:
                name = f"{router}/appl_db.json"
                tables = self.tables(router, "appl_db.json")
                port, address = self.rng.choice(self.ports(router))
                prefix = self.rng.choice(["10.77.0.0/24", "0.0.0.0/0", "10.0.0.0/16"])
                tables[f"ROUTE_TABLE:{prefix}"] = {"ifname": port, "nexthop": address}
            case _:
                name = f"{router}/appl_db.json"
                tables = self.tables(router, "appl_db.json")
                tables = dict(sorted(tables.items()))
        return {name: json.dumps(tables)}


def compare_edits(folder: Path, seed: int, count: int) -> Counter[str]:
    """Compare a session with full checks after ``count`` edits; count verdicts and full checks."""
    rng = random.Random(seed)  # noqa: S311
    seen: Counter[str] = Counter()
    for number, net in enumerate(NETS):
        fabric = write_files(net(), folder / f"fabric{number}")
        session = kn.session(kn.snapshot(fabric))
        edits = Edits(session, rng)
        was = session.snapshot.verdict()["acyclic"]
        for _ in range(count // len(NETS)):
            changes = edits.any()
            full = session.snapshot.with_changes(changes)
            checks = session.full_checks.total()
            expected = full.verdict().source
            got = session.update(changes).source
            assert got == expected, (seed, number, changes.keys())
            assert got.causes == expected.causes, (seed, number, changes.keys())
            rows, expected_rows = session.snapshot.findings().rows, full.findings().rows
            assert rows == expected_rows, (seed, number, changes.keys())
            seen["resident"] += session.full_checks.total() == checks
            seen["closed"] += was is not False and got.acyclic is False
            seen["opened"] += was is False and got.acyclic is not False
            was = got.acyclic
        seen.update({f"full: {reason}": n for reason, n in session.full_checks.items()})
    return seen


def table_of(run: Mapping[str, Any]) -> Sequence[str]:
    """Return the table of a stored run."""
    seen, edits = run["seen"], run["edits"]
    full: Counter[str] = Counter()
    for key, count in seen.items():
        if key.startswith("full: "):
            full[_without_names(key.removeprefix("full: "))] += count
    reasons = sorted(full.items(), key=lambda item: (-item[1], item[0]))
    return [
        "| answered by | edits |",
        "|---|---|",
        f"| the session alone | {seen['resident']:,} |",
        *(f"| a full check: {reason} | {count} |" for reason, count in reasons),
        "",
        f"{edits:,} random edits of routes and settings in {len(NETS)} small fabrics of SONiC"
        f" switches, each answered as a full check answers it: {seen['closed']} closed a cycle,"
        f" {seen['opened']} opened the last one.",
    ]


def _without_names(reason: str) -> str:
    """Return the reason of a full check for any router and prefix."""
    text = re.sub(r"the routes of \S+ changed", "the routes of one router changed", reason)
    return re.sub(r"a route to \S+$", "a route to a prefix", text)


@benchmark(table_of)
@click.option("--edits", type=Whole(len(NETS)), default=1000, show_default=True)
@click.option("--seed", type=Whole(), default=2, show_default=True)
def main(run: Run, edits: int, seed: int) -> None:
    """Compare sessions with full checks after random edits; fail if one differs.

    Example: python -m tests.support.session_edits --json > docs/benchmarks/session-edits.json
    """
    with TemporaryDirectory() as name:
        seen = compare_edits(Path(name), seed, edits)
    run.more(edits=edits, seen=dict(sorted(seen.items())))


if __name__ == "__main__":
    run_benchmark(main)
