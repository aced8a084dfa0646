"""Fabrics as pictures, by Matplotlib."""

from __future__ import annotations

import math
from collections import Counter

import matplotlib

matplotlib.use("Agg")  # no display is needed, nor looked for

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from common.errors import KnotlessError
from runs.plots import check_format
from topologies.fabric import Fabric

Point = tuple[float, float]

SWITCH, HOST, LINK, TEXT = "#2f5d8a", "#e8b04a", "#8a949e", "#1d2733"


def draw_fabric(fabric: Fabric, path: str) -> None:
    """Draw ``fabric`` to a file; its ending says the format.

    Raises
    ------
    KnotlessError
        The ending is none of .svg .png .pdf, or the file cannot be written.

    """
    check_format(path)
    places = place_switches(fabric)
    xs, ys = zip(*places.values(), strict=True)
    width, height = max(xs) - min(xs) + 2.2, max(ys) - min(ys) + 2.2
    scale = min(1.0, 40 / max(width, height))
    figure = Figure(figsize=(max(4, width * scale), max(3, height * scale + 0.4)))
    axes = figure.add_axes((0, 0, 1, 1))
    draw_on(axes, fabric, places)
    axes.set_title(fabric.name, y=0.96, color=TEXT, fontsize=11)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise KnotlessError(f"{path!r} cannot be written: {error.strerror}") from None


def place_switches(fabric: Fabric) -> dict[str, Point]:
    """Return where to draw each switch, neighbours about 1.5 apart.

    Grids by their coordinates (a third dimension and more side by side), single rings on a
    circle, everything else in layers: by the hops from the switches that have hosts, those at
    the bottom, or where all have hosts from the first switch, at the top.
    """
    names = [switch.name for switch in fabric.switches]
    if fabric.grid is not None and len([d for d in fabric.grid.dims if d > 1]) > 1:
        return _on_grid(names, fabric.grid.dims)
    degrees = {len(ports) for ports in fabric.neighbours.values()}
    if len(names) > 2 and degrees == {2}:
        radius = max(1.2, 1.5 * len(names) / (2 * math.pi))
        turns = [math.pi / 2 - 2 * math.pi * (i - 0.5) / len(names) for i in range(len(names))]
        return {
            name: (radius * math.cos(turn), radius * math.sin(turn))
            for name, turn in zip(names, turns, strict=True)
        }
    return _in_layers(fabric)


def _on_grid(names: list[str], dims: tuple[int, ...]) -> dict[str, Point]:
    places = {}
    columns, rows = dims[0], dims[1]
    for i, name in enumerate(names):
        x, y, plane = i % columns, i // columns % rows, i // (columns * rows)
        places[name] = (1.8 * x + plane * 1.8 * (columns + 0.8), -1.8 * y)
    return places


def _in_layers(fabric: Fabric) -> dict[str, Point]:
    leaves = [switch.name for switch in fabric.switches if fabric.hosts_at[switch.name]]
    below = len(leaves) < len(fabric.switches)
    queue = leaves if below else [fabric.switches[0].name]
    level = dict.fromkeys(queue, 0)
    for name in queue:
        for far, _ in fabric.neighbours[name].values():
            if far not in level:
                level[far] = level[name] + 1
                queue.append(far)
    queue.sort(key=fabric.switch_index.__getitem__)
    widths = Counter(level.values())
    seen: Counter[int] = Counter()
    places = {}
    for name in queue:
        layer = level[name]
        places[name] = (
            1.5 * (seen[layer] - (widths[layer] - 1) / 2),
            (2.4 if below else -1.8) * layer,
        )
        seen[layer] += 1
    return places


def draw_on(axes: Axes, fabric: Fabric, places: dict[str, Point]) -> None:
    """Draw hosts, links and switches; links along others are curved so that none hides another."""
    longest = 1.25 * min(
        (math.dist(places[link.a], places[link.b]) for link in fabric.links), default=1.0
    )
    drawn: Counter[frozenset[str]] = Counter()
    for link in fabric.links:
        start, end = places[link.a], places[link.b]
        pair = frozenset((link.a, link.b))
        aligned = min(abs(start[0] - end[0]), abs(start[1] - end[1])) < 0.01
        bend = 0.18 if aligned and math.dist(start, end) > longest else 0.0
        bend += 0.12 * drawn[pair]
        drawn[pair] += 1
        style = f"arc3,rad={bend}"
        axes.add_patch(
            FancyArrowPatch(
                start, end, arrowstyle="-", connectionstyle=style, color=LINK, lw=1.4, zorder=1
            )
        )
    for name, (x, y) in places.items():
        _draw_hosts(axes, [host.name for host in fabric.hosts_at[name].values()], (x, y))
        axes.text(
            x,
            y,
            name,
            color="white",
            ha="center",
            va="center",
            fontsize=8,
            bbox={"boxstyle": "round,pad=0.45", "fc": SWITCH, "ec": "none"},
            zorder=3,
        )
    xs, ys = zip(*places.values(), strict=True)
    axes.set_xlim(min(xs) - 1.1, max(xs) + 1.1)
    axes.set_ylim(min(ys) - 1.1, max(ys) + 1.1)
    axes.set_aspect("equal")
    axes.axis("off")


def _draw_hosts(axes: Axes, names: list[str], at: Point) -> None:
    """Draw a switch's hosts in a fan below right of it; more than eight as a count."""
    if len(names) > 8:
        names = [f"{names[0]}..{names[-1]}"]
    for place, name in enumerate(names):
        turn = math.radians(-45 + 26 * (place - (len(names) - 1) / 2))
        x, y = at[0] + 0.72 * math.cos(turn), at[1] + 0.72 * math.sin(turn)
        axes.plot([at[0], x], [at[1], y], color=HOST, lw=1, zorder=1)
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
