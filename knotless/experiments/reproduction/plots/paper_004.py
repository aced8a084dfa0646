"""Plots of Otsuka et al."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import TYPE_CHECKING

from knotless.experiments.framework.experiment import EMULATION, SIMULATION
from knotless.experiments.reproduction.figures import where
from knotless.experiments.reproduction.paper_004 import DRAWN, TRAFFIC
from knotless.experiments.reproduction.paper_004_deadlocks import (
    CONTROLS,
    PAIRS,
    PAPERS_LINKS_MBPS,
    SCANNED_MBPS,
    TABLES,
    WORDS,
)
from knotless.experiments.reproduction.plots import EMULATED, PAPER, SIMULATED, bars, legend_outside
from knotless.experiments.reproduction.rows import rows
from knotless.results import plots as style
from knotless.results.stored import Stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE_MBPS = 958.0
"""The paper's bandwidth of UDP on a line without other traffic."""
PAYLOAD = 1470 / 1538
"""The share of a line that is payload of UDP, with the paper's datagrams."""


def figure_10(stored: Stored) -> Figure:
    """Draw the mean bandwidth of 16 hosts as a share of the line, for each topology."""
    figure = style.new_figure(8.6, 4.2)
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    for axes, pattern in zip(panels, ("bit-reversal", "transpose"), strict=True):
        claims = [
            c
            for c in TRAFFIC
            if c.place == f"Figure 10, {pattern}, UDP" and "mean" in c.what.lower()
        ]
        series: list[tuple[str, str, list[float | None]]] = [
            ("paper", PAPER, [None if isinstance(c.theirs, str) else c.theirs for c in claims])
        ]
        for on, colour in ((EMULATION, EMULATED), (SIMULATION, SIMULATED)):
            found = [
                c.compute(rows(stored, c.experiment, on)) if on in c.places else None
                for c in claims
            ]
            series.append((on, colour, [None if each is None else each.mean for each in found]))
        bars(axes, list(DRAWN), series)
        axes.set_title(pattern)
    figure.supxlabel("mean bandwidth of a host as a share of the line", fontsize=10)
    legend_outside(figure, panels[0])
    return figure


def table(tagging: str) -> Callable[[Stored], Figure]:
    """Return the function that draws table 3 or 4: Mbit/s of UDP as a share of the line."""

    def draw(stored: Stored) -> Figure:
        figure = style.new_figure(8.6, 4.4)
        panels = figure.subplots(1, 3, sharey=True, sharex=True)
        names = [
            f"{routes}, {WORDS[control].replace('PAUSE on ', '').replace('PAUSE ', '')}"
            for control in CONTROLS
            for routes in ("cyclic", "acyclic")
        ]
        for axes, (pattern, pair) in zip(panels, PAIRS.items(), strict=True):
            printed = TABLES[tagging][pattern, "udp"]
            theirs = [
                None if printed[i][c] == SCANNED_MBPS else printed[i][c] / LINE_MBPS
                for c in range(len(CONTROLS))
                for i in (0, 1)
            ]
            series: list[tuple[str, str, list[float | None]]] = [("paper", PAPER, theirs)]
            for on, colour in ((EMULATION, EMULATED), (SIMULATION, SIMULATED)):
                ours: list[float | None] = []
                for control in CONTROLS:
                    for routes in ("cyclic", "acyclic"):
                        test = where(
                            pattern=pattern,
                            tagging=tagging,
                            flow_control=control,
                            routes=routes,
                            protocol="udp",
                            rate_mbps=PAPERS_LINKS_MBPS,
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
            axes.set_title(pair)
        figure.supxlabel("mean bandwidth of a transfer as a share of the line, UDP", fontsize=10)
        legend_outside(figure, panels[0])
        return figure

    return draw
