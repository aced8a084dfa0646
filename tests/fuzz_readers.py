"""Damage files of real fabrics and report those that the readers do not survive.

Each case damages one file of a small fabric: it is cut off, bits flip, parts are repeated, lost or
come from other files, and values of JSON are removed, exchanged or of another type. The result must
be a verdict or an error of one line, within 10 s of CPU time and 2 GiB.

Example: .venv/bin/python -m tests.fuzz_readers --cases 1000000 --seed 1 --workers 1
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from knotless.base.errors import KnotlessError
from knotless.importers.fabric import TableFabric
from knotless.importers.file_kinds import FoundFile
from knotless.importers.not_read import NotRead
from knotless.importers.paths import assembled, read_paths
from knotless.importers.reading import read_source
from knotless.importers.sonic.pauses import pauses_of
from knotless.importers.sources import Source
from knotless.verification.imported import verdict_of_imported
from knotless.verification.triage import triage
from tests.support.bgp_configurations import write_bgp
from tests.support.readable_fabrics import fabrics
from tests.support.router_nets import leaf_spine

CPU_LIMIT_S = 10
LIMIT_BYTES = 2 << 30
BATCH = 500
PIECES = (
    *(b"", b"0", b"-1", b"255", b"99999999999999999999", b"\0", b"\n", b"\t", b" ", b"x", b"\xff"),
    *(b'"', b"{", b"}", b"[", b"]", b",", b":", b"/", b"|", b"@", b"0x", b"/33", b"::", b"null"),
    *(b"1e999", b"NaN", b"true", b"Vlan", b"PortChannel1", b"Ethernet0", b"leaf1", b"S-", b"H-"),
    *(b"neighbor ", b"router bgp ", b"route-map M permit 10\n", b"peer-group", b"ip route "),
    *(b"lid ", b"ROUTE_TABLE:", b"actions=", b"group:1", b"priority=", b"master br0", b"Vrf1"),
)
VALUES: tuple[Any, ...] = (None, True, -1, 0, 2**70, 1.5, "", "x", "0", "9" * 30, [], {}, [[]])


@dataclass(frozen=True)
class Base:
    """The files of a fabric: as they are, and as readers read them; by what it has its routes."""

    sources: tuple[Source, ...]
    files: tuple[FoundFile | NotRead | None, ...]
    routes_by: str | None = None


@dataclass(frozen=True)
class Ended:
    """The end of a case: a verdict (``complaint`` is empty) or a line; ``wrong`` is a violation."""

    number: int
    file: str
    complaint: str
    wrong: str | None


@cache
def bases() -> tuple[Base, ...]:
    """Return all fabrics that are damaged; archives are files that are not read before."""
    with tempfile.TemporaryDirectory(prefix="knotless-fuzz-") as folder:
        read_bases = []
        configured = write_bgp(leaf_spine(2, 2), Path(folder) / "bgp")
        loopback = "auto lo\niface lo inet loopback\n    address 10.1.0.1/32\n"
        (configured / "leaf0" / "interfaces").write_text(loopback)
        for place in (*fabrics(Path(folder)), configured):
            named = [path for path in sorted(place.rglob("*")) if path.is_file()]
            used = tuple(Source(path, False, path.read_bytes(), path.parent) for path in named)
            routes_by = "bgp" if place == configured else None
            read = (None if _is_archive(source) else _read(source, routes_by) for source in used)
            read_bases.append(Base(used, tuple(read), routes_by))
    return tuple(read_bases)


def _read(source: Source, routes_by: str | None) -> FoundFile | NotRead:
    return read_source(source, configurations=routes_by is not None)


def _is_archive(source: Source) -> bool:
    return source.path.name.endswith(".gz")


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return a file with one to three damages."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        begin, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        if kind < 0.1:
            data = data[:begin]
        elif kind < 0.25 and data:
            flipped = bytearray(data)
            for _ in range(rng.choice((1, 1, 8))):
                flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            data = bytes(flipped)
        elif kind < 0.35:
            data = data[:end] + data[begin:]
        elif kind < 0.45:
            data = data[:begin] + data[min(end, begin + rng.randint(0, 400)) :]
        elif kind < 0.55:
            other = rng.choice(rng.choice(bases()).sources).data
            start = rng.randrange(len(other) + 1)
            data = data[:begin] + other[start : start + rng.randint(0, 300)] + data[begin:]
        elif kind < 0.8 and data[:1] in (b"{", b"["):
            data = _changed_json(data, rng)
        else:
            data = data[:begin] + rng.choice(PIECES) + data[begin + rng.randint(0, 12) :]
    return data


def _changed_json(data: bytes, rng: random.Random) -> bytes:
    """Return JSON with a value that is removed, exchanged, or of another type."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return data
    inner, steps = value, rng.randint(0, 6)
    while isinstance(inner, dict | list) and inner:
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        key: Any = rng.choice(keys)
        parent, inner = inner, inner[key]
        steps -= 1
        if steps >= 0 and isinstance(inner, dict | list) and inner:
            continue
        kind = rng.random()
        if kind < 0.2:
            del parent[key]
        elif kind < 0.4 and isinstance(parent, dict):
            parent[rng.choice(("", "x", "Vrf1", "10.0.0.0/33", str(key)[:-1]))] = parent.pop(key)
        elif kind < 0.6:
            parent[key] = rng.choice(list(parent.values()) if isinstance(parent, dict) else parent)
        else:
            parent[key] = rng.choice(VALUES)
        break
    return json.dumps(value).encode()


def case(number: int, seed: int) -> Ended:
    """Run one case."""
    rng = random.Random(f"{seed}/{number}")  # noqa: S311
    base = rng.choice(bases())
    place = rng.randrange(len(base.sources))
    source = base.sources[place]
    name = f"{source.path.parent.name}/{source.path.name}"
    complaint, wrong = "", None
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_LIMIT_S)
    try:
        if _is_archive(source):
            _judge_archive(source.data, rng)
        else:
            changed = Source(source.path, False, damaged(source.data, rng), source.device)
            now = _read(changed, base.routes_by)
            read = [*base.files[:place], now, *base.files[place + 1 :]]
            files = [file for file in read if isinstance(file, FoundFile)]
            skipped = [file for file in read if isinstance(file, NotRead)]
            imported = assembled("fabric", files, (), skipped)
            verdict_of_imported(imported).as_json()
            if isinstance(imported, TableFabric) and imported.configs:
                asdict(triage(imported, pauses_of(imported)))
            imported = assembled("fabric", files, (), skipped, routes_by=base.routes_by)
            verdict_of_imported(imported).as_json()
    except KnotlessError as error:
        complaint = str(error)
        if "\n" in complaint or len(complaint) > 1000:
            wrong = f"not one line: {complaint[:300]!r}"
    except BaseException as error:  # noqa: BLE001 - any exception is reported
        frame = traceback.extract_tb(error.__traceback__)[-1]
        wrong = f"{type(error).__name__}: {str(error)[:200]} ({frame.filename}:{frame.lineno})"
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return Ended(number, name, complaint, wrong)


def _judge_archive(data: bytes, rng: random.Random) -> None:
    """Damage an archive, or the tar archive in it; read it from disk."""
    data = (
        damaged(data, rng)
        if rng.random() < 0.3
        else gzip.compress(damaged(gzip.decompress(data), rng), 0)
    )
    with tempfile.NamedTemporaryFile(prefix="knotless-fuzz-") as file:
        file.write(data)
        file.flush()
        verdict_of_imported(read_paths([file.name])).as_json()


def _out_of_time(*_: object) -> NoReturn:
    raise TimeoutError(f"took more than {CPU_LIMIT_S} s of CPU time")


def run_cases(first: int, end: int, seed: int, workers: int) -> Iterator[Ended]:
    """Run the cases from ``first`` up to ``end`` (exclusive); yield how they ended, in order."""
    bases()
    batches = [range(begin, min(begin + BATCH, end)) for begin in range(first, end, BATCH)]
    with multiprocessing.get_context("fork").Pool(workers, _prepare) as pool:
        for batch in pool.imap(partial(_run_batch, seed=seed), batches):
            yield from batch


def _prepare() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
    signal.signal(signal.SIGVTALRM, _out_of_time)


def _run_batch(cases: range, seed: int) -> list[Ended]:
    return [case(number, seed) for number in cases]


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    for done in run_cases(chosen.first, chosen.first + chosen.cases, chosen.seed, chosen.workers):
        counts["wrong" if done.wrong else "a line" if done.complaint else "a verdict"] += 1
        if done.wrong is not None:
            print(f"case {done.number}: {done.file}: {done.wrong}", flush=True)  # noqa: T201
        if done.number % 10_000 == 9_999:
            print(f"{done.number + 1} cases: {dict(counts)}", flush=True)  # noqa: T201
    print(f"{chosen.cases} cases of seed {chosen.seed}: {dict(counts)}")  # noqa: T201
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(_main())
