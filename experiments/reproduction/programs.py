"""The papers' NAS Parallel Benchmarks, compared with our runs of ``nas``."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.framework.experiment import EMULATION, SIMULATION
from experiments.framework.routed import Routed
from experiments.reproduction.claim import Claim, Compute
from experiments.reproduction.figures import Row, ratios, typical, where
from runs.spread import Spread

DL, UPDOWN = where(engine="dl", vcs=2), where(engine="updown", vcs=1)

TABLES = {
    ("Table 4, A", "irregular-a"): {
        "CG.S.16": (0.20450, 0.20600),
        "LU.W.16": (7.76525, 7.78050),
        "IS.S.16": (0.01850, 0.01886),
        "IS.S.32": (0.02091, 0.02169),
        "IS.S.64": (0.11751, 0.11798),
    },
    ("Table 5, B", "irregular-b"): {
        "CG.S.16": (0.20400, 0.20325),
        "LU.W.16": (7.77257, 7.79975),
        "IS.S.16": (0.01838, 0.01846),
        "IS.S.32": (0.02052, 0.02087),
        "IS.S.64": (0.11681, 0.11704),
    },
    ("Table 6, mesh", "mesh,4,4"): {
        "CG.S.16": (0.20325, 0.20433),
        "LU.W.16": (7.76200, 7.78100),
        "IS.S.16": (0.01836, 0.01842),
        "IS.S.32": (0.02052, 0.02039),
        "IS.S.64": (0.11673, 0.11686),
    },
    ("Table 7, torus", "torus,4,4"): {
        "CG.S.16": (0.20367, 0.20367),
        "LU.W.16": (7.75225, 7.77100),
        "IS.S.16": (0.01820, 0.01837),
        "IS.S.32": (0.02008, 0.02013),
        "IS.S.64": (0.11631, 0.11580),
    },
}
"""Seconds with descending layers and 2 virtual channels, and with up*/down* and 1."""

ENGINES_WHY = (
    "The paper's times are mostly time in software on the hosts, which does not depend on routes "
    "(as its Table 8 and its text say). In simulation, ours are times of the network alone: "
    "computing and software take no time. In emulation, slow lines dominate. CG and LU send "
    "thousands of messages in sequence and take minutes on links with delays of milliseconds; an "
    "emulator on two cores is seldom in time for so long. In an all-to-all of 32 emulated "
    "processes, it never was. Late runs are not counted."
)


def _named(family: str, row: Row) -> bool:
    name = Routed(row["fabric"]).name
    return name == family or name.startswith(f"{family},hosts=")


def _engines(family: str, program: str) -> Compute:
    kernel, problem_class, processes = program.split(".")
    asked = {"kernel": kernel.lower(), "class": problem_class, "processes": int(processes)}

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(**asked)
        here = [row for row in rows if test(row) and _named(family, row)]
        return typical(ratios(here, "seconds", DL, UPDOWN, ("fabric",)))

    return compute


SIMULATED = ("CG.S.16", "LU.W.16", "IS.S.32", "IS.S.64")
"""Programs that cannot run in time on fabrics emulated by a small machine."""
PROGRAMS_000 = [
    Claim(
        "000",
        table,
        f"{program}: time of DL over that of up\\*/down\\*",
        by_layers_s / by_tree_s,
        "nas",
        _engines(family, program),
        ENGINES_WHY,
        3,
        (SIMULATION,) if program in SIMULATED else (EMULATION, SIMULATION),
    )
    for (table, family), programs in TABLES.items()
    for program, (by_layers_s, by_tree_s) in programs.items()
]

LOOPS = ("mesh,4,4", "torus,4,4", "fattree,2,4,2", "clos,4,hosts=2")
COMMUNICATING = ("is", "cg", "ft", "mg", "lu")


def _speed(over: tuple[str, ...], under: str, kernels: tuple[str, ...]) -> Compute:
    """Return the speed of kernels on fabrics ``over``, divided by that on ``under``, same links."""

    def compute(rows: Sequence[Row]) -> Spread | None:
        known = [
            {
                **row,
                "name": Routed(row["fabric"]).name,
                "links": row["fabric"].partition(",rate=")[2],
                "speed": 1 / row["seconds"],
            }
            for row in rows
            if row["kernel"] in kernels and row["seconds"] and row["processes"] == 16
        ]
        found: dict[tuple[str, ...], list[float]] = {}
        keys = ("kernel", "class", "links")
        for name in over:
            each = ratios(known, "speed", where(name=name), where(name=under), keys)
            found |= {(name, *key): values for key, values in each.items()}
        return typical(found)

    return compute


NETWORK_ONLY = (
    "The paper runs class B on lines of 1 Gbit/s, where most of the time is computing. Ours are "
    "classes S and W, without computing in simulation, and with delays a thousand times as long in "
    "emulation. So the cost of an additional hop is fully visible."
)
PROGRAMS_004 = [
    Claim(
        "004",
        "Figure 12",
        "Speed on looped fabrics over that on one switch ('over 0.9 in most')",
        0.9,
        "nas",
        _speed(LOOPS, "flat,16", COMMUNICATING),
        NETWORK_ONLY,
    ),
    Claim(
        "004",
        "Figure 12",
        "FT and IS: speed on the M-tree over that on the torus ('markedly worse')",
        1.0,
        "nas",
        _speed(("mtree,4,4",), "torus,4,4", ("ft", "is")),
        "The paper prints no number. A value below 1 means that the M-tree is worse here too.",
    ),
]
