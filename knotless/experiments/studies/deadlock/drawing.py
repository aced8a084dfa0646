"""Drawings of a case's fabric: its channels, those in the knot, and their flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot
from typing import TYPE_CHECKING, Any

from knotless.base.flow_control import FlowControl
from knotless.experiments.studies.deadlock import scenario
from knotless.experiments.studies.deadlock.matrix import Case
from knotless.results import plots
from knotless.topologies.fabric import Fabric
from knotless.topologies.layout import Point, place_switches
from knotless.traffic.flows import paths_on_channels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

APART = 1.2
"""Distances of switches over those of other pictures: the channels have labels here."""
HOST_AWAY = 0.88
ABOVE_RIGHT = (0.4, 0.4)
CHANNEL_APART = 0.13
SWITCH_RADIUS = 0.27


def places(fabric: Fabric) -> dict[str, tuple[Point, Point]]:
    """Return where each switch is drawn, around (0, 0), and where its host is.

    That is outside the fabric, or in a grid above right of the switch, where no channel is.
    """
    positions = place_switches(fabric)
    xs, ys = zip(*positions.values(), strict=True)
    middle_x, middle_y = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
    in_grid = fabric.grid is not None and len(fabric.grid.dims) == 2
    both = {}
    for name, position in positions.items():
        x, y = APART * (position[0] - middle_x), APART * (position[1] - middle_y)
        if in_grid:
            dx, dy = ABOVE_RIGHT
        else:
            dx, dy = HOST_AWAY * x / hypot(x, y), HOST_AWAY * y / hypot(x, y)
        both[name] = ((x, y), (x + dx, y + dy))
    return both


def knot(rows: Sequence[Row]) -> Figure:
    """Draw the fabric for each row: the knot's channels red, other channels in use blue."""
    figure = plots.new_figure(4.6 * len(rows), 4.9)
    axes = figure.subplots(1, len(rows), squeeze=False)[0]
    for each, row in zip(axes, rows, strict=True):
        case = Case(row["routes"], row["flow_control"], row["protocol"], 1, row["pattern"])
        _fabric(each, row, scenario.for_case(case))
    return figure


def _fabric(axes: Axes, row: Row, planned: scenario.Scenario) -> None:
    fabric = planned.fabric
    place = places(fabric)
    used = paths_on_channels(planned.flows)
    caught = {member.partition("/")[0] for member in row["cycle"]}
    for switch, ports in fabric.neighbours.items():
        for port, (peer, _) in ports.items():
            name = f"{switch}:{port}"
            colour = plots.RED if name in caught else plots.BLUE if name in used else plots.GRID
            label = (
                f"{name}\n{used[name]} flow{'s' if used[name] > 1 else ''}" if name in used else ""
            )
            _channel(axes, place[switch][0], place[peer][0], colour, label)
    for host in fabric.hosts:
        switch_at, host_at = place[host.switch]
        xs, ys = zip(switch_at, host_at, strict=True)
        axes.plot(xs, ys, color=plots.MUTED, linewidth=1.2, zorder=1)
        _node(axes, host_at, host.name, "square", plots.MUTED)
        _node(axes, switch_at, host.switch, "circle", plots.INK)
    edge = 0.45 + max(abs(x) for _, host_at in place.values() for x in host_at)
    axes.text(0, -edge, _outcome(row), ha="center", va="center", fontsize=11)
    state = "frozen" if row["deadlock"] else "running"
    control = FlowControl(row["flow_control"])
    axes.set_title(f"{row['routes'].capitalize()} routes, {control.description}: {state}")
    axes.set(xlim=(-edge, edge), ylim=(-edge - 0.15, edge - 0.15), aspect="equal")
    axes.axis("off")


def _channel(axes: Axes, start: Point, end: Point, colour: str, label: str) -> None:
    """Draw one direction of a link, left of the link's axis, with its name outside."""
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


def _node(axes: Axes, position: Point, name: str, shape: str, colour: str) -> None:
    axes.text(
        *position,
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
