"""The plots of the traffic experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from knotless.results import plots as style
from knotless_experiments.framework.experiment import Plot
from knotless_experiments.studies.traffic.cases import ACKNOWLEDGED, OPEN_LOOP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
COLOURS = (style.BLUE, style.RED, style.GREEN, style.AMBER, style.INK, "#7a4fa3", "#0f8b8d")
MARKERS = "osD^vPX*<>hd"


def plots(rows: Sequence[Row]) -> list[Plot]:
    """Return the plots for which there are rows."""
    shown = []
    messages = [row for row in rows if row["part"] == ACKNOWLEDGED]
    for fabric in dict.fromkeys(row["fabric"] for row in messages):
        of_fabric = [row for row in messages if row["fabric"] == fabric]
        name = f"messages-{''.join(c if c.isalnum() else '-' for c in fabric)}"
        shown.append(
            Plot(
                name,
                f"{fabric}: bandwidth of acknowledged messages, mean over all senders, for each "
                "pattern. Dots are runs, lines their means; crosses are not valid.",
                _messages(of_fabric),
            )
        )
    if flood := [row for row in rows if row["part"] == OPEN_LOOP]:
        shown.append(
            Plot(
                "open-loop",
                "Hosts that send at full rate: mean goodput of a flow. Dots are runs, bars their "
                "means; the black line is the mean of the max-min fair shares.",
                _open_loop(flood),
            )
        )
    return shown


def _messages(rows: Sequence[Row]) -> Figure:
    patterns = list(dict.fromkeys(row["pattern"] for row in rows))
    routes = list(dict.fromkeys(row["routes"] for row in rows))
    columns = min(2, len(patterns))
    height = -(-len(patterns) // columns)
    figure = style.new_figure(4.8 * columns + 1.6, 3.2 * height + 0.4)
    panels = figure.subplots(height, columns, squeeze=False, sharex=True, sharey=True)
    for axes, pattern in zip(panels.flat, patterns, strict=False):
        for i, name in enumerate(routes):
            chosen = [r for r in rows if (r["pattern"], r["routes"]) == (pattern, name)]
            _line(axes, chosen, name, COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)])
        axes.set_title(pattern)
    for axes in panels.flat[len(patterns) :]:
        axes.axis("off")
    # The axis starts at zero and has room at the top, so that a single size is visible.
    panels[0, 0].set_ylim(0, 1.1 * max(row["mean_mbps"] for row in rows) or 1.0)
    panels[0, 0].set_xlim(0, 1.05 * max(row["message_bytes"] for row in rows))
    panels[0, 0].set_xticks(sorted({row["message_bytes"] for row in rows}))
    figure.supxlabel("bytes of a message", fontsize=10)
    figure.supylabel("Mbit/s of a sender", fontsize=10)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
    return figure


def _line(axes: Axes, rows: Sequence[Row], name: str, colour: str, marker: str) -> None:
    valid = [row for row in rows if row["valid"]]
    sizes = sorted({row["message_bytes"] for row in valid})
    mean = [fmean(r["mean_mbps"] for r in valid if r["message_bytes"] == size) for size in sizes]
    axes.plot(sizes, mean, color=colour, linewidth=1.5, marker=marker, markersize=4, label=name)
    for row in rows:
        sign = marker if row["valid"] else "x"
        axes.plot(row["message_bytes"], row["mean_mbps"], sign, color=colour, markersize=3)


def _open_loop(rows: Sequence[Row]) -> Figure:
    kinds = list(dict.fromkeys((row["pattern"], row["protocol"]) for row in rows))
    places = list(dict.fromkeys((row["fabric"], row["routes"]) for row in rows))
    columns = min(2, len(kinds))
    height = -(-len(kinds) // columns)
    figure = style.new_figure(max(5.0, 0.75 * len(places) + 1.5) * columns, 3.6 * height + 0.6)
    panels = figure.subplots(height, columns, squeeze=False, sharex=True, sharey=True)
    for axes, kind in zip(panels.flat, kinds, strict=False):
        for x, place in enumerate(places):
            chosen = [
                row
                for row in rows
                if (row["pattern"], row["protocol"]) == kind
                and (row["fabric"], row["routes"]) == place
            ]
            _bar(axes, x, chosen)
        axes.set_title(f"{kind[0]}, {kind[1].upper()}")
        words = [f"{fabric}\n{routes}" for fabric, routes in places]
        axes.set_xticks(range(len(places)), words, rotation=90, fontsize=8)
    for axes in panels.flat[len(kinds) :]:
        axes.axis("off")
    figure.supylabel("Mbit/s of a flow", fontsize=10)
    return figure


def _bar(axes: Axes, x: int, rows: Sequence[Row]) -> None:
    valid = [row["mean_mbps"] for row in rows if row["valid"]]
    if valid:
        axes.bar(x, fmean(valid), width=0.6, color=style.BLUE, alpha=0.55)
    for row in rows:
        marker = "o" if row["valid"] else "x"
        axes.plot(x, row["mean_mbps"], marker, color=style.INK, markersize=4)
        theory = row["theory_mbps"]
        axes.plot([x - 0.36, x + 0.36], [theory, theory], color=style.INK, linewidth=1.4)
