"""The plot of the barrier experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from knotless.results import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
COLOURS = (plots.BLUE, plots.RED, plots.GREEN, plots.AMBER, plots.INK, plots.MUTED)


def by_hosts(rows: Sequence[Row]) -> Figure:
    """Plot the mean over the number of hosts, one line per series; crosses are predictions."""
    figure = plots.new_figure(7.2, 4.4)
    axes = figure.subplots()
    keys = [key for key in ("fabric", "engine", "vcs", "networks") if _differs(rows, key)]
    series: dict[str, list[Row]] = {}
    for row in rows:
        name = " ".join([row["algorithm"], *(str(row[key]) for key in keys)])
        series.setdefault(name, []).append(row)
    for number, (name, runs) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        ordered = sorted(runs, key=lambda row: row["hosts"])
        hosts = [row["hosts"] for row in ordered]
        means = [row["mean_us"] for row in ordered]
        style = "-" if number < len(COLOURS) else "--"
        axes.plot(hosts, means, style, marker="o", markersize=4, color=colour, label=name)
        predicted = [row["predicted_us"] for row in ordered]
        axes.plot(hosts, predicted, linestyle="none", marker="x", color=colour)
    axes.set_xlabel("hosts")
    axes.set_ylabel("mean time of a barrier, us")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    return figure


def _differs(rows: Sequence[Row], key: str) -> bool:
    return len({row[key] for row in rows}) > 1
