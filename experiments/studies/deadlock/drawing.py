"""The fabric of a case as a picture: its channels, those in the knot, and what flows on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING, Any

from common.flow_control import NAMES
from experiments.studies.deadlock import scenario
from experiments.studies.deadlock.matrix import Case
from runs import plots
from topologies.fabric import Fabric
from traffic.flows import paths_on_channels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Point = tuple[float, float]

CORNER = 2**0.5
"""How far from the middle the switches of a ring are drawn; those of a ring of four are then at
(1, 1) and so on."""
HOST_AWAY = 0.62
CHANNEL_APART = 0.13
SWITCH_RADIUS = 0.27


def places(fabric: Fabric) -> dict[str, tuple[Point, Point]]:
    """Return where each switch is drawn, and in which direction its host stands.

    A ring's positive direction goes clockwise from the upper left; a mesh has its first switch
    at the upper left.
    """
    names = [switch.name for switch in fabric.switches]
    grid = fabric.grid
    if grid is not None and len(grid.dims) == 2:
        apart = 1.9
        middle = [(size - 1) / 2 for size in grid.dims]
        found = {}
        for i, name in enumerate(names):
            y, x = divmod(i, grid.dims[0])
            found[name] = ((apart * (x - middle[0]), apart * (middle[1] - y)), (0.62, 0.62))
        return found
    radius = CORNER * max(1.0, len(names) / 5)
    angles = [pi * (0.75 - 2 * i / len(names)) for i in range(len(names))]
    return {
        name: (
            (radius * cos(angle), radius * sin(angle)),
            (CORNER * cos(angle), CORNER * sin(angle)),
        )
        for name, angle in zip(names, angles, strict=True)
    }


def knot(rows: Sequence[Row]) -> Figure:
    """Draw the fabric for each row given: the knot's channels red, other used ones blue."""
    figure = plots.new_figure(4.6 * len(rows), 4.9)
    axes = figure.subplots(1, len(rows), squeeze=False)[0]
    for each, row in zip(axes, rows, strict=True):
        case = Case(row["routes"], row["flow_control"], row["protocol"], 1, row["pattern"])
        _fabric(each, row, scenario.of(case))
    return figure


def _fabric(axes: Axes, row: Row, planned: scenario.Scenario) -> None:
    fabric = planned.fabric
    place = places(fabric)
    used = paths_on_channels(planned.flows)
    caught = {member.partition("/")[0] for member in row["cycle"]}
    for switch, ports in fabric.neighbours.items():
        for port, (far, _) in ports.items():
            name = f"{switch}:{port}"
            colour = plots.RED if name in caught else plots.BLUE if name in used else plots.GRID
            label = (
                f"{name}\n{used[name]} flow{'s' if used[name] > 1 else ''}" if name in used else ""
            )
            _channel(axes, place[switch][0], place[far][0], colour, label)
    for host in fabric.hosts:
        (x, y), (dx, dy) = place[host.switch]
        at = (x + HOST_AWAY * dx, y + HOST_AWAY * dy)
        axes.plot([x, at[0]], [y, at[1]], color=plots.MUTED, linewidth=1.2, zorder=1)
        _node(axes, at, host.name, "square", plots.MUTED)
        _node(axes, (x, y), host.switch, "circle", plots.INK)
    edge = 0.45 + max(
        abs(x + HOST_AWAY * dx)
        for point, away in place.values()
        for x, dx in zip(point, away, strict=True)
    )
    axes.text(0, -edge, _outcome(row), ha="center", va="center", fontsize=11)
    state = "frozen" if row["deadlock"] else "running"
    axes.set_title(f"{row['routes'].capitalize()} routes, {NAMES[row['flow_control']]}: {state}")
    axes.set(xlim=(-edge, edge), ylim=(-edge - 0.15, edge - 0.15), aspect="equal")
    axes.axis("off")


def _channel(axes: Axes, start: Point, end: Point, colour: str, label: str) -> None:
    """Draw one direction of a link, to the left of the way it goes, with its name outside."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = hypot(dx, dy)
    ux, uy = dx / length, dy / length
    ox, oy = -uy * CHANNEL_APART, ux * CHANNEL_APART
    gap = SWITCH_RADIUS + 0.04
    axes.annotate(
        "",
        xy=(end[0] - ux * gap + ox, end[1] - uy * gap + oy),
        xytext=(start[0] + ux * gap + ox, start[1] + uy * gap + oy),
        arrowprops={
            "arrowstyle": "-|>,head_width=0.35,head_length=0.6",
            "color": colour,
            "linewidth": 3.0 if label else 1.4,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )
    if label:
        away = 0.34 + 0.08 * abs(uy) + 0.3 * abs(ux * uy)
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        sign = 1 / CHANNEL_APART
        axes.text(
            middle[0] + ox * sign * away,
            middle[1] + oy * sign * away,
            label,
            color=colour,
            ha="center",
            va="center",
            fontsize=8.5,
        )


def _node(axes: Axes, at: Point, name: str, shape: str, colour: str) -> None:
    axes.text(
        *at,
        name,
        color="white",
        ha="center",
        va="center",
        fontsize=10,
        fontweight="bold",
        bbox={"boxstyle": f"{shape},pad=0.35", "facecolor": colour, "edgecolor": "white"},
        zorder=3,
    )


def _outcome(row: Row) -> str:
    low, high = min(row["flows_mbps"]), max(row["flows_mbps"])
    each = f"{low:.2f}" if high - low < 0.005 else f"{low:.2f} to {high:.2f}"
    return f"{each} Mbit/s a flow, {row['lost_frames']:,} frames lost"
