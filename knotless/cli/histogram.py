"""Histograms of channel loads and of fair rates of flows."""

from __future__ import annotations

import matplotlib
import numpy as np
from numpy.typing import NDArray

from knotless.results.plots import BLUE, GREEN, STYLE, check_format, new_figure, write_figure


def draw_histogram(
    title: str, loads: NDArray[np.int64], rates: NDArray[np.float64] | None, path: str
) -> None:
    """Draw the number of channels by load, and of flows by fair rate (Mbit/s).

    Raises
    ------
    KnotlessError
        The path's suffix is not .svg, .png or .pdf, or the file cannot be written.

    """
    check_format(path)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(8 if rates is not None else 4.5, 3.4)
        axes = figure.subplots(1, 2 if rates is not None else 1, squeeze=False)[0]
        most = int(loads.max(initial=0))
        edges = np.arange(most + 2) - 0.5 if most <= 40 else 40
        axes[0].hist(loads, bins=edges, color=BLUE, rwidth=0.9)
        axes[0].set(title=title, xlabel="flows on a channel between switches", ylabel="channels")
        axes[0].xaxis.get_major_locator().set_params(integer=True)
        axes[0].yaxis.get_major_locator().set_params(integer=True)
        if rates is not None:
            axes[1].hist(rates, bins=30, range=(0, float(rates.max())), color=GREEN, rwidth=0.9)
            axes[1].set(xlabel="max-min fair rate, Mbit/s", ylabel="flows")
            axes[1].set_xlim(left=0)
            axes[1].yaxis.get_major_locator().set_params(integer=True)
        write_figure(figure, path)
