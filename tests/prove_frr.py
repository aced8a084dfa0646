"""Compare the routes that are computed from configurations with those that real FRR installs.

Draws leaf-spines, rings and random graphs with random statements of those that are followed, runs
FRR on them in network namespaces of its own, and compares all routes of all routers. Needs root,
and Debian's packages of FRR unpacked into a folder, not installed:

    apt-get download frr libyang2 libc-ares2 libsnmp40 libpci3 libcap2 libjson-c5
    for package in *.deb; do dpkg -x $package FOLDER; done

Example: python -m tests.prove_frr --frr FOLDER --cases 20 --seed 1
With --store, the routes of named cases are written to tests/data/frr_routes.json instead.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from knotless.base.errors import KnotlessError
from knotless.cli.output import say
from knotless.importers.file_kinds import FoundFile
from knotless.importers.findings import Findings
from knotless.importers.reading import read_source
from knotless.importers.routers.bgp import computed_routes
from knotless.importers.routers.cables import Routes as RoutesOfRouter
from knotless.importers.routers.cables import cabling_of
from knotless.importers.routers.files import routers_of
from knotless.importers.routers.interfaces import Interfaces
from knotless.importers.sources import sources
from tests.support.frr_fabrics import CASES, FrrFabric, case, random_fabric
from tests.support.real_frr import Routes, prepare, real_routes

STORED = Path(__file__).parent / "data" / "frr_routes.json"


def read_and_computed(folder: Path) -> tuple[Mapping[str, RoutesOfRouter], Findings]:
    """Return the routes that are computed for the files of a folder, and what is missing."""
    files = [
        file
        for source in sources([folder], [])
        if isinstance(file := read_source(source, configurations=True), FoundFile)
    ]
    findings = Findings()
    routers, cables = routers_of(files, findings)
    no_routes: dict[str, RoutesOfRouter] = {router.name: {} for router in routers}
    cabling = cabling_of(routers, no_routes, cables, Interfaces(routers), findings)
    return computed_routes(routers, cabling, findings), findings


def computed(fabric: FrrFabric, folder: Path) -> tuple[dict[str, Routes], Findings]:
    """Return the routes of a fabric, which is written to a folder, in the form of real ones."""
    routes, findings = read_and_computed(fabric.write(folder))
    return {
        name: {
            prefix: sorted([hop.address or "", hop.interface or ""] for hop in hops)
            for prefix, hops in sorted(of_router.items())
        }
        for name, of_router in routes.items()
    }, findings


def differences(one: dict[str, Routes], other: dict[str, Routes]) -> list[str]:
    """Return the routes in which two results differ."""
    return [
        f"{router} {prefix}: {one[router].get(prefix)}, real {other[router].get(prefix)}"
        for router in sorted(one)
        for prefix in sorted(one[router].keys() | other[router].keys())
        if one[router].get(prefix) != other[router].get(prefix)
    ]


def _compare(seed: int, frr: Path) -> str:
    """Return what a case shows: ``same``, ``unknown``, or how the routes differ."""
    fabric = random_fabric(random.Random(seed))  # noqa: S311 - cases, not secrets
    with tempfile.TemporaryDirectory() as name:
        try:
            routes, findings = computed(fabric, Path(name))
        except KnotlessError as error:
            return f"refused: {error}"
    if findings.gaps:
        return f"unknown: {next(iter(findings.gaps))}"
    different = differences(routes, real_routes(fabric, frr))
    return "same" if not different else "DIFFERENT: " + "; ".join(different)


def main() -> int:
    """Run the cases; the status is 1 if some differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--frr", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", nargs="*", metavar="CASE", help="all cases, without names")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if not chosen.inside:
        words = [sys.executable, "-m", "tests.prove_frr", *sys.argv[1:], "--inside"]
        return subprocess.run(["unshare", "-mn", *words], check=False).returncode
    prepare()
    frr = chosen.frr.resolve()
    if chosen.store is not None:
        routes = json.loads(STORED.read_text()) if chosen.store else {}
        routes |= {name: real_routes(case(name), frr) for name in chosen.store or CASES}
        lines = (f"{json.dumps(name)}: {json.dumps(routes[name])}" for name in CASES)
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    results = []
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        results.append(_compare(seed, frr))
        say(f"seed {seed}: {results[-1]}")
    different = [result for result in results if result.startswith("DIFFERENT")]
    same = results.count("same")
    say(f"{same} same, {len(different)} different, {len(results) - same - len(different)} unknown")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
