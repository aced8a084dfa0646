"""The report of the hops experiment: sentences, table, plots, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from knotless.results import plots as style
from knotless_experiments.framework.excluded_runs import excluded
from knotless_experiments.framework.experiment import EMULATION, SIMULATION, Plot, Presentation
from knotless_experiments.studies.hops.columns import COLUMNS
from knotless_experiments.studies.hops.measure import BARRIER, BOTH_WAYS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
COLOURS = {"switch": style.BLUE, "host": style.GREEN, "none": style.AMBER}
WORDS = {"switch": "tagged by the switches", "host": "tagged by the hosts", "none": "no VLANs"}


def slope(rows: Sequence[Row], key: str) -> float | None:
    """Return the growth of ``key`` per switch (least squares), None for a single point."""
    places = [row["switches"] for row in rows]
    middle = fmean(places) if places else 0.0
    spread = sum((place - middle) ** 2 for place in places)
    if not spread:
        return None
    level = fmean(row[key] for row in rows)
    covered = sum((row["switches"] - middle) * (row[key] - level) for row in rows)
    return float(covered / spread)


def sentences(rows: Sequence[Row]) -> list[str]:
    """Return the findings of the valid rows."""
    return [*_sentences([row for row in rows if row["valid"]]), *excluded(rows)]


def kinds_of(rows: Sequence[Row]) -> dict[tuple[str, int], list[Row]]:
    """Return the rows grouped by measure and message size."""
    by_kind: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        by_kind.setdefault((row["measure"], row["message_bytes"]), []).append(row)
    return by_kind


def name_of(measure: str, size: int) -> str:
    """Return the name of such rows."""
    if measure == BARRIER:
        return "Barrier of two hosts"
    return f"{size} bytes, both ways" if measure == BOTH_WAYS else f"{size} bytes"


def _sentences(rows: Sequence[Row]) -> Iterator[str]:
    for kind, of_kind in kinds_of(rows).items():
        name = name_of(*kind)
        for tagging in dict.fromkeys(row["tagging"] for row in of_kind):
            chosen = [row for row in of_kind if row["tagging"] == tagging]
            each, due = slope(chosen, "p50_us"), slope(chosen, "theory_us")
            if each is not None and due is not None:
                yield (
                    f"{name}, {WORDS[tagging]}: each additional switch adds {each:,.1f} us to the "
                    f"median time; lines and delays alone {due:,.1f} us."
                )
        if extra := tag_cost(of_kind):
            yield (
                f"{name}: with tagging by the switches it took {extra:+.2%} longer than without "
                "VLANs, on average over the distances."
            )


def tag_cost(rows: Sequence[Row]) -> float | None:
    """Return the relative increase of times with switch tagging compared with no VLANs."""
    parts = []
    for switches in dict.fromkeys(row["switches"] for row in rows):
        times = {
            tagging: [
                row["p50_us"]
                for row in rows
                if (row["switches"], row["tagging"]) == (switches, tagging)
            ]
            for tagging in ("switch", "none")
        }
        if all(times.values()):
            parts.append(fmean(times["switch"]) / fmean(times["none"]) - 1)
    return fmean(parts) if parts else None


def _figure(rows: Sequence[Row], key: str, label: str) -> Figure:
    kinds = kinds_of(rows)
    figure = style.new_figure(4.2 * len(kinds), 3.6)
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    for axes, (kind, of_kind) in zip(panels, kinds.items(), strict=True):
        for i, tagging in enumerate(dict.fromkeys(row["tagging"] for row in of_kind)):
            chosen = [row for row in of_kind if row["tagging"] == tagging]
            for valid, marker in ((True, "o"), (False, "x")):
                dots = [row for row in chosen if row["valid"] is valid]
                axes.plot(
                    # Offset, because they would hide each other.
                    [row["switches"] + 0.12 * (i - 1) for row in dots],
                    [row[key] for row in dots],
                    marker,
                    color=COLOURS[tagging],
                    label=WORDS[tagging] if valid else None,
                    markersize=5,
                )
        if key == "mean_us":
            due = sorted({(row["switches"], row["theory_us"]) for row in of_kind})
            axes.plot(*zip(*due, strict=True), color=style.MUTED, linewidth=1, label="lines alone")
        axes.set(title=name_of(*kind), xlabel="switches on the way", ylabel=label)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)
    return figure


TIMES = (
    "Two hosts of a line of switches, without other traffic: one sends a message, the other "
    "acknowledges it with a frame of minimum size, and only then follows the next. The time is "
    "the sender's, from before it sends until after it has received. 'Lines alone' is the "
    "transmission time of every frame plus the delay, on each line; switches store and forward."
)
TIMES_OF: Mapping[str, str] = {
    EMULATION: "The time of the hosts, and of the emulator's tick (a fifth of the delay, at which "
    "a host sees a frame), is additional.",
    SIMULATION: "Simulated hosts take no time.",
}
NOTES = [
    (
        "Both ways",
        "Both hosts do so at the same time, and the bandwidth is that of both together. A message "
        "may have to wait for an acknowledgement of the other direction, which is not in 'lines "
        "alone'.",
    ),
    (
        "Barrier",
        "Processes in the two hosts send each other one message of the smallest size and wait for "
        "the other's (shuffle exchange), with nothing to do between two barriers. Lines alone: the "
        "way of one such frame. A process that comes late to a barrier finds the other's message "
        "waiting.",
    ),
]
NO_VLANS = (
    "No VLANs",
    "The same Open vSwitch with rules that forward by destination address and do nothing else; "
    "with tagging the first switch pushes a tag, all others match it, the last one pops it.",
)


def notes(on: str) -> list[tuple[str, str]]:
    """Explain how the figures were measured."""
    only_emulated = [NO_VLANS] if on == EMULATION else []
    return [("Times", f"{TIMES} {TIMES_OF[on]}"), *NOTES, *only_emulated]


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Return the presentation of a run; with plots only if ``draw``."""
    del samples
    rows = run["rows"]
    shown: list[Plot] = []
    sized = [row for row in rows if row["message_bytes"]]
    if draw and rows:
        what = "From message to acknowledgement, or what a barrier takes."
        text = f"{what} Dots are runs, crosses not valid."
        shown.append(Plot("time", text, _figure(rows, "mean_us", "us")))
    if draw and sized:
        text = "Bytes of a message over that time."
        shown.append(Plot("bandwidth", text, _figure(sized, "bandwidth_mbps", "Mbit/s")))
    return Presentation(
        title="What each switch on the way costs",
        lead="Two hosts, one to eight switches apart, exchange messages, and pass barriers. On "
        f"{run['parameters']['on']}, lines of {run['parameters']['rate_mbps']:g} Mbit/s with "
        f"{run['parameters']['delay_us']:g} us of delay.",
        sentences=sentences(rows),
        columns=COLUMNS,
        rows=rows,
        notes=notes(run["parameters"]["on"]),
        plots=shown,
    )
