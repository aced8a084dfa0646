"""The report of the all-to-all experiment: sentences, table, plots and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from knotless.base.counting import counted
from knotless.results import plots as style
from knotless_experiments.framework.excluded_runs import excluded
from knotless_experiments.framework.experiment import ANALYSIS, Plot, Presentation
from knotless_experiments.studies.all_to_all.cases import CONTENTION_FREE, SHIFT
from knotless_experiments.studies.all_to_all.columns import COLUMNS, place_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
COLOURS = {SHIFT: style.RED, CONTENTION_FREE: style.BLUE}


def gains(rows: Sequence[Row]) -> dict[str, float]:
    """Return the speed-up of the contention-free schedule, by configuration."""
    key = "of_line" if any(row["of_line"] is not None for row in rows) else "throughput_ratio"
    ratios = {}
    for place in dict.fromkeys(map(place_of, rows)):
        means = {
            schedule: [
                row[key] for row in rows if (place_of(row), row["schedule"]) == (place, schedule)
            ]
            for schedule in (SHIFT, CONTENTION_FREE)
        }
        if all(means.values()):
            ratios[place] = fmean(means[CONTENTION_FREE]) / fmean(means[SHIFT])
    return ratios


def sentences(rows: Sequence[Row]) -> list[str]:
    """Return the findings of the valid rows."""
    return [*_sentences([row for row in rows if row["valid"]]), *excluded(rows)]


def _sentences(rows: Sequence[Row]) -> Iterator[str]:
    if ratios := gains(rows):
        least, most = min(ratios, key=lambda p: ratios[p]), max(ratios, key=lambda p: ratios[p])
        yield (
            f"The contention-free schedules were {ratios[least]:.2f} ({least}) to "
            f"{ratios[most]:.2f} times ({most}) as fast as the shift on the same hosts."
        )
    free = [row for row in rows if row["schedule"] == CONTENTION_FREE]
    if free:
        shared = [row for row in free if row["throughput_ratio"] != 1.0]
        what = "no two flows of a phase shared a channel" if not shared else "flows SHARED channels"
        yield f"In all {len(free)} contention-free exchanges {what}."
    trees = [row for row in rows if row["configuration"].endswith("'")]
    if trees and all(row["throughput_ratio"] == 1.0 for row in trees):
        yield "On the fat-trees the shift is contention-free, too."
    if lost := sum(row["lost_frames"] or 0 for row in rows):
        yield f"LOST {counted(lost, 'frames')}."


def _figure(rows: Sequence[Row]) -> Figure:
    places = list(dict.fromkeys(map(place_of, rows)))
    figure = style.new_figure(max(6.0, 0.5 * len(places) + 2.0), 3.8)
    axes = figure.subplots()
    named = set()
    for x, place in enumerate(places):
        for i, schedule in enumerate((SHIFT, CONTENTION_FREE)):
            chosen = [r for r in rows if (place_of(r), r["schedule"]) == (place, schedule)]
            if not chosen:
                continue
            position = x + 0.2 * (2 * i - 1)
            label = schedule if schedule not in named else None
            named.add(schedule)
            ratio = chosen[0]["throughput_ratio"]
            axes.bar(position, ratio, width=0.38, color=COLOURS[schedule], alpha=0.45, label=label)
            for row in chosen:
                if row["of_line"] is not None:
                    marker = "o" if row["valid"] else "x"
                    axes.plot(position, row["of_line"], marker, color=style.INK, markersize=4)
    axes.set_xticks(range(len(places)), places, rotation=90 if len(places) > 8 else 0)
    axes.set(ylim=(0, 1.08), ylabel="share of a line")
    figure.legend(loc="outside upper right", ncols=2)
    return figure


NOTES = [
    (
        "Ratio by paths",
        "Each phase is routed; a flow gets 1 / (flows on the most loaded channel of its path), "
        "links to hosts included; the mean over all flows and phases. The paper's throughput "
        "ratio.",
    ),
    (
        "Of line",
        "Each host sends this many full datagrams to each other host. A phase starts everywhere "
        "when the previous one has arrived everywhere; this is signalled outside of the fabric "
        "and costs no message. The value is the bytes that a host sends, divided by the time of "
        "all phases and by the goodput of its line. It is below the ratio by paths because a "
        "phase also includes the delay of its last frame, and lasts as long as its slowest flow.",
    ),
]


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Return the presentation of a run; with plots only if ``draw``."""
    del samples
    rows = run["rows"]
    on = run["parameters"]["on"]
    what = "the loads of paths" if on == ANALYSIS else on
    shown = []
    if draw and rows:
        shown = [
            Plot(
                "ratio",
                "Bars: the ratio by paths. Dots: what was measured, as a share of a host's line "
                "(crosses: not valid).",
                _figure(rows),
            )
        ]
    return Presentation(
        title="All to all: shift against schedules without contention",
        lead="The same hosts of the same fabric exchange the same data, in phases of different "
        f"order. By {what}.",
        sentences=sentences(rows),
        columns=COLUMNS,
        rows=rows,
        notes=NOTES,
        plots=shown,
    )
