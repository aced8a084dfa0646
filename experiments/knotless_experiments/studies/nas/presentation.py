"""Times and results of the NAS kernels, in sentences, a table, and plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from knotless.base.counting import counted
from knotless_experiments.framework.experiment import EMULATION, Plot, Presentation
from knotless_experiments.studies.nas.columns import COLUMNS, name_of
from knotless_experiments.workloads.program_campaign import testbed_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """Say what was found."""
    valid = [row for row in rows if row["valid"] and not row["deadlock"]]
    if valid:
        right = sum(row["verified"] for row in valid)
        yield (
            f"{right} of {len(valid)} valid runs gave the official verification values "
            "of the NAS Parallel Benchmarks."
        )
    by_kernel: dict[str, dict[str, list[float]]] = {}
    for row in valid:
        by_kernel.setdefault(name_of(row), {}).setdefault(testbed_of(row), []).append(
            row["seconds"]
        )
    for kernel, testbeds in by_kernel.items():
        if len(testbeds) > 1:
            times = {testbed: median(seconds) for testbed, seconds in testbeds.items()}
            fast, slow = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
            text = f"{kernel}: {times[fast]:.3g} s on {fast}"
            if times[slow] > times[fast]:
                text += f", {times[slow]:.3g} s on {slow}: "
                text += f"{times[slow] / times[fast]:.2f} times as long"
            else:
                text += " and on every other fabric"
            yield f"{text}."
    if len(valid) < len(rows):
        yield f"Not valid, and left out: {len(rows) - len(valid)} of {counted(len(rows), 'runs')}."


def notes(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Explain the figures."""
    factor = run["parameters"].get("computing")
    if run["parameters"]["on"] == EMULATION:
        computing = (
            "Time is that of the longest process between two barriers, computing included. All "
            "processes share the cores of one machine, and computing gives way to the emulator."
        )
    else:
        computing = "The kernel ran as threads, for its messages; these are replayed, and " + (
            f"each process computes for {factor:g} times as long as its thread did here."
            if factor
            else "computing takes no time: so the figure is the network's part alone, equal from "
            "run to run."
        )
    return [
        ("Seconds", computing),
        (
            "Kernels",
            "IS sorts integers, CG finds an eigenvalue, EP draws Gaussian deviates, FT solves a "
            "partial differential equation by Fourier transforms, MG by multigrid, LU a flow by "
            "over-relaxation. They are written from the published specification; 'verified' "
            "compares with its official values, to its limits. Collectives are made of messages "
            "between two processes: recursive doubling, pairwise exchange, dissemination.",
        ),
        (
            "Volume and pattern",
            "Payload of all messages that a process sent to another while it was timed; MPI's "
            "own headers and start-up are not in it.",
        ),
    ]


def _times(rows: Sequence[Row]) -> Figure:
    """Draw times over those of the first fabric, as kernels differ; of one fabric alone, times."""
    from knotless.results import plots

    testbeds = list(dict.fromkeys(testbed_of(row) for row in rows))
    kernels = list(dict.fromkeys(name_of(row) for row in rows))
    seconds_of = {
        (testbed, kernel): [
            row["seconds"] for row in rows if (testbed_of(row), name_of(row)) == (testbed, kernel)
        ]
        for testbed in testbeds
        for kernel in kernels
    }
    compared = len(testbeds) > 1 and all(seconds_of[testbeds[0], kernel] for kernel in kernels)
    figure = plots.new_figure(8.0, 3.6)
    axes = figure.subplots()
    colours = (plots.BLUE, plots.GREEN, plots.AMBER, plots.RED, plots.MUTED, plots.INK)
    width = 0.8 / len(testbeds)
    for place, testbed in enumerate(testbeds):
        label = testbed
        for position, kernel in enumerate(kernels):
            unit = median(seconds_of[testbeds[0], kernel]) if compared else 1.0
            times = [seconds / unit for seconds in seconds_of[testbed, kernel]]
            if times:
                x, colour = position - 0.4 + width * (place + 0.5), colours[place % len(colours)]
                axes.bar(x, median(times), 0.9 * width, color=colour, label=label)
                axes.plot([x] * len(times), times, ".", color=plots.INK, markersize=4)
                label = "_"
    axes.set_xticks(range(len(kernels)), kernels)
    axes.set_ylabel(f"time over that of {testbeds[0]}" if compared else "seconds")
    axes.set_title("Time of each kernel")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _volume(size: int) -> str:
    return f"{size / 1e6:.3g} MB" if size >= 1e6 else f"{size / 1e3:.3g} kB"


def _patterns(rows: Sequence[Row], samples: Sequence[Mapping[str, Any]]) -> Figure:
    from knotless.results import plots

    first: dict[str, int] = {}
    for index, row in enumerate(rows):
        if row["messages"]:
            first.setdefault(name_of(row), index)
    across = min(3, len(first))
    down = -(-len(first) // across)
    figure = plots.new_figure(3.3 * across, 3.2 * down)
    every = figure.subplots(down, across, squeeze=False).ravel()
    for unused in every[len(first) :]:
        unused.set_axis_off()
    for axes, (kernel, index) in zip(every, first.items(), strict=False):
        row = rows[index]
        volume = np.zeros((row["processes"], row["processes"]))
        for sample in samples:
            if sample["row"] == index:
                volume[sample["source"], sample["destination"]] = sample["bytes"] / 1e3
        image = axes.imshow(np.where(volume > 0, volume, np.nan), cmap="Blues", vmin=0)
        axes.grid(visible=False)
        axes.set_title(kernel, pad=20)
        text = f"{counted(row['messages'], 'messages')}, {_volume(row['bytes'])}"
        axes.text(0, 1.04, text, transform=axes.transAxes, color=plots.MUTED)
        axes.set_xlabel("to process")
        axes.set_ylabel("from process")
        figure.colorbar(image, ax=axes, label="kB", shrink=0.75)
    return figure


def draw_plots(run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]) -> Iterator[Plot]:
    """Draw what the rows allow."""
    rows = run["rows"]
    valid = [row for row in rows if row["valid"] and not row["deadlock"]]
    if valid:
        yield Plot(
            "times",
            "Bars are medians of valid runs, dots the runs. Less is better.",
            _times(valid),
        )
    if any(row["messages"] for row in rows):
        yield Plot(
            "patterns",
            "How many bytes each process sent to each other one, in the first run of each "
            "kernel. White: none at all.",
            _patterns(rows, samples),
        )


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Put the presentation of a run together; plots only where ``draw``."""
    rows = run["rows"]
    by = "unmodified Open MPI over TCP" if run["parameters"]["on"] == EMULATION else "simulation"
    return Presentation(
        title="NAS kernels on fabrics",
        lead="Parallel programs with known results and known communication, one process in each "
        f"host of a fabric, by {by}.",
        sentences=list(sentences(rows)),
        columns=COLUMNS,
        rows=rows,
        notes=notes(run),
        plots=list(draw_plots(run, samples)) if draw else (),
    )
