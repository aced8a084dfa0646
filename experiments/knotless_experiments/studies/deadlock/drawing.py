"""Drawings of a case's fabric: its channels, those in the knot, and their flows."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from math import hypot
from typing import TYPE_CHECKING, Any

from knotless.base.counting import counted
from knotless.base.flow_control import FlowControl
from knotless.results import plots
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Point
from knotless.topologies.layout import place_switches
from knotless.traffic.flows import paths_on_channels
from knotless_experiments.studies.deadlock import scenario
from knotless_experiments.studies.deadlock.matrix import Case

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

WIDTH_IN = 4.6
"""Width, at which text can be read on a screen of 400 pixels."""
TEXT_PT = 11
LONGEST_LINE = 48
MOST_FLOWS = 3
"""More flows make a channel no wider."""
APART = 1.2
"""Distances of switches over those of other pictures: two arrows are between them here."""
HOST_AWAY = 0.7
ABOVE_RIGHT = (0.53, 0.43)
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


def knot(row: Row) -> Figure:
    """Draw the fabric of a row: the knot's channels red, other channels in use blue."""
    figure = plots.new_figure(WIDTH_IN, WIDTH_IN)
    axes = figure.subplots()
    case = Case(row["routes"], row["flow_control"], row["protocol"], 1, row["pattern"])
    _fabric(axes, row, scenario.for_case(case))
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
            _channel(axes, place[switch][0], place[peer][0], colour, used.get(name, 0))
    for host in fabric.hosts:
        switch_at, host_at = place[host.switch]
        xs, ys = zip(switch_at, host_at, strict=True)
        axes.plot(xs, ys, color=plots.MUTED, linewidth=1.2, zorder=1)
        _node(axes, host_at, host.name, "square", plots.MUTED)
        _node(axes, switch_at, host.switch, "circle", plots.INK)
    edge = 0.25 + max(abs(coordinate) for _, host_at in place.values() for coordinate in host_at)
    state = "frozen" if row["deadlock"] else "running"
    control = FlowControl(row["flow_control"])
    axes.set_title(f"{row['routes'].capitalize()} routes, {control.description}: {state}")
    axes.set(xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal")
    axes.set_xlabel(_outcome(row), fontsize=TEXT_PT, labelpad=6)
    axes.set(xticks=(), yticks=())
    for spine in axes.spines.values():
        spine.set_visible(False)


def _channel(axes: Axes, start: Point, end: Point, colour: str, flows: int) -> None:
    """Draw one direction of a link, left of the link's axis, the wider the more flows it has."""
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
            "linewidth": 1.4 + 1.4 * min(flows, MOST_FLOWS),
            "shrinkA": 0,
            "shrinkB": 0,
        },
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
    """Return what became of the flows, and the channels of the knot, in lines."""
    low, high = min(row["flows_mbps"]), max(row["flows_mbps"])
    each = f"{low:.2f}" if high - low < 0.005 else f"{low:.2f} to {high:.2f}"
    lines = [f"{each} Mbit/s a flow, {counted(row['lost_frames'], 'frames')} lost"]
    if row["cycle"]:
        lines += textwrap.wrap(f"knot: {' '.join(row['cycle'])}", LONGEST_LINE)
    return "\n".join(lines)
