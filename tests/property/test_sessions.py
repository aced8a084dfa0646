"""A session says what a full check says, whatever was edited."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import knotless as kn
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
            assert got.causes == expected.causes
            assert session.snapshot.findings().rows == full.findings().rows
            seen["resident"] += session.full_checks.total() == checks
            seen["closed"] += was is not False and got.acyclic is False
            seen["opened"] += was is False and got.acyclic is not False
            was = got.acyclic
        seen.update({f"full: {reason}": n for reason, n in session.full_checks.items()})
    return seen


def test_as_a_full_check_after_twenty_edits(tmp_path: Path) -> None:
    seen = compare_edits(tmp_path, seed=1, count=20)
    assert seen["resident"] > 10
    assert seen["closed"]
    assert seen["opened"]


@pytest.mark.deep
def test_as_a_full_check_after_a_thousand_edits(tmp_path: Path) -> None:
    seen = compare_edits(tmp_path, seed=2, count=1000)
    print(seen)  # noqa: T201 - for people who run it with -s
    assert seen["resident"] >= 700
    assert min(seen["closed"], seen["opened"]) >= 100
