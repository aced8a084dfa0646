"""What the agreement found, in sentences, a table, plots, and the notes of its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from common.flow_control import NAMES
from experiments.framework.experiment import Plot, Presentation
from experiments.framework.findings import of_validity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
COLUMNS = (
    *("fabric", "routes", "pattern", "flow control", "run", "flows"),
    *("Mbit/s emulated", "Mbit/s simulated", "ratio", "worst flow", "frames apart"),
    *("knot emulated", "knot simulated", "pauses emulated", "pauses simulated", "pauses apart"),
    *("stopped emulated", "stopped simulated", "peak emulated", "peak simulated"),
    *("peaks that differ", "lateness p99", "agrees", "valid", "remarks"),
)
BRIEF = (
    *("fabric", "routes", "pattern", "flow control"),
    *("ratio", "frames apart", "agrees", "valid"),
)


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each row."""
    return [
        [
            row["fabric"],
            row["routes"],
            pattern_of(row),
            NAMES[row["flow_control"]],
            str(row["repeat"]),
            str(len(row["flows"])),
            f"{row['emulated_mbps']:.3f}",
            f"{row['simulated_mbps']:.3f}",
            f"{row['ratio']:.4f}",
            f"{row['worst_ratio']:.4f}",
            str(row["apart_frames"]),
            knot_of(row["emulated_knot"]),
            knot_of(row["simulated_knot"]),
            f"{row['emulated_pauses']:,}",
            f"{row['simulated_pauses']:,}",
            str(row["pauses_apart"]),
            f"{row['emulated_paused_s']:.2f} s",
            f"{row['simulated_paused_s']:.2f} s",
            f"{row['emulated_account_peak_bytes']:,}",
            f"{row['simulated_account_peak_bytes']:,}",
            f"{len(row['peaks_apart'])} of {row['channels']}",
            f"{row['lateness_us_p99']:.0f} us",
            "yes" if row["agrees"] else "NO",
            "yes" if row["valid"] else "NO",
            "; ".join([*row["problems"], *row["peaks_apart"][:4]]),
        ]
        for row in rows
    ]


def pattern_of(row: Row) -> str:
    """Return the pattern, with its seed where that matters."""
    drawn = row["pattern"] == "permutation"
    return f"{row['pattern']} (seed {row['seed']})" if drawn else str(row["pattern"])


def knot_of(knot: Sequence[str]) -> str:
    """Return a knot as tables have it."""
    return " ".join(knot) or "-"


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """Say what was found, of the valid rows."""
    good = [row for row in rows if row["valid"]]
    if good:
        least, most = (f(row["ratio"] for row in good) for f in (min, max))
        worst = max((row["worst_ratio"] for row in good), key=lambda ratio: abs(ratio - 1))
        agreed = sum(row["agrees"] for row in good)
        yield (
            f"{agreed} of {len(good)} cases agree. Of what the simulator delivered the emulator "
            f"delivered {least:.4f} to {most:.4f}; the flow that is farthest off, {worst:.4f}, by "
            f"{max(row['apart_frames'] for row in good)} frames at most."
        )
        if frozen := [row for row in good if row["simulated_deadlock"]]:
            same = sum(row["emulated_knot"] == row["simulated_knot"] for row in frozen)
            yield (
                f"{len(frozen)} cases froze in the simulator, {same} of them in the emulator, too, "
                "and in the same knot."
            )
        apart = sum(len(row["peaks_apart"]) for row in good)
        channels = sum(row["channels"] for row in good)
        yield (
            f"The accounts of {channels - apart} of {channels} channels had the same peak, to "
            f"the byte; the emulator counted {sum(row['emulated_pauses'] for row in good):,} "
            f"pauses, the simulator {sum(row['simulated_pauses'] for row in good):,}."
        )


NOTES = (
    (
        "One description",
        "A case is one object: a plan of a fabric, who sends to whom, packets of 1,500 bytes, "
        "and the flow control. Links and limits of accounts are the same for both. In the "
        "emulator real UDP datagrams of a real program go through Open vSwitch. When all flows "
        "send, all queues are emptied and all counters set to zero at once, so that both begin "
        "with an empty fabric and all senders ready. The simulator runs as long as the "
        "emulator's clock said.",
    ),
    (
        "Frames apart",
        "A flow agrees when it is within 1 % or two frames: at either edge of the window one "
        "frame may have been in for one and not yet for the other. The moment of the reset is "
        "known to within the time that the request took (start_known_us in run.json), and a "
        "host's first frame comes a wake-up of the daemon later, up to a millisecond; a full "
        "frame takes 1.2 ms at 10 Mbit/s and 2.5 ms at 5.",
    ),
    (
        "Pauses and time stopped",
        "Of all channels that carried frames together. 802.3x stops a link as a whole: here "
        "that counts once, though the emulator's own counters have it under each of the eight "
        "priorities. Where the window's edge falls between the two, a channel's count differs "
        "by one.",
    ),
    (
        "Peaks of accounts",
        "The most bytes of one input port and priority that were in a switch at once; "
        "channels count as different unless the two are equal to the byte, and remarks name "
        "them with the difference (emulated less simulated). A frame that Open vSwitch gives "
        "back late stays on its account for so much longer, and in each frame's time of it "
        "one more may come: so the peak is higher by whole frames, the more the later the "
        "latest frame was (which the 99th percentile does not tell), and where none is later "
        "than a frame's time all peaks are equal. Queues of hosts' interfaces are not "
        "compared: a real sender keeps up to 16 KiB there, a simulated one its next frame "
        "alone.",
    ),
    (
        "When it froze",
        "The emulator's detector looks every 50 ms and says since which look it has seen the "
        "knot; the simulator says when the last channel of the knot stopped (emulated_frozen_ms "
        "and simulated_frozen_ms in run.json). Hence up to some 50 ms between the two.",
    ),
)


def plots(samples: Sequence[Mapping[str, Any]]) -> list[Plot]:
    """Draw every channel's counters by one against those by the other."""
    if not samples:
        return []
    return [
        Plot(
            "channels",
            "Each dot is a channel of a case: what the emulator counted against what the simulator "
            "did. On the line both are the same.",
            _channels(samples),
        )
    ]


def _channels(samples: Sequence[Mapping[str, Any]]) -> Figure:
    from runs import plots as style

    figure = style.new_figure(10.5, 3.6)
    panels = figure.subplots(1, 3)
    shown = (
        ("frames", "frames sent"),
        ("pauses", "pauses"),
        ("account_peak_bytes", "peak of the account, bytes"),
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
    """Put the presentation of a run together; plots only where ``draw``."""
    rows = run["rows"]
    return Presentation(
        title="One model, two clocks: the emulator beside the simulator",
        lead="The same fabrics, plans, flows and flow control: with real frames through Open "
        "vSwitch, and under a virtual clock.",
        sentences=[*sentences(rows), *of_validity(rows)],
        columns=COLUMNS,
        brief=BRIEF,
        table=table(rows),
        notes=NOTES,
        plots=plots(samples) if draw else (),
    )
