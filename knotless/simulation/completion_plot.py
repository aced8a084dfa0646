"""Plots of flow completion times and slowdowns, beside those of collective operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from knotless.base.errors import SimulationError
from knotless.results.plots import BLUE, RED, STYLE, check_format, new_figure, write_figure
from knotless.simulation.collective_plot import GroupTimes, plot_collective
from knotless.simulation.completion import Completions
from knotless.simulation.units import PICOSECONDS_PER_US


def draw_completions(
    title: str, completions: Completions, path: str, groups: Sequence[GroupTimes] = ()
) -> None:
    """Draw the distribution of completion times, and slowdowns (median, p99) by size.

    Before them are the times of the groups of a collective operation, if there are any.

    Raises
    ------
    KnotlessError
        No message completed, the path's suffix is not .svg, .png or .pdf, or the file cannot be
        written.

    """
    import matplotlib as mpl

    check_format(path)
    count = len(completions.bytes)
    if not count:
        raise SimulationError("no message completed: there is nothing to plot")
    slowdowns = completions.slowdowns()
    with mpl.rc_context(STYLE):
        panels = 1 + bool(slowdowns) + bool(groups)
        figure = new_figure((4.5, 8, 12)[panels - 1], 3.4)
        axes = list(figure.subplots(1, panels, squeeze=False)[0])
        axes[0].set_title(title)
        if groups:
            plot_collective(axes.pop(0), groups)
        times_us = np.sort(completions.fct_ps) / PICOSECONDS_PER_US
        axes[0].step(times_us, np.arange(1, count + 1) / count, where="post", color=BLUE)
        axes[0].set(xlabel="completion time, us", ylabel="share of messages")
        axes[0].set_xscale("log")
        axes[0].set_ylim(0, 1)
        if slowdowns:
            bins = slowdowns["bins"]
            places = np.arange(len(bins))
            for name, colour in (("p50", BLUE), ("p99", RED)):
                axes[1].plot(places, [each[name] for each in bins], "o-", color=colour, label=name)
            axes[1].set_xticks(places, [_size(each["above_bytes"]) for each in bins])
            axes[1].set(xlabel="bytes, above", ylabel="slowdown")
            axes[1].set_ylim(bottom=0)
            axes[1].legend()
        write_figure(figure, path)


def _size(size: int) -> str:
    for unit, name in ((1_000_000, " M"), (1000, " k")):
        if size >= unit:
            return f"{size // unit}{name}"
    return str(size)
