"""Plots of Otsuka et al."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from knotless.results import plots as style
from knotless.results.stored import Stored
from knotless_experiments.framework.experiment import EMULATION, SIMULATION
from knotless_experiments.reproduction.claim import Paper
from knotless_experiments.reproduction.papers.otsuka import LINK_MBPS
from knotless_experiments.reproduction.plots import (
    EMULATED,
    PAPER,
    SIMULATED,
    bars,
    legend_outside,
    means,
)
from knotless_experiments.reproduction.rows import rows
from knotless_experiments.reproduction.selectors import where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE_MBPS = 958.0
"""The paper's bandwidth of UDP on a line without other traffic."""
PAYLOAD = 1470 / 1538
"""The share of a line that is payload of UDP, with the paper's datagrams."""


def figure_10(paper: Paper, stored: Stored) -> Figure:
    """Draw the mean bandwidth of 16 hosts as a share of the line, for each topology."""
    figure = style.new_figure(8.6, 4.2)
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    for axes, pattern in zip(panels, ("bit-reversal", "transpose"), strict=True):
        claims = [
            c
            for c in paper.claims
            if c.place == f"Figure 10, {pattern}, UDP" and "mean" in c.what.lower()
        ]
        series: list[tuple[str, str, list[float | None]]] = [
            ("paper", PAPER, [None if isinstance(c.theirs, str) else c.theirs for c in claims])
        ]
        for on, colour in ((EMULATION, EMULATED), (SIMULATION, SIMULATED)):
            series.append((on, colour, means(stored, claims, on)))
        bars(axes, [each["name"] for each in paper.printed["figure 10"]], series)
        axes.set_title(pattern)
    figure.supxlabel("mean bandwidth of a host as a share of the line", fontsize=10)
    legend_outside(figure, panels[0])
    return figure


def table(paper: Paper, stored: Stored, tagging: str) -> Figure:
    """Draw table 3 or 4: Mbit/s of UDP as a share of the line."""
    figure = style.new_figure(8.6, 4.4)
    panels = figure.subplots(1, 3, sharey=True, sharex=True)
    controls = {
        each["control"]: each["words"].replace("PAUSE on ", "").replace("PAUSE ", "")
        for each in paper.printed["flow controls"]
    }
    cells = [(control, routes) for control in controls for routes in ("cyclic", "acyclic")]
    names = [f"{routes}, {controls[control]}" for control, routes in cells]
    for axes, transfer in zip(panels, paper.printed["transfers"], strict=True):
        pattern = transfer["pattern"]
        printed = paper.printed["bandwidths"][tagging]["udp"][pattern]
        values = [printed[routes][control] for control, routes in cells]
        theirs = [None if isinstance(each, str) else each / LINE_MBPS for each in values]
        series: list[tuple[str, str, list[float | None]]] = [("paper", PAPER, theirs)]
        for on, colour in ((EMULATION, EMULATED), (SIMULATION, SIMULATED)):
            ours: list[float | None] = []
            for control, routes in cells:
                test = where(
                    pattern=pattern,
                    tagging=tagging,
                    flow_control=control,
                    routes=routes,
                    protocol="udp",
                    rate_mbps=LINK_MBPS,
                    watchdog_us=None,
                )
                shares = [
                    fmean(row["flows_mbps"]) / row["rate_mbps"] / PAYLOAD
                    for row in rows(stored, "deadlock", on)
                    if test(row)
                ]
                ours.append(fmean(shares) if shares else None)
            series.append((on, colour, ours))
        bars(axes, names, series)
        axes.set_title(transfer["pair"])
    figure.supxlabel("mean bandwidth of a transfer as a share of the line, UDP", fontsize=10)
    legend_outside(figure, panels[0])
    return figure
