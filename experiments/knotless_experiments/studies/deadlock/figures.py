"""The plots of the deadlock experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from knotless.base.flow_control import FLOW_CONTROLS, FlowControl
from knotless.results import plots
from knotless_experiments.studies.deadlock import transfers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

COLOURS = {"cyclic": plots.RED, "acyclic": plots.BLUE, "dateline": plots.GREEN}
SHORT = {
    "none": "none",
    "host": "PAUSE\nhosts",
    "switch": "PAUSE\nswitches",
    "pause": "PAUSE\nall",
    "pfc": "PFC",
    "credits": "credits",
    "bubble": "bubbles",
}


def letter(row: Row) -> str:
    """Return the paper's letter for a row's transfers and routes, or their names."""
    pattern = transfers.named(row["pattern"])
    for name, routes in pattern.by_letter.items():
        if routes == row["routes"]:
            return f"({name}) {row['routes']}"
    return f"{pattern.name} {row['routes']}"


def table(rows: Sequence[Row]) -> Figure:
    """Draw the mean goodput per flow, as in the paper's tables 3 and 4; darker means more."""
    lines = list(dict.fromkeys((letter(row), row["protocol"]) for row in rows))
    columns = [name for name in FLOW_CONTROLS if any(r["flow_control"] == name for r in rows)]
    figure = plots.new_figure(1.9 + 1.35 * len(columns), 0.9 + 0.48 * len(lines))
    axes = figure.subplots()
    for y, (name, protocol) in enumerate(lines):
        for x, control in enumerate(columns):
            wanted = (name, protocol, control)
            chosen = [r for r in rows if (letter(r), r["protocol"], r["flow_control"]) == wanted]
            _cell(axes, x, y, chosen)
    axes.set_xticks(range(len(columns)), [SHORT.get(name, name.description) for name in columns])
    axes.set_yticks(range(len(lines)), [f"{name}, {p.upper()}" for name, p in lines])
    axes.xaxis.tick_top()
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(lines) - 0.5, -0.5))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)
    return figure


def _cell(axes: Axes, x: int, y: int, rows: Sequence[Row]) -> None:
    from matplotlib.patches import Rectangle

    valid = [row for row in rows if row["valid"]]
    if not valid:
        words = "not valid" if rows else "-"
        axes.text(x, y, words, ha="center", va="center", fontsize=8, color=plots.MUTED)
        return
    mean = fmean(fmean(row["flows_mbps"]) for row in valid)
    share = mean / fmean(fmean(row["theory_flows_mbps"]) for row in valid)
    frozen = sum(row["deadlock"] for row in valid)
    sent, lost = sum(row["sent_frames"] for row in valid), sum(row["lost_frames"] for row in valid)
    colour = plots.RED if frozen else plots.BLUE
    shade = 0.55 if frozen else 0.1 + 0.5 * min(1.0, share)
    axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, color=colour, alpha=shade, lw=0))
    notes = [f"{100 * lost / sent:.0f} % lost"] if lost and sent else []
    notes += [f"frozen {frozen} of {len(valid)}"] if frozen else []
    axes.text(
        x,
        y,
        "\n".join([f"{mean:.3g}", ", ".join(notes)]).strip(),
        fontsize=8,
        ha="center",
        va="center",
    )


def goodput(rows: Sequence[Row]) -> Figure:
    """Draw each flow's goodput: a panel per protocol, a column per kind of run."""
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
    panels[-1].set_xticks(
        range(len(columns)), [f"{routes}\n{SHORT[control]}" for routes, control in columns]
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
    """Draw the total goodput over time, a panel for each of ``rows``.

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
    # After the window the senders end, which is not a result.
    times = [t for t in sorted(total) if t <= max(window)]
    axes.axvspan(max(window) - row["window_s"], max(window), color=plots.GRID, alpha=0.6, zorder=0)
    axes.plot(times, [total[t] for t in times], color=COLOURS[row["routes"]], linewidth=1.8)
    axes.axhline(sum(row["theory_flows_mbps"]), color=plots.MUTED, linewidth=1, linestyle="--")
    control = FlowControl(row["flow_control"])
    axes.set_title(f"{row['routes'].capitalize()} routes, {control.description}")
    if row["deadlock"] and row["frozen_after_s"] is not None:
        axes.axvline(row["frozen_after_s"], color=plots.INK, linewidth=1, linestyle=":")
        axes.annotate(
            f"frozen from {row['frozen_after_s']:.2f} s on",
            (row["frozen_after_s"], 0),
            xytext=(8, 12),
            textcoords="offset points",
            fontsize=9,
        )
