"""The report of the message passing experiment: table, sentences and plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from knotless.base.counting import counted
from knotless_experiments.framework.experiment import EMULATION, SIMULATION, Plot, Presentation
from knotless_experiments.studies.parallel.columns import COLUMNS, TITLES, ms
from knotless_experiments.workloads.program_campaign import testbed_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the findings."""
    valid = [row for row in rows if row["valid"] and row["time_us"] is not None]
    for testbed in dict.fromkeys(testbed_of(row) for row in valid):
        here = [row for row in valid if testbed_of(row) == testbed]
        barriers = [row["time_us"] for row in here if row["measurement"] == "barrier"]
        rates = [row["mbps"] for row in here if row["measurement"] == "alltoall" and row["mbps"]]
        parts = []
        if barriers:
            parts.append(f"a barrier takes {ms(median(barriers))}")
        if rates:
            parts.append(f"an all-to-all has each process send {max(rates):.2f} Mbit/s at best")
        if parts:
            yield f"{testbed}, {here[0]['processes']} processes: {', '.join(parts)}."
    if len(valid) < len(rows):
        yield f"Not valid, and excluded: {len(rows) - len(valid)} of {counted(len(rows), 'runs')}."


LEADS = {
    EMULATION: "Unmodified Open MPI, one process in each host, TCP through the fabric.",
    SIMULATION: "The messages of processes, one in each host, on the simulated fabric.",
}
COLLECTIVES = {
    EMULATION: "Alltoall and Barrier: Open MPI's own collectives.",
    SIMULATION: "Alltoall: pairwise exchange. Barrier: dissemination.",
}


WAITING = (
    "Waiting",
    "Processes sleep between polls (50 us at first, at most 500 us), so that waiting does not "
    "take the cores from switches and emulator. Each message can take longer by at most this "
    "time.",
)


def notes(on: str) -> list[tuple[str, str]]:
    """Explain the figures of a place."""
    texts = [
        (
            "Time",
            "The median over the repetitions of a run, each the time of the slowest process. "
            "PingPong: half a round trip between the first and the last process. SendRecv: one "
            f"exchange around the ring of all. {COLLECTIVES[on]}",
        ),
        ("Mbit/s", "Payload that a process sends in that time, without any headers."),
    ]
    return [*texts, WAITING] if on == EMULATION else texts


def _plot(rows: Sequence[Row]) -> Figure:
    from knotless.results import plots

    names = [name for name in TITLES if any(row["measurement"] == name for row in rows)]
    testbeds = list(dict.fromkeys(testbed_of(row) for row in rows))
    colours = (plots.BLUE, plots.GREEN, plots.AMBER, plots.RED, plots.MUTED, plots.INK)
    figure = plots.new_figure(3.2 * len(names), 3.6)
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for place, testbed in enumerate(testbeds):
            here = [r for r in rows if r["measurement"] == name and testbed_of(r) == testbed]
            sizes = sorted({row["bytes"] for row in here})
            times_ms = [
                median(r["time_us"] for r in here if r["bytes"] == size) / 1000 for size in sizes
            ]
            colour = colours[place % len(colours)]
            axes.plot(sizes, times_ms, "o-", color=colour, label=testbed, markersize=4)
        axes.set_title(TITLES[name])
        axes.margins(y=0.1)
        axes.set_ylim(bottom=0)
        if name == "barrier":
            axes.set_xticks([])
        else:
            every = sorted({row["bytes"] for row in rows if row["measurement"] == name})
            axes.set_xscale("log", base=2)
            axes.set_xticks(every, [f"{size:,}" for size in every])
            axes.minorticks_off()
            axes.set_xlabel("bytes")
        axes.set_ylabel("ms")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center")
    return figure


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Return the presentation of a run; with plots only if ``draw``."""
    del samples
    rows, on = run["rows"], run["parameters"]["on"]
    valid = [row for row in rows if row["valid"] and row["time_us"] is not None]
    caption = "Medians of valid runs. Lower is better."
    return Presentation(
        title="Message passing on fabrics",
        lead=LEADS[on],
        sentences=list(sentences(rows)),
        columns=COLUMNS,
        rows=rows,
        notes=notes(on),
        plots=[Plot("times", caption, _plot(valid))] if draw and valid else (),
    )
