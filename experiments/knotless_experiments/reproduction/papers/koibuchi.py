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
SELECTED = {"irregular-a": ["dl"], "irregular-b": ["sbp"], "mesh,4,4,hosts=4": ["sbp", "updown"]}
"""The engines of the paper's figure 9, by fabric."""
PROGRAM_FABRICS = ("irregular-a", "irregular-b", "mesh,4,4", "torus,4,4")
PROGRAMS = ("CG.S.16", "LU.W.16", "IS.S.16", "IS.S.32", "IS.S.64")
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


def selection_effect_over(rows: Sequence[Row], above: str, below: str) -> Spread | None:
    """Return the largest effect of path selection on one fabric over that on another.

    On each fabric it is that of the engines that the paper measured there (:data:`SELECTED`).
    """
    one, other = _selection_effect(rows, above), _selection_effect(rows, below)
    return None if one is None or other is None else spread_of([one.mean / other.mean])


def _selection_effect(rows: Sequence[Row], fabric: str) -> Spread | None:
    test = where(
        part="acknowledged",
        message_bytes=1792,
        rate_mbps=LINK_MBPS,
        fabric=fabric,
        engine=SELECTED[fabric],
    )
    here = [row for row in rows if test(row) and cuts_through(row)]
    spread, low_port = where(select="spread"), where(select="low-port")
    return PICKS["larger"](ratios(here, "mean_mbps", spread, low_port, ("select", "routes")))


def least_program_time(rows: Sequence[Row], engine: str, vcs: int) -> Spread | None:
    """Return the smallest of :func:`program_time`, over all fabrics and programs."""
    times = [
        program_time(rows, fabric, program, engine, vcs)
        for fabric in PROGRAM_FABRICS
        for program in PROGRAMS
    ]
    measured = [time for time in times if time is not None]
    return min(measured, key=lambda time: time.mean) if measured else None


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
