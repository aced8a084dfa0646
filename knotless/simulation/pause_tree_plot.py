"""A drawing of how pauses spread: the trees of :mod:`knotless.simulation.pause_tree` over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from knotless.base.errors import SimulationError
from knotless.results.plots import (
    BLUE,
    INK,
    MUTED,
    RED,
    STYLE,
    check_format,
    new_figure,
    write_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LABELLED = 80
"""The most channels of which each has its name."""
MAX_ROWS = 400
"""Rows that a drawing has room for; further ones lie closer together."""


@dataclass(frozen=True)
class _Node:
    """A channel in the drawing: its row, its time, and the number of the one that it waits for."""

    name: str
    row: int
    at_us: float
    parent: int | None
    root: bool = False


def draw_pause_trees(title: str, trees: Sequence[dict[str, Any]], path: str) -> None:
    """Draw when each channel was paused first, below the channel because of which.

    Raises
    ------
    KnotlessError
        No channel was paused, the path's suffix is not .svg, .png or .pdf, or the file cannot be
        written.

    """
    import matplotlib as mpl

    check_format(path)
    if not trees:
        raise SimulationError("no channel was paused: there is nothing to plot")
    with mpl.rc_context(STYLE):
        write_figure(pause_tree_figure(title, trees), path)


def pause_tree_figure(title: str, trees: Sequence[dict[str, Any]]) -> Figure:
    """Return the drawing of at least one tree."""
    nodes = _placed(trees)
    rows = len(nodes)
    figure = new_figure(8.4, 1.2 + 0.24 * min(rows, MAX_ROWS))
    axes = figure.subplots()
    for node in nodes:
        if node.parent is not None:
            above = nodes[node.parent]
            corner = [(above.at_us, above.row), (above.at_us, node.row), (node.at_us, node.row)]
            axes.plot(*zip(*corner, strict=True), color=MUTED, linewidth=0.9, zorder=1)
    size = 5 if rows <= MAX_LABELLED else 3
    for roots, colour, marker, label in (
        (True, RED, "s", "where a tree begins"),
        (False, BLUE, "o", "first pause of a channel"),
    ):
        drawn = [node for node in nodes if node.root is roots]
        places = ([node.at_us for node in drawn], [node.row for node in drawn])
        axes.plot(*places, marker, color=colour, markersize=size, label=label)
    for node in nodes if rows <= MAX_LABELLED else ():
        axes.annotate(
            *(node.name, (node.at_us, node.row)),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=INK,
        )
    axes.margins(x=0.12)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_yticks([])
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)
    axes.set(title=title, xlabel="us")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _placed(trees: Sequence[dict[str, Any]]) -> list[_Node]:
    """Return all channels, each in the row after what came before it in its tree."""
    nodes: list[_Node] = []
    for tree in trees:
        begins_us = min(node["since_us"] for node in tree["paused"])
        name = tree["congested"] or "frames in transmission, or a slow host"
        why = "paused by its host" if tree["by_host"] else "congested"
        nodes.append(_Node(f"{name}: {why}", len(nodes), begins_us, None, root=True))
        # Without recursion: a chain of pauses may be longer than Python's stack.
        waiting = [(node, len(nodes) - 1) for node in reversed(tree["paused"])]
        while waiting:
            node, parent = waiting.pop()
            nodes.append(_Node(node["channel"], len(nodes), node["since_us"], parent))
            waiting += [(child, len(nodes) - 1) for child in reversed(node["paused"])]
    return nodes
