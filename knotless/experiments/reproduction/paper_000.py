"""Koibuchi et al., deterministic deadlock-free routings on the RHiNET-2 cluster: bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from knotless.experiments.framework.experiment import ANALYSIS, EMULATION, SIMULATION
from knotless.experiments.reproduction.claim import Claim, Compute
from knotless.experiments.reproduction.figures import (
    Test,
    best,
    larger,
    losing,
    ratios,
    slope,
    typical,
    values,
    where,
    worst,
)
from knotless.experiments.reproduction.rows import Row
from knotless.results.spread import Spread, spread_of

A, B, MESH, TORUS = FOUR = ("irregular-a", "irregular-b", "mesh,4,4,hosts=4", "torus,4,4,hosts=4")
ROUTES = ("engine", "vcs", "routes")
LINK_MBPS = 6000.0
"""The rate of the paper's links."""


def papers_links(row: Row) -> bool:
    """Tell whether a row has the paper's rate and, in simulation, its cut-through switches.

    Open vSwitch stores and forwards.
    """
    switching = row["on"] == EMULATION or row["cut_through"] is not None
    return bool(row["rate_mbps"] == LINK_MBPS and switching)


def _stored_and_forwarded(row: Row) -> bool:
    """Tell whether a row has the paper's rate, and switches that store and forward."""
    return bool(row["rate_mbps"] == LINK_MBPS and row["cut_through"] is None)


def gain(
    above: Test,
    below: Test,
    pick: Callable[..., Spread | None],
    *,
    free: tuple[str, ...] = ROUTES,
    kind: Test = papers_links,
    size: int | None = 1792,
) -> Compute:
    """Return a ratio of bandwidths of acknowledged messages, over patterns and fabrics."""

    def compute(rows: Sequence[Row]) -> Spread | None:
        here = [
            row
            for row in rows
            if row["part"] == "acknowledged" and kind(row) and size in (None, row["message_bytes"])
        ]
        return pick(ratios(here, "mean_mbps", above, below, free))

    return compute


def engine(name: str, vcs: int | None = None, select: str = "spread", **others: object) -> Test:
    """Return a test for rows of an engine."""
    wanted: dict[str, object] = {"engine": name, "select": select, **others}
    return where(**wanted, **({} if vcs is None else {"vcs": vcs}))


UPDOWN = engine("updown", 1)


def _of_plans(fabrics: tuple[str, ...], figure: str, *engines: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(fabric=fabrics, engine=engines, vlan_assignment="default")
        return values(rows, lambda row: float(row[figure]), test)

    return compute


def flooded(rows: Sequence[Row], vcs: int, *, select: bool) -> dict[tuple[Any, ...], list[float]]:
    """Return throughput ratios of saturated hosts by case: a fabric with a pattern.

    DL with ``vcs`` virtual channels over up*/down* or, with ``select``, DL with spread paths over
    DL with low-port paths. Where DL has no use for ``vcs``, its plan is the one with fewer.
    """
    test = where(part="open-loop", fabric=FOUR, rate_mbps=LINK_MBPS)
    flood = {row["result_sha256"] + row["routes"]: row for row in rows if test(row)}.values()
    used: dict[tuple[str, str], int] = {}
    for row in flood:
        if row["engine"] == "dl" and row["vcs"] <= vcs:
            plan = (row["fabric"], row["select"])
            used[plan] = max(used.get(plan, 0), row["vcs"])
    known = [
        row
        for row in flood
        if row["engine"] != "dl" or row["vcs"] == used.get((row["fabric"], row["select"]))
    ]
    below = engine("dl", select="low-port") if select else UPDOWN
    free = (*ROUTES, "select") if select else ROUTES
    return ratios(known, "mean_mbps", engine("dl"), below, free)


def _flood(vcs: int, *, select: bool, pick: Callable[..., Spread | None]) -> Compute:
    return lambda rows: pick(flooded(rows, vcs, select=select))


def _by_fabric(name: str) -> Callable[..., Spread | None]:
    def pick(found: dict[tuple[object, ...], list[float]]) -> Spread | None:
        return best({key: each for key, each in found.items() if ("fabric", name) in key})

    return pick


def _lost_bandwidth(rows: Sequence[Row]) -> Spread | None:
    """Return by how many MB/s each switch reduces the bandwidth of two hosts, by least squares."""
    test = where(measure="messages", message_bytes=1792, tagging="switch", rate_mbps=LINK_MBPS)
    points = [(row["switches"], row["bandwidth_mbps"] / 8) for row in rows if test(row)]
    return spread_of([-slope(points)]) if points else None


def _added_to_barrier(rows: Sequence[Row]) -> Spread | None:
    test = where(measure="barrier", tagging="switch", rate_mbps=LINK_MBPS)
    points = [(row["switches"], row["mean_us"]) for row in rows if test(row)]
    return spread_of([slope(points)]) if points else None


PROPERTIES_WHY = "A and B are our own fabrics, with the properties that the paper's text states."
FABRICS = [
    Claim(
        "000",
        "Section 4.1",
        f"Virtual channels needed by structured buffer pools, {name}",
        theirs,
        "paths",
        _of_plans((fabric,), "vcs", "sbp"),
        PROPERTIES_WHY,
        0,
        (ANALYSIS,),
    )
    for name, fabric, theirs in (("A", A, 6), ("B", B, 6), ("mesh", MESH, 6), ("torus", TORUS, 4))
] + [
    Claim(
        "000",
        "Table 1",
        f"Share of plans that are minimal: {words}",
        theirs,
        "paths",
        _of_plans(fabrics, "minimal", *engines),
        PROPERTIES_WHY,
        places=(ANALYSIS,),
    )
    for words, fabrics, engines, theirs in (
        ("SBP, LASH, DL with 2 VCs; all fabrics", FOUR, ("sbp", "lash", "dl"), "yes"),
        ("up\\*/down\\*; A and B", (A, B), ("updown",), "no"),
        ("up\\*/down\\*; mesh", (MESH,), ("updown",), "yes"),
        ("prefix; all", FOUR, ("prefix",), "no"),
    )
]

BANDWIDTH_WHY = (
    "The paper shows A and B only as pictures. Ours have the properties that its text states, but "
    "other paths. The rate of the links explains a part: the largest gain of the simulation grows "
    "at the paper's rate with cut-through (see the test below), but not to the paper's. Emulated "
    "switches store and forward, and emulated hosts have software where the paper's have hardware."
)
BANDWIDTH = [
    Claim(
        "000",
        "Figures 4 to 7, text",
        "Largest bandwidth ratio of DL over up\\*/down\\*, 1,792 bytes",
        1.51,
        "traffic",
        gain(engine("dl", 2), UPDOWN, best),
        BANDWIDTH_WHY,
    ),
    *(
        Claim(
            "000",
            figure,
            f"Largest bandwidth ratio of DL over up\\*/down\\*, {name}, 1,792 bytes",
            "only drawn",
            "traffic",
            gain(engine("dl", 2), UPDOWN, _by_fabric(fabric)),
            BANDWIDTH_WHY,
        )
        for figure, name, fabric in (
            ("Figure 4", "A", A),
            ("Figure 5", "B", B),
            ("Figure 6", "mesh", MESH),
            ("Figure 7", "torus", TORUS),
        )
    ),
    Claim(
        "000",
        "Figures 4 to 7, text",
        "DL over SBP, all fabrics and patterns, 1,792 bytes",
        "almost no difference",
        "traffic",
        gain(engine("dl", 2), engine("sbp"), typical),
        "Both are minimal here. The mean agrees with the paper's words; single patterns at the "
        "paper's rate differ more, in both directions.",
    ),
    Claim(
        "000",
        "Figures 4 to 7, text",
        "Up\\*/down\\* with 4 virtual channels over 1, all fabrics and patterns, 1,792 bytes",
        "hardly matters",
        "traffic",
        gain(engine("updown", 4), UPDOWN, typical),
        "The mean agrees with the paper's words; single patterns at the paper's rate differ "
        "more, in both directions.",
    ),
    Claim(
        "000",
        "Figure 6, text",
        "Dimension order over up\\*/down\\* on the mesh, all patterns, 1,792 bytes",
        "dimension order is best",
        "traffic",
        gain(engine("dor", fabric=MESH), engine("updown", 1, fabric=MESH), typical),
        "A value above 1 means that dimension order is better here too.",
    ),
]
RATE_TESTS = [
    Claim(
        "000",
        "Test of an explanation",
        f"Largest ratio of DL over up\\*/down\\* on {words}",
        "-",
        "traffic",
        gain(engine("dl", 2), UPDOWN, best, kind=kind),
        "Fabrics, engines and patterns are the same; only the links and the switching differ.",
        places=places,
    )
    for words, kind, places in (
        ("links of 2 Mbit/s and 5 ms, store and forward", where(rate_mbps=2.0), (SIMULATION,)),
        (
            "links of 6 Gbit/s and 0.2 us, store and forward",
            _stored_and_forwarded,
            (EMULATION, SIMULATION),
        ),
        ("links of 6 Gbit/s and 0.2 us, cut-through", papers_links, (SIMULATION,)),
    )
]
HOPS = [
    Claim(
        "000",
        "Figure 8",
        "Bandwidth of two hosts that each switch takes away, MB/s, 1,792 bytes",
        7.5,
        "hops",
        _lost_bandwidth,
        "Ours is the slope by least squares over one to eight switches of 6 Gbit/s that store and "
        "forward; the paper's cut through. Our hosts take less time, so a transfer is much shorter "
        "and each switch takes a larger part of its bandwidth. Simulated hosts take no time, "
        "emulated ones a hundredth of what they take on this machine.",
        1,
    ),
    Claim(
        "000",
        "Figure 10",
        "Time that each switch adds to a barrier of two hosts, us",
        0.7,
        "hops",
        _added_to_barrier,
        "Short frames on links of 6 Gbit/s and 0.1 us; ours adds no time inside a switch. The "
        "links of the barriers of table 3 are longer: their delay was chosen to give about this "
        "figure.",
        2,
    ),
]
SELECTION_WHY = "The rule by which 'spread' chooses among equal paths is our own."


def _selection(pick: Callable[..., Spread | None], *names: str) -> Compute:
    spread = where(engine=names, select="spread")
    low = where(engine=names, select="low-port")
    return gain(spread, low, pick, free=("select", "routes"))


SELECTION = [
    Claim(
        "000",
        "Figure 9, text",
        "Largest effect of path selection on the bandwidth, in either direction, 1,792 bytes",
        1.15,
        "traffic",
        _selection(larger, "dl", "sbp", "updown"),
        SELECTION_WHY,
    ),
    *(
        Claim(
            "000",
            "Figure 9",
            f"{words}: spread over low port first, mean of all fabrics and patterns, 1,792 bytes",
            theirs,
            "traffic",
            _selection(typical, name),
            SELECTION_WHY,
            3,
        )
        for words, name, theirs in (
            ("DL, 2 VCs", "dl", "only drawn"),
            ("SBP", "sbp", "low port is better on the mesh"),
            ("Up\\*/down\\*", "updown", "only drawn"),
        )
    ),
]
TABLE_9_WHY = (
    "The paper quotes its earlier simulation, with 3 virtual channels and 16 switches; its text "
    "calls both figures the largest difference. A case of ours is one of four fabrics with one of "
    "four patterns. Its fabrics and patterns are not described, so only the ranges can be compared."
)


def _table_9(words: str, theirs: float, vcs: int, *, select: bool) -> list[Claim]:
    picks: tuple[tuple[str, Callable[..., Spread | None], float | str, int], ...] = (
        ("largest of all cases", best, theirs, 2),
        ("mean of all cases", typical, "not printed", 2),
        ("smallest of all cases", worst, "not printed", 2),
        ("number of cases below 1", losing, "not printed", 0),
    )
    return [
        Claim(
            "000",
            "Table 9, simulation",
            f"{words}, {vcs} VCs: {name}",
            printed if vcs == 3 else f"{printed} (with 3 VCs)" if name[0] == "l" else printed,
            "traffic",
            _flood(vcs, select=select, pick=pick),
            TABLE_9_WHY,
            digits,
            (SIMULATION,),
        )
        for name, pick, printed, digits in picks
    ]


TABLE_9 = [
    *_table_9("Throughput of DL over up\\*/down\\*", 1.67, 3, select=False),
    *_table_9("Throughput of DL over up\\*/down\\*", 1.67, 2, select=False),
    *_table_9("DL with spread over low-port paths", 1.71, 3, select=True),
    *_table_9("DL with spread over low-port paths", 1.71, 2, select=True),
]
