"""Drawings of fabrics, with Matplotlib."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

import matplotlib

matplotlib.use("Agg")  # works without a display

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from knotless.results.plots import RED, STYLE, TEXT_AS_TEXT, check_format, svg_text, write_figure
from knotless.topologies.fabric import Fabric, Link
from knotless.topologies.family import Point
from knotless.topologies.layout import fan, place_switches

_MANY = 150
_FAINT = "#c9cfd5"
"""The colour of links, if there are more than :data:`_MANY`."""
_LONG_NAME = 20
"""Characters that fit beside each other."""
PORT_AWAY, PORT_BESIDE = 0.42, 0.1
"""Where a port is written: from its switch along the link, and beside the link."""
SWITCH, HOST, LINK, TEXT = "#2f5d8a", "#e8b04a", "#8a949e", "#1d2733"


Channel = tuple[str, int]
"""The switch and the port that a channel leaves."""
Marked = Collection[Channel] | Mapping[Channel, str]
"""Channels drawn as arrows: red, or each in a colour of its own."""


def draw_fabric(fabric: Fabric, path: str, marked: Marked = (), *, ports: bool = False) -> None:
    """Draw ``fabric`` to a file, with arrows for ``marked`` channels.

    The suffix of ``path`` determines the format. ``ports`` adds the port of each end of a link.

    Raises
    ------
    KnotlessError
        The suffix is not .svg, .png or .pdf, or the file cannot be written.

    """
    check_format(path)
    write_figure(_figure(fabric, marked, ports=ports), path)


def fabric_svg(fabric: Fabric, marked: Marked = ()) -> str:
    """Return the same drawing as an SVG element."""
    with matplotlib.rc_context({"svg.hashsalt": STYLE["svg.hashsalt"], **TEXT_AS_TEXT}):
        return svg_text(_figure(fabric, marked))


def _figure(fabric: Fabric, marked: Marked, *, ports: bool = False) -> Figure:
    places = place_switches(fabric)
    xs, ys = zip(*places.values(), strict=True)
    width, height = max(xs) - min(xs) + 2.2, max(ys) - min(ys) + 2.2
    scale = min(1.0, 40 / max(width, height))
    figure = Figure(figsize=(max(4, width * scale), max(3, height * scale + 0.4)))
    axes = figure.add_axes((0, 0, 1, 1))
    draw_on(axes, fabric, places, marked)
    if ports:
        _draw_ports(axes, fabric, places)
    axes.set_title(fabric.name, y=0.96, color=TEXT, fontsize=11)
    return figure


def draw_on(axes: Axes, fabric: Fabric, places: dict[str, Point], marked: Marked = ()) -> None:
    """Draw hosts, links and switches; parallel links are curved so that none hides another."""
    colours = marked if isinstance(marked, Mapping) else dict.fromkeys(marked, RED)
    # Links of large fabrics are so many that they would hide marked ones.
    colour, width = (LINK, 1.4) if len(fabric.links) <= _MANY else (_FAINT, 0.5)
    for link, bend in _bends(fabric, places):
        start, end = places[link.a], places[link.b]
        style = f"arc3,rad={bend}"
        axes.add_patch(
            FancyArrowPatch(
                start, end, arrowstyle="-", connectionstyle=style, color=colour, lw=width, zorder=1
            )
        )
        if (link.a, link.a_port) in colours:
            _draw_arrow(axes, start, end, bend, colours[link.a, link.a_port])
        if (link.b, link.b_port) in colours:
            _draw_arrow(axes, end, start, -bend, colours[link.b, link.b_port])
    red = {name for (name, _), colour in colours.items() if colour == RED}
    for name, (x, y) in places.items():
        _draw_hosts(axes, [host.name for host in fabric.hosts_at[name].values()], (x, y))
        axes.text(
            x,
            y,
            name,
            color="white",
            ha="center",
            va="center",
            fontsize=min(8.0, 8 * _LONG_NAME / len(name)),
            bbox={
                "boxstyle": "round,pad=0.45",
                "fc": SWITCH,
                "ec": RED if name in red else "none",
                "lw": 2,
            },
            zorder=3,
        )
    xs, ys = zip(*places.values(), strict=True)
    axes.set_xlim(min(xs) - 1.1, max(xs) + 1.1)
    axes.set_ylim(min(ys) - 1.1, max(ys) + 1.1)
    axes.set_aspect("equal")
    axes.axis("off")


def _bends(fabric: Fabric, places: dict[str, Point]) -> Iterator[tuple[Link, float]]:
    """Yield all links, each with its curvature (``rad`` of Matplotlib's ``arc3``)."""
    longest = 1.25 * min(
        (math.dist(places[link.a], places[link.b]) for link in fabric.links), default=1.0
    )
    drawn: Counter[frozenset[str]] = Counter()
    for link in fabric.links:
        start, end = places[link.a], places[link.b]
        pair = frozenset((link.a, link.b))
        aligned = min(abs(start[0] - end[0]), abs(start[1] - end[1])) < 0.01
        bend = 0.18 if aligned and math.dist(start, end) > longest else 0.0
        yield link, bend + 0.12 * drawn[pair]
        drawn[pair] += 1


def _draw_ports(axes: Axes, fabric: Fabric, places: dict[str, Point]) -> None:
    """Write the ports of links, each beside its end."""
    for link, bend in _bends(fabric, places):
        a, b = places[link.a], places[link.b]
        # The line leaves both ends towards this point.
        middle = (
            (a[0] + b[0]) / 2 + bend * (b[1] - a[1]),
            (a[1] + b[1]) / 2 - bend * (b[0] - a[0]),
        )
        # Bent lines have theirs on the outside of the bend, where no straight line is.
        _draw_port(axes, a, middle, link.a_port, -1 if bend else 1)
        _draw_port(axes, b, middle, link.b_port, 1)


def _draw_port(axes: Axes, place: Point, towards: Point, port: int, side: int) -> None:
    """Write a port near its switch, on the left (1) or right (-1) of its link."""
    length = math.dist(place, towards) or 1.0
    along = ((towards[0] - place[0]) / length, (towards[1] - place[1]) / length)
    axes.text(
        place[0] + PORT_AWAY * along[0] - side * PORT_BESIDE * along[1],
        place[1] + PORT_AWAY * along[1] + side * PORT_BESIDE * along[0],
        str(port),
        color=TEXT,
        ha="center",
        va="center",
        fontsize=6,
        zorder=3,
    )


def _draw_arrow(axes: Axes, start: Point, end: Point, bend: float, colour: str) -> None:
    """Draw a marked channel a little beside its link, so that both directions can be seen."""
    style = f"arc3,rad={bend + 0.06}"
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=14,
            shrinkA=14,
            shrinkB=14,
            connectionstyle=style,
            color=colour,
            lw=2.2,
            zorder=2,
        )
    )


def _draw_hosts(axes: Axes, names: list[str], place: Point) -> None:
    """Draw a switch's hosts in a fan below and to the right; more than eight as one."""
    if len(names) > 8:
        all_names = f"{names[0]}..{names[-1]}"
        if len(all_names) > _LONG_NAME:
            _draw_count(axes, len(names), place)
            return
        names = [all_names]
    for name, (dx, dy) in zip(names, fan(len(names)), strict=True):
        x, y = place[0] + dx, place[1] + dy
        axes.plot([place[0], x], [place[1], y], color=HOST, lw=1, zorder=1)
        axes.text(
            x,
            y,
            name,
            color=TEXT,
            ha="center",
            va="center",
            fontsize=6,
            bbox={"boxstyle": "circle,pad=0.2", "fc": HOST, "ec": "none"},
            zorder=2,
        )


def _draw_count(axes: Axes, count: int, place: Point) -> None:
    """Draw many hosts with long names as their number, below their switch."""
    axes.text(
        place[0],
        place[1] - 0.42,
        f"{count} hosts",
        color=TEXT,
        ha="center",
        va="center",
        fontsize=6,
        bbox={"boxstyle": "round,pad=0.2", "fc": HOST, "ec": "none"},
        zorder=2,
    )
