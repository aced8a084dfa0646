"""Koibuchi et al., table 3: barriers of 64 hosts with unicast-based multicast."""

from __future__ import annotations

from collections.abc import Sequence

from knotless.experiments.framework.experiment import EMULATION, SIMULATION
from knotless.experiments.reproduction.claim import FITTED, Claim, Compute
from knotless.experiments.reproduction.figures import Test, ratios, typical, where
from knotless.experiments.reproduction.paper_000 import ROUTES, A
from knotless.experiments.reproduction.rows import Row
from knotless.results.spread import Spread, spread_of


def cut_through(row: Row) -> bool:
    """Tell whether a row is emulated, or simulated with switches that cut through."""
    return row["on"] == EMULATION or row["cut_through"] is not None


def _fitted(row: Row) -> bool:
    return row["cut_through"] is None


def _barrier(fabric: str, engine: str, vcs: int, kind: Test = cut_through) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        here = [row for row in rows if row["fabric"].startswith(fabric) and kind(row)]
        above = where(engine=engine, vcs=vcs)
        return typical(ratios(here, "mean_us", above, where(engine="updown", vcs=1), ROUTES))

    return compute


def _worst_list(fabric: str, engine: str) -> Compute:
    """Return the smallest ratio to the time of up*/down* over all visiting lists, per repeat."""

    def compute(rows: Sequence[Row]) -> Spread | None:
        here = [
            row
            for row in rows
            if row["fabric"] == fabric
            and len(row.get("list_means_us", [])) > 1
            and cut_through(row)
        ]
        tree, other = where(engine="updown", vcs=1), where(engine=engine)
        one = [row["list_means_us"] for row in here if tree(row)]
        two = [row["list_means_us"] for row in here if other(row)]
        return spread_of(
            [
                min(b / a for a, b in zip(slow, fast, strict=True))
                for slow, fast in zip(one, two, strict=False)
            ]
        )

    return compute


TABLE_3 = {
    "A": (
        "irregular-a",
        {"prefix": 52.39, "updown:2": 50.53, "updown:4": 50.55, "sbp": 47.83, "dl:2": 47.86},
        50.49,
    ),
    "B": (
        "irregular-b",
        {"prefix": 49.70, "updown:2": 48.68, "updown:4": 48.53, "sbp": 46.61, "dl:2": 46.65},
        48.65,
    ),
    "mesh": (
        "mesh,4,4",
        {"prefix": 51.49, "updown:2": 45.77, "updown:4": 45.78, "sbp": 45.61, "dl:2": 45.62},
        45.78,
    ),
}
"""Barrier times in microseconds by engine, and with up*/down* and one virtual channel."""
WORDS = {
    "prefix": ("prefix", 1),
    "updown:2": ("up\\*/down\\*, 2 VCs", 2),
    "updown:4": ("up\\*/down\\*, 4 VCs", 4),
    "sbp": ("SBP", 6),
    "dl:2": ("DL, 2 VCs", 2),
}
WORST_LIST_US = {"sbp": 44.58, "dl:2": 44.60}
WORST_LIST_UPDOWN_US = 59.77

BARRIER_WHY = (
    "A and B are our own graphs, with the diameters and the properties of the paper's. The share "
    "of time spent outside the network differs from RHiNET-2."
)
LISTS_WHY = (
    "The paper selects the visiting list with the largest gain from ten, with 100,000 barriers "
    "each. Ours are different lists: ten in simulation, five in emulation."
)
BARRIERS = [
    Claim(
        "000",
        f"Table 3, {name}",
        f"Barrier time of {WORDS[engine][0]} over up\\*/down\\* with 1 VC",
        theirs_us / updown_us,
        "barrier",
        _barrier(fabric, engine.partition(":")[0], WORDS[engine][1]),
        BARRIER_WHY,
        3,
    )
    for name, (fabric, times_us, updown_us) in TABLE_3.items()
    for engine, theirs_us in times_us.items()
] + [
    Claim(
        "000",
        "Table 3, A, in brackets",
        f"Barrier time of {WORDS[engine][0]} over up\\*/down\\*, best visiting list",
        theirs_us / WORST_LIST_UPDOWN_US,
        "barrier",
        _worst_list(A, engine.partition(":")[0]),
        LISTS_WHY,
        3,
    )
    for engine, theirs_us in WORST_LIST_US.items()
]
FITTED_LINKS = [
    Claim(
        "000",
        "Table 3, A",
        "Barrier time of DL over up\\*/down\\* with 1 VC, store and forward, links of 0.6 us",
        47.86 / 50.49,
        "barrier",
        _barrier("irregular-a", "dl", 2, _fitted),
        "The delay of these links was chosen so that a switch adds the 0.7 us of figure 10.",
        3,
        (SIMULATION,),
        FITTED,
    )
]
