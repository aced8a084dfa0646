"""Plots of Yamamoto et al."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from knotless.experiments.framework.experiment import EMULATION, SIMULATION
from knotless.experiments.reproduction.paper_003 import ARRIVED, OURS, STAGES_US, WRITTEN_US
from knotless.experiments.reproduction.plots import EMULATED, PAPER, SIMULATED
from knotless.experiments.reproduction.rows import rows
from knotless.results import plots as style
from knotless.results.stored import Stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table_3(stored: Stored) -> Figure:
    """Draw when each stage of a push begins, as a share of the time until the data is written."""
    figure = style.new_figure(8.6, 4.4)
    left, right = figure.subplots(1, 2, sharex=True)
    left.plot(
        [us / WRITTEN_US for us in STAGES_US.values()], range(len(STAGES_US)), "o-", color=PAPER
    )
    left.set_yticks(range(len(STAGES_US)), list(STAGES_US), fontsize=8)
    left.set_title("paper")
    for on, colour in ((EMULATION, EMULATED), (SIMULATION, SIMULATED)):
        found = [
            row["stages_us"]
            for row in rows(stored, "primitives", on)
            if row["operation"] == "stages"
        ]
        shares = [fmean(each[stage] / each[ARRIVED] for each in found) for stage in OURS]
        right.plot(shares, range(len(OURS)), "o-", color=colour, label=on)
    right.set_yticks(range(len(OURS)), OURS, fontsize=8)
    right.set_title("ours")
    right.legend()
    for axes in (left, right):
        axes.invert_yaxis()
        axes.grid(axis="x")
    figure.supxlabel("share of the time until the data is in the remote memory", fontsize=10)
    return figure
