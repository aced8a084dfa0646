"""What message passing took, in a table, sentences and a plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from experiments.framework.experiment import EMULATION, SIMULATION, Plot, Presentation
from experiments.framework.routed import Routed
from experiments.workloads.programs.campaign import ground_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
TITLES = {
    "pingpong": "PingPong",
    "sendrecv": "SendRecv",
    "alltoall": "Alltoall",
    "barrier": "Barrier",
}
COLUMNS = (
    *("fabric", "routes", "measurement", "bytes", "processes", "run", "time", "from", "to"),
    *("Mbit/s", "lateness p99", "valid", "remarks"),
)
BRIEF = ("fabric", "routes", "measurement", "bytes", "processes", "time", "Mbit/s", "valid")


def _ms(value_us: float | None) -> str:
    return "-" if value_us is None else f"{value_us / 1000:.2f} ms"


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each row."""
    return [
        [
            Routed(row["fabric"]).name,
            row["routes"],
            TITLES[row["measurement"]],
            str(row["bytes"]) if row["bytes"] else "-",
            str(row["processes"]),
            str(row["repeat"]),
            "froze" if row["deadlock"] else _ms(row["time_us"]),
            _ms(row["min_us"]),
            _ms(row["max_us"]),
            "-" if row["mbps"] is None else f"{row['mbps']:.2f}",
            "-" if row["lateness_us_p99"] is None else f"{row['lateness_us_p99']:.0f} us",
            "yes" if row["valid"] else "NO",
            "; ".join(row["problems"]),
        ]
        for row in rows
    ]


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """Say what was found."""
    valid = [row for row in rows if row["valid"] and row["time_us"] is not None]
    for ground in dict.fromkeys(ground_of(row) for row in valid):
        here = [row for row in valid if ground_of(row) == ground]
        barriers = [row["time_us"] for row in here if row["measurement"] == "barrier"]
        rates = [row["mbps"] for row in here if row["measurement"] == "alltoall" and row["mbps"]]
        told = []
        if barriers:
            told.append(f"a barrier takes {_ms(median(barriers))}")
        if rates:
            told.append(f"an all-to-all has each process send {max(rates):.2f} Mbit/s at best")
        if told:
            yield f"{ground}, {here[0]['processes']} processes: {', '.join(told)}."
    if len(valid) < len(rows):
        yield f"Not valid, and left out: {len(rows) - len(valid)} of {len(rows)} runs."


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
    "Processes sleep between two looks (50 us at first, 500 us at last), so that their waiting "
    "does not take the cores from switches and emulator; times are that much longer at most for "
    "each message.",
)


def notes(on: str) -> list[tuple[str, str]]:
    """Explain the figures of a place."""
    found = [
        (
            "Time",
            "The median over the repetitions of a run; of each, that of the slowest process. "
            "PingPong: half a round trip between the first and the last process. SendRecv: one "
            f"exchange round the ring of all. {COLLECTIVES[on]}",
        ),
        ("Mbit/s", "Payload that a process sends in that time, without any headers."),
    ]
    return [*found, WAITING] if on == EMULATION else found


def _plot(rows: Sequence[Row]) -> Figure:
    from runs import plots

    names = [name for name in TITLES if any(row["measurement"] == name for row in rows)]
    grounds = list(dict.fromkeys(ground_of(row) for row in rows))
    colours = (plots.BLUE, plots.GREEN, plots.AMBER, plots.RED, plots.MUTED, plots.INK)
    figure = plots.new_figure(3.2 * len(names), 3.6)
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for place, ground in enumerate(grounds):
            here = [r for r in rows if r["measurement"] == name and ground_of(r) == ground]
            sizes = sorted({row["bytes"] for row in here})
            times_ms = [
                median(r["time_us"] for r in here if r["bytes"] == size) / 1000 for size in sizes
            ]
            colour = colours[place % len(colours)]
            axes.plot(sizes, times_ms, "o-", color=colour, label=ground, markersize=4)
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
    """Put the presentation of a run together; plots only where ``draw``."""
    del samples
    rows, on = run["rows"], run["parameters"]["on"]
    valid = [row for row in rows if row["valid"] and row["time_us"] is not None]
    caption = "Medians of valid runs. Less is better."
    return Presentation(
        title="Message passing on fabrics",
        lead=LEADS[on],
        sentences=list(sentences(rows)),
        columns=COLUMNS,
        brief=BRIEF,
        table=table(rows),
        notes=notes(on),
        plots=[Plot("times", caption, _plot(valid))] if draw and valid else (),
    )
