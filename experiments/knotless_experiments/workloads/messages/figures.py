"""Plots of messages between two hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from knotless.results import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
COLOURS = (plots.BLUE, plots.GREEN, plots.RED, plots.AMBER)


def over_size(rows: Sequence[Row], series: str) -> Figure:
    """Plot latency and bandwidth over size, one line per ``series``, averaged over repeats."""
    figure = plots.new_figure(9.0, 3.8)
    left, right = figure.subplots(1, 2)
    for number, name in enumerate(dict.fromkeys(row[series] for row in rows)):
        of_name = [row for row in rows if row[series] == name]
        sizes = sorted({row["bytes"] for row in of_name})
        for axes, key in ((left, "median_us"), (right, "mbit_per_s")):
            means = [fmean(row[key] for row in of_name if row["bytes"] == size) for size in sizes]
            axes.plot(sizes, means, marker="o", markersize=4, color=COLOURS[number], label=name)
    for axes, label in ((left, "microseconds"), (right, "Mbit/s")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("bytes")
        axes.set_ylabel(label)
        axes.legend(fontsize=8)
    return figure


def stages(row: Row) -> Figure:
    """Plot the start of each stage of a push."""
    names, begins = list(row["stages_us"]), list(row["stages_us"].values())
    figure = plots.new_figure(8.0, 3.8)
    axes = figure.subplots()
    axes.hlines(range(len(names)), 0, begins, color=plots.GRID)
    axes.plot(begins, range(len(names)), "o", color=plots.BLUE)
    for place, begin in enumerate(begins):
        axes.annotate(
            f"{begin:.1f}", (begin, place), (6, -3), textcoords="offset points", fontsize=8
        )
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("us since the call")
    return figure
