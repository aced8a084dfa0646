"""Koibuchi et al.: what its claims compute beyond selectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from knotless.results.spread import Spread, spread_of
from knotless_experiments.framework.routed import Routed
from knotless_experiments.reproduction.rows import Row
from knotless_experiments.reproduction.selectors import (
    PICKS,
    Pick,
    cuts_through,
    ratios,
    typical,
    where,
)

FOUR = ("irregular-a", "irregular-b", "mesh,4,4,hosts=4", "torus,4,4,hosts=4")
ROUTES = ("engine", "vcs", "routes")
LINK_MBPS = 6000.0
"""The rate of the paper's links."""


def throughput_ratios(
    rows: Sequence[Row], vcs: int, *, select: bool
) -> dict[tuple[Any, ...], list[float]]:
    """Return throughput ratios of saturated hosts by case: a fabric with a pattern.

    DL with ``vcs`` virtual channels over up*/down* or, with ``select``, DL with spread paths over
    DL with low-port paths. Where DL has no use for ``vcs``, its plan is the one with fewer.
    """
    test = where(part="open-loop", fabric=FOUR, rate_mbps=LINK_MBPS)
    saturated = {row["result_sha256"] + row["routes"]: row for row in rows if test(row)}.values()
    used: dict[tuple[str, str], int] = {}
    for row in saturated:
        if row["engine"] == "dl" and row["vcs"] <= vcs:
            plan = (row["fabric"], row["select"])
            used[plan] = max(used.get(plan, 0), row["vcs"])
    chosen = [
        row
        for row in saturated
        if row["engine"] != "dl" or row["vcs"] == used.get((row["fabric"], row["select"]))
    ]
    above, updown = where(engine="dl", select="spread"), where(engine="updown", vcs=1)
    below = where(engine="dl", select="low-port") if select else updown
    free = (*ROUTES, "select") if select else ROUTES
    return ratios(chosen, "mean_mbps", above, below, free)


def saturated(rows: Sequence[Row], vcs: int, select: bool, pick: Pick) -> Spread | None:
    """Return one figure of :func:`throughput_ratios`."""
    return PICKS[pick](throughput_ratios(rows, vcs, select=select))


def best_visiting_list(rows: Sequence[Row], fabric: str, engine: str) -> Spread | None:
    """Return the smallest ratio to the time of up*/down* over all visiting lists, per repeat."""
    here = [
        row
        for row in rows
        if row["fabric"] == fabric and len(row.get("list_means_us", [])) > 1 and cuts_through(row)
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


def program_time(
    rows: Sequence[Row],
    fabric: str,
    program: str,
    engine: str,
    vcs: int,
    computing: float | None = None,
) -> Spread | None:
    """Return the time of a NAS program, such as CG.S.16, over that with up*/down*.

    ``fabric`` is without its hosts; ``computing`` as the option of ``knotless run nas``.
    """
    here = _of_program(rows, fabric, program, computing)
    above, tree = where(engine=engine, vcs=vcs), where(engine="updown", vcs=1)
    return typical(ratios(here, "seconds", above, tree, ROUTES))


def with_the_papers_time(
    rows: Sequence[Row], fabric: str, program: str, updown_s: float
) -> Spread | None:
    """Return the ratio of DL to up*/down* if all but the network takes what the paper measured.

    The paper's time with up*/down*, ``updown_s``, minus our simulated time of the network, is
    added to both.
    """
    here = _of_program(rows, fabric, program, None)
    tree = [row["seconds"] for row in here if (row["engine"], row["vcs"]) == ("updown", 1)]
    layers = [row["seconds"] for row in here if (row["engine"], row["vcs"]) == ("dl", 2)]
    return spread_of([(updown_s - a + b) / updown_s for a, b in zip(tree, layers, strict=False)])


def _of_program(
    rows: Sequence[Row], fabric: str, program: str, computing: float | None
) -> list[Row]:
    kernel, problem_class, processes = program.split(".")
    test = where(
        **{"kernel": kernel.lower(), "class": problem_class, "processes": int(processes)},
        computing=computing,
    )
    return [row for row in rows if test(row) and _is_of(fabric, row)]


def _is_of(fabric: str, row: Row) -> bool:
    name = Routed(row["fabric"]).name
    return name == fabric or name.startswith(f"{fabric},hosts=")
