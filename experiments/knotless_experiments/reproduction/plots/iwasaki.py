"""Plots of Iwasaki et al."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from knotless.results import plots as style
from knotless.results.stored import Stored
from knotless_experiments.framework.experiment import SIMULATION
from knotless_experiments.reproduction.claim import Paper
from knotless_experiments.reproduction.plots import COLOURS, legend_outside
from knotless_experiments.reproduction.rows import rows
from knotless_experiments.reproduction.selectors import where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _curve(axes: Axes, stored: Stored, fabric: str, algorithm: str, networks: int, i: int) -> None:
    test = where(fabric=fabric, algorithm=algorithm, networks=networks, rate_mbps=100.0)
    times_us: dict[int, list[float]] = {}
    for row in rows(stored, "barrier", SIMULATION):
        if test(row):
            times_us.setdefault(row["hosts"], []).append(row["mean_us"])
    hosts = sorted(times_us)
    label = f"{algorithm}, {networks} networks" if networks > 1 else algorithm
    axes.plot(
        hosts,
        [fmean(times_us[n]) for n in hosts],
        "o-",
        color=COLOURS[i],
        markersize=3,
        label=label,
    )


def figures_5_to_8(paper: Paper, stored: Stored) -> Figure:
    """Draw barrier times over the number of hosts, on a switch and on a hub."""
    figure = style.new_figure(8.6, 3.6)
    left, right = figure.subplots(1, 2)
    for axes, fabric, place, title in (
        (left, "flat,32", "switch_us", "switch"),
        (right, "hub,32", "hub_us", "repeater hub"),
    ):
        for i, each in enumerate(paper.printed["algorithms"]):
            colour = 2 * i if i < 2 else i + 1
            _curve(axes, stored, fabric, each["algorithm"], 1, colour)
            axes.plot(each["hosts"], each[place], "x", color=COLOURS[colour], markersize=9)
        axes.set_title(title)
        axes.set_xlabel("hosts")
    left.set_ylabel("us")
    left.set_ylim(bottom=0)
    right.set_yscale("log")
    legend_outside(figure, left)
    return figure


def figures_9_and_10(paper: Paper, stored: Stored) -> Figure:
    """Draw barrier times with one and with two networks."""
    figure = style.new_figure(8.6, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, each in zip(panels, paper.printed["two networks"], strict=True):
        for networks, time_us in ((1, each["one_us"]), (2, each["two_us"])):
            colour = 4 * (networks - 1)
            _curve(axes, stored, "flat,32", each["algorithm"], networks, colour)
            axes.plot(each["hosts"], time_us, "x", color=COLOURS[colour], markersize=9)
        axes.set_title(each["words"])
        axes.set_xlabel("hosts")
        axes.legend()
    panels[0].set_ylabel("us")
    panels[0].set_ylim(bottom=0)
    return figure
