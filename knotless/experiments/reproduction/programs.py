"""The papers' NAS Parallel Benchmarks, compared with our runs of ``nas``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from knotless.experiments.framework.experiment import EMULATION, SIMULATION
from knotless.experiments.framework.routed import Routed
from knotless.experiments.reproduction.claim import INFERRED, Claim, Compute
from knotless.experiments.reproduction.figures import Test, ratios, typical, where
from knotless.experiments.reproduction.rows import Row
from knotless.results.spread import Spread, spread_of

ROUTES = ("engine", "vcs", "routes")
ENGINES = (("updown", 1), ("updown", 2), ("updown", 4), ("dl", 2))
"""The rows of tables 4 to 7: engine and virtual channels."""
PROGRAMS = ("CG.S.16", "LU.W.16", "IS.S.16", "IS.S.32", "IS.S.64")
"""Their columns."""
TABLES = {
    ("Table 4, A", "irregular-a"): (
        (0.20600, 7.78050, 0.01886, 0.02169, 0.11798),
        (0.20633, 7.81633, 0.01883, 0.02157, 0.11798),
        (0.20700, 7.78900, 0.01863, 0.02162, 0.11797),
        (0.20450, 7.76525, 0.01850, 0.02091, 0.11751),
    ),
    ("Table 5, B", "irregular-b"): (
        (0.20325, 7.79975, 0.01846, 0.02087, 0.11704),
        (0.20450, 7.79450, 0.01843, 0.02077, 0.11704),
        (0.20400, 7.82300, 0.01854, 0.02090, 0.11698),
        (0.20400, 7.77257, 0.01838, 0.02052, 0.11681),
    ),
    ("Table 6, mesh", "mesh,4,4"): (
        (0.20433, 7.78100, 0.01842, 0.02039, 0.11686),
        (0.20325, 7.78433, 0.01854, 0.02043, 0.11670),
        (0.20433, 7.78300, 0.01833, 0.02029, 0.11667),
        (0.20325, 7.76200, 0.01836, 0.02052, 0.11673),
    ),
    ("Table 7, torus", "torus,4,4"): (
        (0.20367, 7.77100, 0.01837, 0.02013, 0.11580),
        (0.20367, 7.75350, 0.01837, 0.02010, 0.11631),
        (0.22467, 7.71600, 0.01835, 0.02006, 0.11629),
        (0.20367, 7.75225, 0.01820, 0.02008, 0.11631),
    ),
}
"""Seconds, in the order of ENGINES and PROGRAMS."""

ENGINES_WHY = (
    "The paper's times are mostly time in software on the hosts, which does not depend on routes "
    "(as its Table 8 and its text say). In simulation, ours are times of the network alone; "
    "emulated processes compute at least 200 times as fast as on this machine, and communicate by "
    "TCP. The tests of explanations below add the paper's time outside the network. Emulated CG, "
    "LU and IS of 32 and 64 processes are not attempted."
)
REST_WHY = (
    "If the explanation is right, adding the paper's time outside the network to ours must give "
    "the paper's ratio, up to the scatter of its measurements."
)


def _named(family: str, row: Row) -> bool:
    name = Routed(row["fabric"]).name
    return name == family or name.startswith(f"{family},hosts=")


def _engines(family: str, program: str, above: Test, computing: float | None = None) -> Compute:
    kernel, problem_class, processes = program.split(".")
    asked = {"kernel": kernel.lower(), "class": problem_class, "processes": int(processes)}

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(**asked, computing=computing)
        here = [row for row in rows if test(row) and _named(family, row)]
        tree = where(engine="updown", vcs=1)
        return typical(ratios(here, "seconds", above, tree, ROUTES))

    return compute


def _with_the_rest(family: str, program: str, theirs_s: float) -> Compute:
    """Return the ratio of DL to up*/down* if all but the network takes what the paper measured.

    The paper's time with up*/down*, minus our simulated time of the network, is added to both.
    """
    kernel, problem_class, processes = program.split(".")
    asked = {"kernel": kernel.lower(), "class": problem_class, "processes": int(processes)}

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(**asked, computing=None)
        here = [row for row in rows if test(row) and _named(family, row)]
        tree = [row["seconds"] for row in here if (row["engine"], row["vcs"]) == ("updown", 1)]
        layers = [row["seconds"] for row in here if (row["engine"], row["vcs"]) == ("dl", 2)]
        return spread_of(
            [(theirs_s - a + b) / theirs_s for a, b in zip(tree, layers, strict=False)]
        )

    return compute


EMULATED = ("IS.S.16",)
"""Programs that are emulated."""
NAMES = {("updown", 2): "up\\*/down\\*, 2 VCs", ("updown", 4): "up\\*/down\\*, 4 VCs"}
NAMES |= {("dl", 2): "DL"}


def _printed(place: tuple[str, str], engine: int, program: int) -> float:
    return TABLES[place][engine][program] / TABLES[place][0][program]


PROGRAMS_000 = [
    Claim(
        "000",
        place[0],
        f"{program}: time of {NAMES[ENGINES[row]]} over that of up\\*/down\\*, 1 VC",
        _printed(place, row, column),
        "nas",
        _engines(place[1], program, where(engine=ENGINES[row][0], vcs=ENGINES[row][1])),
        ENGINES_WHY,
        3,
        (EMULATION, SIMULATION)
        if program in EMULATED and ENGINES[row] == ("dl", 2)
        else (SIMULATION,),
    )
    for place in TABLES
    for row in (3, 1, 2)
    for column, program in enumerate(PROGRAMS)
]
REST_000 = [
    Claim(
        "000",
        f"Test: time outside the network, {place[0].lower()}",
        f"{program}: DL over up\\*/down\\*, with the paper's time outside the network",
        _printed(place, 3, column),
        "nas",
        _with_the_rest(place[1], program, TABLES[place][0][column]),
        REST_WHY,
        3,
        (SIMULATION,),
        INFERRED,
    )
    for place in TABLES
    for column, program in enumerate(PROGRAMS)
]
COMPUTING_000 = [
    Claim(
        "000",
        f"Test: computing, {place[0].lower()}",
        f"{program}: time of DL over that of up\\*/down\\*, with the computing of this machine",
        _printed(place, 3, PROGRAMS.index(program)),
        "nas",
        _engines(place[1], program, where(engine="dl", vcs=2), 1.0),
        "`--computing 1`: every process also computes for as long as this machine took.",
        3,
        (SIMULATION,),
    )
    for place in TABLES
    for program in ("CG.S.16", "IS.S.16")
]

LOOPS = {"mesh,4,4": "dor", "torus,4,4": "dor", "fattree,2,4,2": "fattree"}
LOOPS |= {"clos,4,hosts=2": "updown"}
"""The looped fabrics of figure 12, and the routes on them: dimension order on grids."""
TREES = {"flat,16": "updown", "mtree,4,4": "updown"}
COMMUNICATING = ("is", "cg", "ft", "mg", "lu")


def _speed(
    over: Mapping[str, str],
    under: str,
    kernels: tuple[str, ...],
    computing: float | None = None,
    problem_class: str | tuple[str, ...] = ("S", "W"),
) -> Compute:
    """Return the speed of kernels on fabrics ``over``, divided by that on ``under``, same links."""

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(kernel=kernels, processes=16, computing=computing, **{"class": problem_class})
        known = [
            {
                **row,
                "fabric": row["fabric"].partition(",rate=")[2],
                "name": Routed(row["fabric"]).name,
                "speed": 1 / row["seconds"],
            }
            for row in rows
            if test(row) and row["seconds"]
        ]
        below = where(name=under, engine={**LOOPS, **TREES}[under])
        found: dict[tuple[object, ...], list[float]] = {}
        for name, engine in over.items():
            above = where(name=name, engine=engine)
            each = ratios(known, "speed", above, below, ROUTES)
            found |= {(name, *key): values for key, values in each.items()}
        return typical(found)

    return compute


NETWORK_ONLY = (
    "The paper runs class B on lines of 1 Gbit/s. Ours are classes S and W, on lines of the same "
    "rate; emulated processes compute at least 200 times as fast as on this machine. The tests of "
    "explanations below show what computing changes. Class B is not attempted: our kernels are "
    "written for classes S and W."
)
FIGURE_12 = [
    Claim(
        "004",
        "Figure 12",
        "Speed on looped fabrics over that on one switch",
        "over 0.9 in most",
        "nas",
        _speed(LOOPS, "flat,16", COMMUNICATING),
        NETWORK_ONLY,
    ),
    Claim(
        "004",
        "Figure 12",
        "FT and IS: speed on the M-tree over that on the torus",
        "markedly worse",
        "nas",
        _speed({"mtree,4,4": "updown"}, "torus,4,4", ("ft", "is")),
        "A value below 1 means that the M-tree is worse here too.",
    ),
]
COMPUTING_004 = [
    Claim(
        "004",
        "Test: computing, figure 12",
        f"Class {problem_class}, speed on mesh and torus over that on one switch, {words}",
        "over 0.9 in most",
        "nas",
        _speed(
            {name: LOOPS[name] for name in ("mesh,4,4", "torus,4,4")},
            "flat,16",
            kernels,
            computing,
            problem_class,
        ),
        "`--computing 1`: every process also computes for as long as this machine took.",
        places=(SIMULATION,),
    )
    for problem_class, kernels in (("S", COMMUNICATING), ("W", ("is", "cg", "ft", "mg")))
    for words, computing in (("no computing", None), ("computing", 1.0))
]
