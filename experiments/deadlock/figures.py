"""The pictures of the deadlock experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot
from typing import TYPE_CHECKING, Any

from experiments import plots
from experiments.deadlock import scenario
from experiments.flows import paths_on_channels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Point = tuple[float, float]

CORNERS: tuple[Point, ...] = ((-1, 1), (1, 1), (1, -1), (-1, -1))
"""Where the switches are drawn: the positive direction of the ring goes clockwise."""
HOST_AT = 1.62
CHANNEL_APART = 0.13
SWITCH_RADIUS = 0.27
COLOURS = {"cyclic": plots.RED, "acyclic": plots.BLUE, "dateline": plots.GREEN}
WORDS = {
    "none": "no flow control",
    "host": "PAUSE on host links",
    "switch": "PAUSE on switch links",
    "all": "PAUSE on all links",
    "pfc": "PFC on all links",
}


def knot(rows: Sequence[Row], rate_mbps: float) -> Figure:
    """Draw the ring for each row given: the knot's channels red, other used ones blue."""
    figure = plots.new_figure(4.6 * len(rows), 4.9)
    axes = figure.subplots(1, len(rows), squeeze=False)[0]
    for each, row in zip(axes, rows, strict=True):
        _ring(each, row, scenario.make(row["routes"], rate_mbps))
    return figure


def _ring(axes: Axes, row: Row, planned: scenario.Scenario) -> None:
    fabric = planned.fabric
    place = dict(zip((switch.name for switch in fabric.switches), CORNERS, strict=True))
    used = paths_on_channels(planned.flows)
    caught = {member.partition("/")[0] for member in row["cycle"]}
    for switch, ports in fabric.neighbours.items():
        for port, (far, _) in ports.items():
            name = f"{switch}:{port}"
            colour = plots.RED if name in caught else plots.BLUE if name in used else plots.GRID
            label = (
                f"{name}\n{used[name]} flow{'s' if used[name] > 1 else ''}" if name in used else ""
            )
            _channel(axes, place[switch], place[far], colour, label)
    for host in fabric.hosts:
        x, y = place[host.switch]
        scale = HOST_AT
        axes.plot([x, x * scale], [y, y * scale], color=plots.MUTED, linewidth=1.2, zorder=1)
        _node(axes, (x * scale, y * scale), host.name, "square", plots.MUTED)
        _node(axes, (x, y), host.switch, "circle", plots.INK)
    axes.text(0, -1.85, _outcome(row), ha="center", va="center", fontsize=11)
    state = "frozen" if row["deadlock"] else "running"
    axes.set_title(f"{row['routes'].capitalize()} routes, {WORDS[row['flow_control']]}: {state}")
    axes.set(xlim=(-1.95, 1.95), ylim=(-2.05, 1.85), aspect="equal")
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
        away = 0.42 if abs(ux) < abs(uy) else 0.34
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


def goodput(rows: Sequence[Row]) -> Figure:
    """Draw each flow's goodput: a panel for each protocol, a column for each kind of run."""
    protocols = [p for p in ("udp", "tcp") if any(row["protocol"] == p for row in rows)]
    columns = list(dict.fromkeys((row["routes"], row["flow_control"]) for row in rows))
    figure = plots.new_figure(max(6.0, 1.15 * len(columns) + 1.2), 2.9 * len(protocols) + 0.7)
    panels = figure.subplots(len(protocols), 1, squeeze=False, sharex=True)[:, 0]
    for axes, protocol in zip(panels, protocols, strict=True):
        of_protocol = [row for row in rows if row["protocol"] == protocol]
        for x, column in enumerate(columns):
            shown = [row for row in of_protocol if (row["routes"], row["flow_control"]) == column]
            _column(axes, x, shown)
        theory = of_protocol[0]["theory_mbps"]
        axes.axhline(theory, color=plots.MUTED, linewidth=1, linestyle="--", zorder=1)
        axes.text(
            len(columns) - 0.45, theory, f" fair share\n {theory:.2f}", va="center", fontsize=8.5
        )
        tallest = max(mbps for row in of_protocol for mbps in row["flows_mbps"])
        axes.set(ylim=(-0.06 * max(tallest, theory), 1.28 * max(tallest, theory)))
        axes.set(xlim=(-0.6, len(columns) - 0.4), ylabel="Mbit/s a flow")
        axes.set_title(protocol.upper())
    words = {"none": "none", "host": "PAUSE\nhosts", "switch": "PAUSE\nswitches"}
    words |= {"all": "PAUSE\nall", "pfc": "PFC"}
    panels[-1].set_xticks(
        range(len(columns)), [f"{routes}\n{words[control]}" for routes, control in columns]
    )
    return figure


def _column(axes: Axes, x: int, rows: Sequence[Row]) -> None:
    if not rows:
        axes.text(x, 0, "not run", ha="center", va="bottom", fontsize=8, color=plots.MUTED)
        return
    for row in rows:
        count = len(row["flows_mbps"])
        across = [x + 0.09 * (i - (count - 1) / 2) for i in range(count)]
        axes.plot(
            across,
            row["flows_mbps"],
            linestyle="none",
            marker="o" if row["valid"] else "x",
            markersize=6,
            alpha=0.75,
            color=COLOURS[row["routes"]],
            clip_on=False,
        )
    frozen = sum(row["deadlock"] for row in rows)
    lost = [row["lost_frames"] for row in rows]
    notes = [f"frozen {frozen} of {len(rows)}"] if frozen else []
    most = f"{min(lost):,}" if min(lost) == max(lost) else f"{min(lost):,}-{max(lost):,}"
    notes.append(f"{most} lost")
    top = max(mbps for row in rows for mbps in row["flows_mbps"])
    axes.annotate(
        "\n".join(notes),
        (x, top),
        xytext=(0, 8),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=8,
        color=plots.RED if frozen else plots.INK,
    )


def timeline(rows: Sequence[Row], samples: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw what all flows together delivered, over time, a panel for each of ``rows``.

    ``rows`` carry their number in run.json as ``index``.
    """
    height = (len(rows) + 1) // 2
    figure = plots.new_figure(9.2, 2.5 * height)
    panels = figure.subplots(height, 2, squeeze=False, sharex=True, sharey=True)
    for axes, row in zip(panels.flat, rows, strict=False):
        _timeline(axes, row, samples)
    for axes in panels.flat[len(rows) :]:
        axes.axis("off")
    for axes in panels[:, 0]:
        axes.set_ylabel("Mbit/s, all flows")
    figure.supxlabel("seconds since the counters were set to zero", fontsize=10)
    panels[0, 0].set_ylim(bottom=0)
    panels[0, 0].set_xlim(left=0)
    return figure


def _timeline(axes: Axes, row: Row, samples: Sequence[Mapping[str, Any]]) -> None:
    total: dict[float, float] = {}
    window = [0.0]
    for sample in samples:
        if sample["row"] == row["index"]:
            total[sample["t_s"]] = total.get(sample["t_s"], 0.0) + sample["goodput_mbps"]
            window += [sample["t_s"]] if sample["in_window"] else []
    # What comes after the window is the senders' end, and says nothing.
    times = [t for t in sorted(total) if t <= max(window)]
    axes.axvspan(max(window) - row["window_s"], max(window), color=plots.GRID, alpha=0.6, zorder=0)
    axes.plot(times, [total[t] for t in times], color=COLOURS[row["routes"]], linewidth=1.8)
    axes.axhline(sum(row["theory_flows_mbps"]), color=plots.MUTED, linewidth=1, linestyle="--")
    axes.set_title(f"{row['routes'].capitalize()} routes, {WORDS[row['flow_control']]}")
    if row["deadlock"] and row["frozen_after_s"] is not None:
        axes.axvline(row["frozen_after_s"], color=plots.INK, linewidth=1, linestyle=":")
        axes.annotate(
            f"frozen from {row['frozen_after_s']:.2f} s on",
            (row["frozen_after_s"], 0),
            xytext=(8, 12),
            textcoords="offset points",
            fontsize=9,
        )
