"""Plots of Koibuchi et al."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from knotless.results import plots as style
from knotless.results.stored import Stored
from knotless_experiments.framework.experiment import EMULATION, SIMULATION
from knotless_experiments.reproduction.claim import Claim, Paper
from knotless_experiments.reproduction.papers.koibuchi import LINK_MBPS, throughput_ratios
from knotless_experiments.reproduction.plots import (
    COLOURS,
    EMULATED,
    MARKERS,
    PAPER,
    SIMULATED,
    bars,
    legend_outside,
    means,
)
from knotless_experiments.reproduction.rows import Row, rows
from knotless_experiments.reproduction.selectors import cuts_through, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATTERNS = ("bit-reversal", "transpose", "butterfly", "complement")
ENGINES = {
    "up*/down*": ("updown", 1),
    "up*/down*, 2 VCs": ("updown", 2),
    "up*/down*, 4 VCs": ("updown", 4),
    "prefix": ("prefix", 1),
    "SBP": ("sbp", None),
    "DL, 2 VCs": ("dl", 2),
    "e-cube": ("dor", None),
}


def _mean_mbytes(chosen: list[Row]) -> float:
    return fmean(row["mean_mbps"] for row in chosen) / 8


def _acknowledged(stored: Stored, fabric: str) -> list[Row]:
    test = where(part="acknowledged", fabric=fabric, rate_mbps=LINK_MBPS)
    every = rows(stored, "traffic", SIMULATION)
    return [row for row in every if test(row) and cuts_through(row)]


def figures_4_to_7(_: Paper, stored: Stored, fabric: str) -> Figure:
    """Draw bandwidth over the size of messages on a fabric."""
    here = [row for row in _acknowledged(stored, fabric) if row["select"] == "spread"]
    figure = style.new_figure(8.6, 5.2)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, pattern in zip(panels.flat, PATTERNS, strict=True):
        for i, (label, (engine, vcs)) in enumerate(ENGINES.items()):
            wanted = {"pattern": pattern, "engine": engine}
            test = where(**wanted, **({} if vcs is None else {"vcs": vcs}))
            of_engine = [row for row in here if test(row)]
            sizes = sorted({row["message_bytes"] for row in of_engine})
            if sizes:
                means = [
                    _mean_mbytes([row for row in of_engine if row["message_bytes"] == size])
                    for size in sizes
                ]
                axes.plot(
                    sizes, means, color=COLOURS[i], marker=MARKERS[i], markersize=4, label=label
                )
        axes.set_title(pattern)
    panels[0, 0].set_xlim(0, 1900)
    panels[0, 0].set_ylim(bottom=0)
    figure.supxlabel("bytes of a message", fontsize=10)
    figure.supylabel("MB/s of a sender", fontsize=10)
    legend_outside(figure, panels[0, 0])
    return figure


def figure_9(_: Paper, stored: Stored) -> Figure:
    """Draw the bandwidth with spread and low-port paths, on A, B and the mesh."""
    fabrics = {"A": "irregular-a", "B": "irregular-b", "mesh": "mesh,4,4,hosts=4"}
    engines = {"up*/down*": ("updown", 1), "SBP": ("sbp", None), "DL": ("dl", 2)}
    figure = style.new_figure(8.6, 3.6)
    panels = figure.subplots(1, 3, sharey=True)
    names = [f"{engine}\n{pattern}" for engine in engines for pattern in PATTERNS]
    for axes, (name, fabric) in zip(panels, fabrics.items(), strict=True):
        here = [row for row in _acknowledged(stored, fabric) if row["message_bytes"] == 1792]
        for colour, mark, select in ((SIMULATED, "o", "spread"), (style.AMBER, "x", "low-port")):
            points = []
            for engine, vcs in engines.values():
                for pattern in PATTERNS:
                    wanted = {"pattern": pattern, "engine": engine, "select": select}
                    test = where(**wanted, **({} if vcs is None else {"vcs": vcs}))
                    chosen = [row for row in here if test(row)]
                    points.append(_mean_mbytes(chosen) if chosen else None)
            drawn = [(x, i) for i, x in enumerate(points) if x is not None]
            axes.plot(
                [x for x, _ in drawn], [i for _, i in drawn], mark, color=colour, label=select
            )
        axes.set_title(name)
        axes.grid(axis="x")
    panels[0].set_yticks(range(len(names)), names, fontsize=7)
    panels[0].invert_yaxis()
    figure.supxlabel("MB/s of a sender, 1,792 bytes", fontsize=10)
    legend_outside(figure, panels[0])
    return figure


def figures_8_and_10(_: Paper, stored: Stored) -> Figure:
    """Draw what each switch costs two hosts."""
    figure = style.new_figure(8.6, 3.2)
    left, right = figure.subplots(1, 2)
    for axes, kind, value, by, slope, unit in (
        (left, {"measure": "messages", "message_bytes": 1792}, "bandwidth_mbps", 8, -7.5, "MB/s"),
        (right, {"measure": "barrier"}, "mean_us", 1, 0.7, "us"),
    ):
        test = where(**kind, tagging="switch", rate_mbps=6000.0)
        for on, mark, colour in ((EMULATION, "x", EMULATED), (SIMULATION, "o-", SIMULATED)):
            every = rows(stored, "hops", on)
            points = sorted({(row["switches"], row[value] / by) for row in every if test(row)})
            if points:
                axes.plot(*zip(*points, strict=True), mark, color=colour, label=on)
        if points:
            first, level = points[0]
            line = [(x, level + slope * (x - first)) for x, _ in points]
            axes.plot(
                *zip(*line, strict=True), "--", color=PAPER, label=f"paper's slope, {slope} {unit}"
            )
        axes.set_xlabel("switches between two hosts")
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0)
        axes.legend()
    left.set_title("figure 8: bandwidth, 1,792 bytes")
    right.set_title("figure 10: barrier")
    return figure


def table_9(_: Paper, stored: Stored) -> Figure:
    """Draw the throughput ratio of every case, with the paper's largest."""
    figure = style.new_figure(8.6, 2.6)
    left, right = figure.subplots(1, 2, sharex=True)
    every = rows(stored, "traffic", SIMULATION)
    for axes, title, largest, select in (
        (left, "DL over up*/down*", 1.67, False),
        (right, "DL: spread over low port", 1.71, True),
    ):
        for level, vcs in enumerate((3, 2)):
            cases = throughput_ratios(every, vcs, select=select)
            values = [each[0] for each in cases.values() if each]
            axes.plot(values, [level] * len(values), "o", color=SIMULATED, alpha=0.5)
        axes.axvline(largest, color=PAPER, linestyle="--", label="paper: the largest")
        axes.axvline(1, color=style.MUTED)
        axes.set_yticks((0, 1), ("3 VCs", "2 VCs"))
        axes.set_ylim(-0.6, 1.6)
        axes.set_title(title)
    figure.supxlabel("ratio of throughputs; a dot is a fabric with a pattern", fontsize=10)
    legend_outside(figure, left)
    return figure


def table_3(paper: Paper, stored: Stored) -> Figure:
    """Draw the barriers of table 3 over those with up*/down*, theirs and ours."""
    claims = [c for c in paper.claims if c.place.startswith("Table 3") and not c.mark]
    names = [
        f"{c.place[8:].replace(', in brackets', '*')}: {c.what[16:].partition(' over')[0]}"
        for c in claims
    ]
    return _of_claims(stored, claims, names)


def tables_4_to_7(paper: Paper, stored: Stored) -> Figure:
    """Draw the times of programs with DL over those with up*/down*, theirs and ours."""
    programs = [c for c in paper.claims if c.experiment == "nas" and c.place.startswith("Table")]
    claims = [c for c in programs if "time of DL" in c.what]
    names = [f"{c.place.partition(', ')[2]}: {c.what.partition(':')[0]}" for c in claims]
    return _of_claims(stored, claims, names)


def _of_claims(stored: Stored, claims: list[Claim], names: list[str]) -> Figure:
    """Draw claims as bars: the paper's figure and ours."""
    figure = style.new_figure(7.4, 0.32 * len(claims) + 1.0)
    axes = figure.subplots()
    series: list[tuple[str, str, list[float | None]]] = [
        ("paper", PAPER, [c.theirs if not isinstance(c.theirs, str) else None for c in claims])
    ]
    for on, colour in ((EMULATION, EMULATED), (SIMULATION, SIMULATED)):
        ours = means(stored, claims, on)
        if any(value is not None for value in ours):
            series.append((on, colour, ours))
    bars(axes, [name.replace("\\*", "*") for name in names], series)
    legend_outside(figure, axes)
    return figure
