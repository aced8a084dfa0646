"""Plots in the form of the papers' figures: theirs where they print numbers, and ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from knotless.results import plots as style
from knotless.results.stored import Stored
from knotless_experiments.reproduction.claim import Claim
from knotless_experiments.reproduction.rows import rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER, EMULATED, SIMULATED = style.RED, style.GREEN, style.BLUE
"""The colours of the paper's figures, and of ours."""
COLOURS = (style.BLUE, "#7fa8d9", style.GREEN, style.AMBER, style.RED, style.INK, "#7a4fa3")
MARKERS = "os^vDPX"


def means(stored: Stored, claims: Sequence[Claim], on: str) -> list[float | None]:
    """Return our figure of each claim in one place, None where there is none."""
    spreads = [
        claim.compute(rows(stored, claim.experiment, on)) if on in claim.places else None
        for claim in claims
    ]
    return [None if spread is None else spread.mean for spread in spreads]


def bars(
    axes: Axes,
    names: Sequence[str],
    series: Sequence[tuple[str, str, Sequence[float | None]]],
) -> None:
    """Draw groups of horizontal bars: one group for each name, one bar for each series.

    A series is a label, a colour and one value for each name; None leaves a gap.
    """
    height = 0.8 / len(series)
    for i, (label, colour, values) in enumerate(series):
        drawn = [(n, v) for n, v in enumerate(values) if v is not None]
        axes.barh(
            [n + (i - (len(series) - 1) / 2) * height for n, _ in drawn],
            [v for _, v in drawn],
            height=0.9 * height,
            color=colour,
            label=label,
        )
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x")
    axes.grid(axis="y", visible=False)


def legend_outside(figure: Figure, axes: Axes) -> None:
    """Put the legend of ``axes`` to the right of all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
