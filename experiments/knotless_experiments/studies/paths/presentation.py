"""Findings of the paths experiment, in sentences, a table, a plot and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from knotless.base.counting import counted
from knotless.results import plots as style
from knotless_experiments.framework.experiment import Plot, Presentation
from knotless_experiments.studies.paths.columns import COLUMNS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """Say what was found."""
    if lost := sum(row["undelivered"] for row in rows):
        yield f"NOT reached: {counted(lost, 'pairs of hosts')}."
    else:
        yield "Every pair of hosts is reached."
    for row in rows:
        if not row["acyclic"]:
            yield (
                f"{row['fabric']}, {row['routes']}: channel dependencies have a CYCLE, "
                f"{' '.join(row['cycle'])}."
            )


def _figure(rows: Sequence[Row]) -> Figure:
    once = [row for row in rows if row["repeat"] == 1]
    figure = style.new_figure(7.5, 0.9 + 0.24 * len(once))
    lengths, loads = figure.subplots(1, 2, sharey=True)
    names = [f"{row['fabric']}, {row['routes']}" for row in once]
    positions = range(len(once))
    lengths.barh(positions, [row["mean_switches"] for row in once], color=style.BLUE)
    lengths.plot([row["max_switches"] for row in once], positions, "|", color=style.INK)
    loads.barh(
        positions,
        [100 * row["max_channel_load"] / row["hosts"] ** 2 for row in once],
        color=[style.BLUE if row["acyclic"] else style.RED for row in once],
    )
    lengths.set_yticks(positions, names)
    lengths.set_ylim(len(once) - 0.5, -0.5)
    lengths.set(xlabel="switches on a path")
    loads.set(xlabel="paths on the most loaded channel, %")
    for axes in (lengths, loads):
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
    return figure


NOTES = [
    (
        "From the rules",
        "Every figure is computed by tracing the compiled rules for all ordered pairs of hosts, as "
        "`knotless check` does; a host to itself passes one switch.",
    ),
    (
        "VLANs",
        "'tree': every VLAN is a tree, as ordinary switches need it. 'default': as few as carry "
        "the paths where unknown frames are not flooded.",
    ),
    (
        "Acyclic",
        "No cycle of channel dependencies, each channel with its priority: with "
        "PFC such routes cannot deadlock; without virtual channels with PAUSE neither.",
    ),
]


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Put the presentation of a run together; a plot only where ``draw``."""
    del samples
    rows = run["rows"]
    caption = (
        "Left: mean number of switches on a path, and the most (strokes). Right: how many of all "
        "paths share the fullest channel; red where paths depend on each other in a circle."
    )
    return Presentation(
        title="Paths: their lengths, and what shares channels",
        lead="Nothing is sent: the rules of each plan are traced for every pair of hosts.",
        sentences=list(sentences(rows)),
        columns=COLUMNS,
        rows=rows,
        notes=NOTES,
        plots=[Plot("paths", caption, _figure(rows))] if draw and rows else [],
    )
