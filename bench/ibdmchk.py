"""OpenSM's routes on simulated networks: the verdicts of ``check`` and of ``ibdmchk``.

The Debian packages opensm, ibsim-utils, infiniband-diags and ibutils. Nothing is read or written
outside temporary directories. ``--count N`` judges the first N networks only; ``--cures`` lets
OpenSM route those that can deadlock again, with the options of each remedy.

Each network is routed by several engines, with and without failed links and with several LIDs a
port. Both programs read the same state: ibdmchk the files that OpenSM writes for it, ``check``
what ibnetdiscover and saquery print and OpenSM's dumps.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from bench.support import opensm
from knotless.base.errors import FabricError
from knotless.importers.paths import read_paths
from knotless.topologies import Fabric, load
from knotless.topologies.formats.ibnetdiscover import discovered
from knotless.topologies.validate import validate
from knotless.verification.imported import verdict_of_imported
from knotless.verification.remedies import remedies_of
from knotless.verification.remedy_engine import ROOTS

PROGRAMS = ("opensm", "ibsim", "ibnetdiscover", "saquery", "ibdmchk")
WHOLE = {
    "ring,6": ("minhop", "lash", "dfsssp", "sssp", "dor"),
    "mesh,4,4": ("minhop", "dor", "lash", "dfsssp"),
    "torus,4,4": ("minhop", "dor", "dfsssp", "torus-2QoS"),
    "fattree2,4": ("ftree", "updn", "minhop"),
    "fattree3,4": ("ftree", "updn"),
    "clos,4,hosts=2": ("minhop", "ftree"),
    "random,10,degree=3,hosts=1,seed=1": ("minhop", "lash", "dfsssp", "dnup", "sssp"),
    "random,12,degree=4,hosts=1,seed=2": ("minhop", "lash", "dfsssp"),
}
FAILED = {"fattree2,4": 2, "clos,4,hosts=2": 2, "torus,3,3": 3, "mesh,3,3": 2}
"""Fabrics and how many of their links fail."""
LMC = {"ring,5": ("minhop", 1), "torus,3,3": ("dfsssp", 2), "ring,6": ("lash", 1)}
_READY_S = 90


def cases() -> Iterator[tuple[str, Fabric, str, int]]:
    """Yield (name, fabric, engine, LMC)."""
    for spec, engines in WHOLE.items():
        for engine in engines:
            yield spec, load(spec), engine, 0
    for spec, count in FAILED.items():
        for seed, engine in enumerate(("minhop", "lash", "dfsssp")):
            yield f"{spec} without {count} links", without(load(spec), count, seed), engine, 0
    for spec, (engine, lmc) in LMC.items():
        yield spec, load(spec), engine, lmc


def without(fabric: Fabric, count: int, seed: int) -> Fabric:
    """Return the fabric without some links, still connected."""
    draw = random.Random(seed)  # noqa: S311
    while True:
        failed = set(draw.sample(range(len(fabric.links)), count))
        kept = tuple(link for i, link in enumerate(fabric.links) if i not in failed)
        degraded = replace(fabric, links=kept)
        try:
            validate(degraded)
        except FabricError:
            continue
        return degraded


@dataclass(frozen=True)
class Judged:
    """The engine that OpenSM used, the verdicts of ibdmchk and of check, and options that cure."""

    used: str
    theirs: bool | None
    ours: bool | None
    cures: tuple[Mapping[str, str], ...]

    @property
    def text(self) -> str:
        """Both verdicts."""
        shown = {True: "acyclic", False: "cyclic", None: "unknown"}
        return f"(tables of {self.used}): ibdmchk {shown[self.theirs]}, check {shown[self.ours]}"


def judged(fabric: Fabric, options: str, roots: str = "") -> Judged:
    """Return the verdicts on what OpenSM does with these options, and a file of root GUIDs."""
    with opensm.network(fabric) as network:
        options = options.replace(ROOTS, str(network.write("roots", roots)))
        torus = network.write("torus", opensm.torus_file(fabric)) if fabric.grid else ""
        folder = network.write("none", "").parent
        with network.manager(f"{options}torus_config {torus}\n") as log:
            deadline = time.monotonic() + _READY_S
            while "SUBNET UP" not in (log.read_text(errors="replace") if log.exists() else ""):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{fabric.name}: OpenSM is not ready after {_READY_S} s")
                time.sleep(0.1)
            read = folder / "read"
            read.mkdir()
            cables = network.tool("ibnetdiscover")
            (read / "cables").write_text(cables)
            lids = _lids(cables)
            records = [
                network.tool("saquery", "--src-to-dst", f"{min(own)}:{lid}")
                for own in lids.values()
                for own_lids, others in lids.items()
                for lid in others
                if others is not own and own_lids
            ]
            (read / "records").write_text("".join(records))
        for name in ("opensm-lfts.dump", "opensm-sl2vl.dump"):
            shutil.copy(folder / name, read / name)
        used = re.findall(r"(\S+) tables configured on all", log.read_text(errors="replace"))
        rows = [
            f"0x{node:016x} {lid} {sl}\n"
            for record in "".join(records).split("PathRecord dump:")[1:]
            for slid, lid, sl in [_fields(record)]
            for node, own in lids.items()
            if slid in own
        ]
        network.write("sls", "".join(rows))
        files = ["-s", "opensm-subnet.lst", "-f", "opensm.fdbs", "-m", "opensm.mcfdbs"]
        output = network.tool("ibdmchk", *files, "-c", "sls", "-d", "opensm-sl2vl.dump", "-l", "0")
        theirs = None if "credit loop" not in output else "no credit loops found" in output
        imported = read_paths([read])
        verdict = verdict_of_imported(imported)
        remedies = remedies_of(imported, verdict) if verdict.cycle else ()
        cures = tuple(remedy.files for remedy in remedies if remedy.kind == "engine")
        return Judged(used[-1] if used else "?", theirs, verdict.acyclic, cures)


def _lids(cables: str) -> dict[int, range]:
    """Return the LIDs of each adapter by the GUID of its node."""
    network = discovered(cables)
    return {
        int(node[2:], 16): range(port.lid, port.lid + 2**port.lmc)
        for (node, _), port in network.ids.items()
        if node.startswith("H")
    }


def _fields(record: str) -> tuple[int, int, int]:
    values = dict(re.findall(r"(dlid|slid|sl)\.+(\S+)", record))
    return int(values["slid"], 0), int(values["dlid"], 0), int(values["sl"], 0)


def main() -> None:
    """Judge all networks; exit with status 1 if a verdict differs or a remedy does not cure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int)
    parser.add_argument("--cures", action="store_true", help="also route with the remedies")
    chosen = parser.parse_args()
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    if lacking:
        sys.exit(f"not installed: {', '.join(lacking)}")
    wrong = 0
    for name, fabric, engine, lmc in islice(cases(), chosen.count):
        verdicts = judged(fabric, f"routing_engine {engine}\nlmc {lmc}\n")
        differs = verdicts.theirs is not None and verdicts.theirs != verdicts.ours
        wrong += differs
        line = f"{name}, {engine}, LMC {lmc} {verdicts.text}{'  DIFFERENT' if differs else ''}"
        print(line, flush=True)  # noqa: T201
        for files in verdicts.cures if chosen.cures else ():
            options, roots = files["opensm.conf"], files.get("root_guids", "")
            cured = judged(fabric, f"{options}lmc {lmc}\n", roots)
            wrong += cured.ours is not True
            line = f"  with {', '.join(options.splitlines())} {cured.text}"
            print(line + "  NOT CURED" * (cured.ours is not True), flush=True)  # noqa: T201
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
