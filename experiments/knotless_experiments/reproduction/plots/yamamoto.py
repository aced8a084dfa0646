"""Plots of Yamamoto et al."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from knotless.results import plots as style
from knotless.results.stored import Stored
from knotless_experiments.framework.experiment import EMULATION, SIMULATION
from knotless_experiments.reproduction.claim import Paper
from knotless_experiments.reproduction.papers.yamamoto import ARRIVED, OURS
from knotless_experiments.reproduction.plots import EMULATED, PAPER, SIMULATED
from knotless_experiments.reproduction.rows import rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table_3(paper: Paper, stored: Stored) -> Figure:
    """Draw when each stage of a push begins, as a share of the time until the data is written."""
    figure = style.new_figure(8.6, 4.4)
    left, right = figure.subplots(1, 2, sharex=True)
    stages = paper.printed["table 3"]
    names = [f"{each['number']} {each['stage']}" for each in stages]
    written_us = stages[-1]["begins_us"]
    times = [each["begins_us"] / written_us for each in stages]
    left.plot(times, range(len(stages)), "o-", color=PAPER)
    left.set_yticks(range(len(stages)), names, fontsize=8)
    left.set_title("paper")
    for on, colour in ((EMULATION, EMULATED), (SIMULATION, SIMULATED)):
        stages_us = [
            row["stages_us"]
            for row in rows(stored, "primitives", on)
            if row["operation"] == "stages"
        ]
        shares = [fmean(each[stage] / each[ARRIVED] for each in stages_us) for stage in OURS]
        right.plot(shares, range(len(OURS)), "o-", color=colour, label=on)
    right.set_yticks(range(len(OURS)), OURS, fontsize=8)
    right.set_title("ours")
    right.legend()
    for axes in (left, right):
        axes.invert_yaxis()
        axes.grid(axis="x")
    figure.supxlabel("share of the time until the data is in the remote memory", fontsize=10)
    return figure
