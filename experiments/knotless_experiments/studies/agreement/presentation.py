"""The results of the agreement as sentences, a table, plots, and the notes of its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from knotless.base.counting import counted
from knotless_experiments.framework.excluded_runs import excluded
from knotless_experiments.framework.experiment import Plot, Presentation
from knotless_experiments.studies.agreement.columns import COLUMNS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the results of the valid rows, in sentences."""
    valid = [row for row in rows if row["valid"]]
    if valid:
        least, most = (f(row["ratio"] for row in valid) for f in (min, max))
        worst = max((row["worst_ratio"] for row in valid), key=lambda ratio: abs(ratio - 1))
        agreed = sum(row["agrees"] for row in valid)
        yield (
            f"{agreed} of {len(valid)} cases agree. The emulator delivered {least:.4f} to "
            f"{most:.4f} of what the simulator delivered. The ratio of the worst flow is "
            f"{worst:.4f}; no flow differs by more than "
            f"{max(row['apart_frames'] for row in valid)} frames."
        )
        if frozen := [row for row in valid if row["simulated_deadlock"]]:
            same = sum(row["emulated_knot"] == row["simulated_knot"] for row in frozen)
            cases = counted(len(frozen), "cases")
            yield (
                f"{cases} deadlocked in the simulator; {same} of them deadlocked in the emulator "
                "with the same knot."
            )
        apart = sum(len(row["peaks_apart"]) for row in valid)
        channels = sum(row["channels"] for row in valid)
        yield (
            f"The peak ingress buffer occupancy of {channels - apart} of {channels} channels is "
            f"equal to the byte. The emulator counted "
            f"{sum(row['emulated_pauses'] for row in valid):,} pauses, the simulator "
            f"{sum(row['simulated_pauses'] for row in valid):,}."
        )
        if inside := [row for row in valid if row.get("settings")]:
            pools = sum(row["pools"] for row in inside)
            apart = sum(len(row["pools_apart"]) for row in inside)
            yield (
                f"In {len(inside)} cases switches have settings: the peaks of {pools - apart} of "
                f"{pools} pools are equal to the byte. The emulator marked "
                f"{sum(row['emulated_marked'] for row in inside):,} frames and lost "
                f"{sum(row['emulated_lost'] for row in inside):,}, the simulator "
                f"{sum(row['simulated_marked'] for row in inside):,} and "
                f"{sum(row['simulated_lost'] for row in inside):,}."
            )
        if framed := [row for row in valid if row.get("simulated_pause_frames")]:
            yield (
                f"In {len(framed)} cases pause frames take their place on the wire: "
                f"{sum(row['emulated_pause_frames'] for row in framed):,} in the emulator and "
                f"{sum(row['simulated_pause_frames'] for row in framed):,} in the simulator."
            )
        if watched := [row for row in valid if row.get("simulated_storms")]:
            same = sum(not row["storms_apart"] for row in watched)
            yield (
                f"In {len(watched)} cases watchdogs have detected storms: "
                f"{sum(row['emulated_storms'] for row in watched):,} in the emulator and "
                f"{sum(row['simulated_storms'] for row in watched):,} in the simulator. In {same} "
                "of them, the storms of every channel and the frames that watchdogs dropped are "
                "equal."
            )


NOTES = (
    (
        "One description",
        "A case is one object: a plan of a fabric, the flows, packets of 1,500 bytes, and the "
        "flow control. Links and buffer limits are the same for both. In the emulator, UDP "
        "datagrams of a real program pass through Open vSwitch. When all flows send, one request "
        "empties all queues and resets all counters. So both begin with an empty fabric and all "
        "senders ready. The simulator runs for the time that the emulator's clock measured.",
    ),
    (
        "Frame difference",
        "A flow agrees if it differs by at most 1 % or two frames. At each end of the measuring "
        "window, a frame may be counted by one and not yet by the other. The time of the reset is "
        "known to within the duration of the request (start_known_us in run.json). The first "
        "frame of a host starts when the daemon wakes, up to a millisecond later. A full frame "
        "takes 1.2 ms at 10 Mbit/s and 2.5 ms at 5.",
    ),
    (
        "Pauses and paused time",
        "Both are sums over all channels that carried frames. 802.3x stops a link as a whole, "
        "which counts once here; the emulator's own counters show it under each of the eight "
        "priorities. If the window ends between the emulated and the simulated pause, the counts "
        "of a channel differ by one.",
    ),
    (
        "Peaks of ingress buffer occupancy",
        "The peak is the largest number of bytes of one input port and priority in a switch at "
        "the same time. Channels differ unless both peaks are equal to the byte; the remarks give "
        "the difference (emulated minus simulated). In runs without a stretch, a frame that Open "
        "vSwitch returned late stayed in the ingress buffer for that much longer, and a peak was "
        "higher by whole frames; now virtual time waits for it. Queues of host interfaces are not "
        "compared: a real sender keeps up to 16 KiB there, a simulated one only its next frame.",
    ),
    (
        "Switch settings",
        "Cases with a name under 'switches' have shared pools, schedulers, lossy priorities or "
        "marking, as studies/agreement/switches.py says. Both clocks draw "
        "marks from the same seed; numbers of marked frames may differ by three standard "
        "deviations. A pool agrees if its peak and that of its headroom are equal to the byte.",
    ),
    (
        "Watchdogs",
        "They poll, so that both clocks see storms at the same times after the reset. A case "
        "agrees only if, for each channel, as many storms were detected, restored and only "
        "counted, and watchdogs dropped as many frames. Where a watchdog ends a deadlock, the "
        "knot is that of the first one, and the emulator must see it while it lasts.",
    ),
    (
        "Time of the deadlock",
        "The emulator's detector checks every 50 ms and reports the first check that saw the "
        "knot. The simulator reports when the last channel of the knot stopped. "
        "(emulated_frozen_ms and simulated_frozen_ms in run.json.) So the two times differ by up "
        "to about 50 ms.",
    ),
)


def plots(rows: Sequence[Row], samples: Sequence[Mapping[str, Any]]) -> list[Plot]:
    """Draw the counters of every channel and the times to deadlock, emulated over simulated."""
    drawn = []
    if samples:
        drawn.append(
            Plot(
                "channels",
                "Each dot is a channel of a case: the emulator's counter over the simulator's. On "
                "the line both are equal.",
                _channels(samples),
            )
        )
    both = [row for row in rows if row["emulated_deadlock"] and row["simulated_deadlock"]]
    if both:
        drawn.append(
            Plot(
                "time-to-deadlock",
                "When the deadlock was there: in the simulator when its last channel stopped, in "
                "the emulator at the first check, every 50 ms, that saw it.",
                _times(both),
            )
        )
    return drawn


def _times(rows: Sequence[Row]) -> Figure:
    from knotless.results import plots as style

    figure = style.new_figure(8.4, 1.2 + 0.5 * len(rows))
    axes = figure.subplots()
    for place, row in enumerate(rows):
        simulated, emulated = row["simulated_frozen_ms"], row["emulated_frozen_ms"]
        axes.plot([simulated, emulated], [place, place], color=style.GRID, linewidth=3, zorder=1)
        for value, colour, label in (
            (simulated, style.BLUE, "simulated"),
            (emulated, style.RED, "emulated"),
        ):
            axes.plot([value], [place], "o", color=colour, label="" if place else label)
    keys = ("fabric", "pattern", "flow_control", "settings")
    names = [", ".join(str(row[key]) for key in keys if row.get(key)) for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="time to deadlock, ms")
    figure.legend(loc="outside right upper")
    return figure


def _channels(samples: Sequence[Mapping[str, Any]]) -> Figure:
    from knotless.results import plots as style

    figure = style.new_figure(10.5, 3.6)
    panels = figure.subplots(1, 3)
    shown = (
        ("frames", "frames sent"),
        ("pauses", "pauses"),
        ("account_peak_bytes", "peak ingress bytes"),
    )
    for axes, (key, words) in zip(panels, shown, strict=True):
        both = [(one[f"simulated_{key}"], one[f"emulated_{key}"]) for one in samples]
        most = max(max(pair) for pair in both) or 1
        axes.plot([0, most], [0, most], color=style.MUTED, linewidth=1)
        axes.plot(*zip(*both, strict=True), "o", color=style.BLUE, markersize=4, alpha=0.5)
        axes.set(title=words, xlabel="simulated", ylabel="emulated")
    return figure


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Return the presentation of a run, with plots if ``draw``."""
    rows = run["rows"]
    return Presentation(
        title="One model, two clocks: emulator and simulator compared",
        lead="The same fabrics, plans, flows and flow control, with real frames through Open "
        "vSwitch and in virtual time.",
        sentences=[*sentences(rows), *excluded(rows)],
        columns=COLUMNS,
        rows=rows,
        notes=NOTES,
        plots=plots([row for row in rows if row["valid"]], samples) if draw else (),
    )
