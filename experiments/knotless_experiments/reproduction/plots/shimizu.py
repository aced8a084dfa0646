"""Plots of Shimizu and Nakashima."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knotless.results import plots as style
from knotless.results.stored import Stored
from knotless_experiments.framework.experiment import ANALYSIS, EMULATION, SIMULATION
from knotless_experiments.reproduction.claim import Paper
from knotless_experiments.reproduction.plots import (
    COLOURS,
    EMULATED,
    MARKERS,
    PAPER,
    SIMULATED,
    bars,
    means,
)
from knotless_experiments.reproduction.rows import rows
from knotless_experiments.reproduction.selectors import where

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SIZES = ("L1", "L2", "L3", "L4", "L5", "L6")


def figure_18(paper: Paper, stored: Stored) -> Figure:
    """Draw the throughput ratio over the number of hosts, for parts of the hosts."""
    figure = style.new_figure(7.4, 3.8)
    axes = figure.subplots()
    every = rows(stored, "all-to-all", ANALYSIS)
    for i, share in enumerate((100, 75, 50, 25)):
        for schedule, line in (("shift", "-"), ("contention-free", "--")):
            test = where(share=share, schedule=schedule, configuration=SIZES)
            points = sorted({(r["hosts"], r["throughput_ratio"]) for r in every if test(r)})
            name = "proposed" if schedule == "contention-free" else "shift"
            axes.plot(
                *zip(*points, strict=True),
                line,
                color=COLOURS[(0, 2, 3, 6)[i]],
                marker=MARKERS[i],
                markersize=4,
                label=f"{name}, {share} %",
            )
    printed = paper.printed["shift on L6"]
    axes.plot(5526, printed, "x", color=PAPER, markersize=11, label="paper: shift, 100 %")
    axes.set_xscale("log")
    axes.set_xlabel("hosts")
    axes.set_ylabel("throughput ratio")
    axes.set_ylim(0, 1.1)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
    return figure


def figures_19_to_22(paper: Paper, stored: Stored) -> Figure:
    """Draw the share of the line rate with both schedules: the paper's and ours."""
    claims = [claim for claim in paper.claims if claim.place == "Figures 19 to 22"]
    figure = style.new_figure(7.4, 3.6)
    axes = figure.subplots()
    series: list[tuple[str, str, list[float | None]]] = [
        ("paper", PAPER, [float(claim.theirs) for claim in claims])
    ]
    places = ((EMULATION, EMULATED), (SIMULATION, SIMULATED), (ANALYSIS, style.MUTED))
    for on, colour in places:
        series.append((on, colour, means(stored, claims, on)))
    names = [claim.what.partition(":")[0] + claim.what.rpartition(",")[2] for claim in claims]
    bars(axes, names, series)
    axes.set_xlabel("share of the line rate")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
    return figure
