"""The report of the change experiment: sentences, a table, a plot, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from knotless.base.counting import counted
from knotless.base.flow_control import FlowControl
from knotless.results import plots
from knotless_experiments.framework.excluded_runs import excluded
from knotless_experiments.framework.experiment import SIMULATION, Plot, Presentation
from knotless_experiments.studies.change.cases import NAIVE, PROVEN
from knotless_experiments.studies.change.columns import COLUMNS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Group = tuple[str, str, str]

COLOURS = {NAIVE: plots.RED, PROVEN: plots.BLUE}


def groups_of(rows: Sequence[Row]) -> dict[Group, list[Row]]:
    """Return the valid rows by fabric, flow control and way."""
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        if row["valid"]:
            key = (row["fabric"], row["flow_control"], row["way"])
            groups.setdefault(key, []).append(row)
    return groups


def sentences(rows: Sequence[Row]) -> list[str]:
    """Return the findings of the valid rows."""
    findings = [_finding(key, runs) for key, runs in groups_of(rows).items()]
    return [*findings, *excluded(rows)]


def _finding(key: Group, rows: Sequence[Row]) -> str:
    fabric, control, way = key
    frozen = sum(row["deadlock"] for row in rows)
    lost = sum(row["lost_frames"] for row in rows)
    dropped = sum(row["stopped_frames"] for row in rows)
    head = f"{fabric}, {FlowControl(control).description}: "
    runs = f"{frozen} of {counted(len(rows), 'runs')} deadlocked"
    if way == NAIVE:
        check = "had" if rows[0]["predicted_cycle"] else "had NOT"
        return (
            f"{head}pushed to all switches at once, in random order, {runs};"
            f" the static check {check} found a cycle in the mixture of old and new rules."
        )
    verdict = "none of" if not frozen else f"{frozen} of"
    sent = dropped + lost + sum(row["delivered_frames"] for row in rows)
    frames = "no frame was dropped or lost"
    if dropped or lost:
        share = 100 * dropped / sent
        frames = (
            f"of {sent:,} frames, {dropped:,} ({share:.1f} %) were dropped at their first switch,"
            f" {lost or 'none'} elsewhere"
        )
    if pairs := rows[0].get("dropped_pairs"):
        measured_s = [row["dropped_s"] for row in rows]
        before = counted(pairs, "pairs")
        frames += (
            f"; said before: {before} for about {rows[0]['estimated_drop_s']:.1f} s;"
            f" measured: {min(measured_s):.2f} to {max(measured_s):.2f} s"
        )
    return (
        f"{head}in {rows[0]['steps']} proven steps (tier {rows[0]['tier']}), {verdict}"
        f" {counted(len(rows), 'runs')} deadlocked; {frames}."
    )


def draw(rows: Sequence[Row]) -> Iterator[Plot]:
    """Yield the plot, if there are valid rows."""
    if groups := groups_of(rows):
        yield Plot(
            "deadlocks",
            "Left: runs that deadlocked, of all runs. Right: when a deadlock began, from the first"
            " switch that took new rules; each dot is one run.",
            _figure(groups),
        )


def _figure(groups: Mapping[Group, Sequence[Row]]) -> Figure:
    figure = plots.new_figure(8.4, 1.4 + 0.45 * len(groups))
    left, right = figure.subplots(1, 2, sharey=True)
    labels = []
    for place, ((fabric, control, way), rows) in enumerate(groups.items()):
        labels.append(f"{fabric}, {FlowControl(control).description}, {way}")
        frozen = [row for row in rows if row["deadlock"]]
        left.barh(place, len(rows), color=plots.GRID)
        left.barh(place, len(frozen), color=COLOURS[way])
        left.text(len(rows), place, f" {len(frozen)} of {len(rows)}", va="center", fontsize=8)
        times = [row["deadlock_after_s"] for row in frozen]
        right.plot(times, [place] * len(times), "o", color=COLOURS[way], alpha=0.5, ms=4)
    left.set_yticks(range(len(labels)), labels)
    left.invert_yaxis()
    left.set(xlabel="runs", xlim=(0, 1.3 * max(len(rows) for rows in groups.values())))
    right.set(xlabel="seconds after the first switch")
    right.set_xlim(left=0)
    for axes in (left, right):
        axes.grid(visible=False, axis="y")
    return figure


def notes(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Explain the figures."""
    spread = run["parameters"]["spread_s"]
    simulated = run["parameters"]["on"] == SIMULATION
    return [
        (
            "The change",
            "Both plans are up*/down* routes, with different roots. Each of them alone has no cycle"
            " of channel dependencies. While some switches hold old rules and others new ones,"
            " packets take turns of both, and together these close the ring.",
        ),
        (
            "Naive",
            f"Each switch takes all its new rules at once, at a random time within {spread:g} s."
            + ("" if simulated else " They are written to Open vSwitch past the controller."),
        ),
        (
            "Proven",
            "The steps of knotless.verification.changes, in the order in which they are proven. "
            + (
                "In each step, switches take their rules as in the naive change; the next begins"
                " when all have, and after a step that drains, when the counters of all ports show"
                " that older packets have left."
                if simulated
                else "The controller performs them as fast as switches confirm."
            ),
        ),
        (
            "Seeds",
            "Each run has its own seed for the order and the times of switches and for the start of"
            " the change. Traffic is saturating: each host always has a datagram to send.",
        ),
    ]


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], with_plots: bool
) -> Presentation:
    """Return the presentation of a run; with plots only if ``with_plots``."""
    del samples
    rows = run["rows"]
    return Presentation(
        title="Two safe plans that deadlock together",
        lead="A fabric under full load changes from one plan without deadlock to another: pushed to"
        " all switches at once, and in proven steps.",
        sentences=sentences(rows),
        columns=COLUMNS,
        rows=rows,
        notes=notes(run),
        plots=tuple(draw(rows)) if with_plots else (),
    )
