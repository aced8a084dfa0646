"""``docs/agreement.md``: the stored runs of the agreement, and the reasons for differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.framework.experiment import EMULATION
from experiments.studies.agreement import show
from runs.stored import Stored

HEAD = """\
# One model, two clocks: how far emulator and simulator agree

This page is written by `knotless reproduction` from the runs of `sudo knotless run agreement` in
[runs](runs); no figure is typed by hand. Each case is one object (fabric, plan, flows, packet
size, flow control) and is run twice: by the [emulator](emulation.md), with real frames of real
programs through Open vSwitch, and by the [simulator](simulator.md), under a virtual clock.
"""
TABLE = (
    *("fabric", "routes", "pattern", "flow control", "run", "ratio", "worst flow"),
    *("frames apart", "knot simulated", "knot emulated", "pauses emulated", "pauses simulated"),
    *("pauses apart", "stopped emulated", "stopped simulated", "peak emulated"),
    *("peak simulated", "peaks that differ", "agrees"),
)
READING = """\
'Ratio' is the data delivered in the emulator divided by the data delivered in the simulator;
'worst flow' is this ratio for the flow that is farthest from 1; 'frames apart' is the largest
difference of a flow in frames. Pauses are summed over all channels; 'pauses apart' is the largest
difference of a channel. 'Stopped' is the total time for which channels were paused. 'Peak' is the
highest ingress buffer occupancy in bytes; 'peaks that differ' is the number of channels, of those
that carried frames, whose peaks differ by at least a byte. `samples.parquet` of a run has every
channel.
"""


def lines(stored: Stored) -> Iterator[str]:
    """Yield the page, line by line."""
    rows = stored.rows("agreement", EMULATION)
    runs = [run for run in stored.runs if run["experiment"] == "agreement"]
    left_out = sum(not row["valid"] for run in runs for row in run["rows"])
    yield HEAD
    for sentence in show.sentences(rows):
        yield f"- {sentence}"
    if left_out:
        yield (
            f"- Excluded: {left_out} rows that are not valid, because the machine was too late for "
            "them or something else failed."
        )
    yield ""
    cells = [dict(zip(show.COLUMNS, line, strict=True)) for line in show.table(rows)]
    yield _line(TABLE)
    yield _line(["---"] * len(TABLE))
    for line in cells:
        yield _line([line[column] for column in TABLE])
    yield ""
    yield READING
    if apart := [(line, row["peaks_apart"]) for line, row in zip(cells, rows, strict=True)]:
        named = [one for one in apart if one[1]]
        if named:
            yield "Peaks that differ (emulated minus simulated, bytes):"
            yield ""
            for line, peaks in named:
                case = ", ".join(line[key] for key in TABLE[:5])
                yield f"- {case}: {'; '.join(peaks)}"
            yield ""
    yield "## Why they differ"
    for title, text in show.NOTES:
        yield ""
        yield f"**{title}.** {text}"
    yield ""
    yield "## The runs"
    yield ""
    for run in runs:
        commit = (run["versions"].get("commit") or "-")[:10]
        machine = f"{run['machine'].get('cores')} cores, {run['machine'].get('cpu')}"
        yield f"- {run['id']}: {len(run['rows'])} rows, commit {commit}, {machine}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def text(stored: Stored) -> str:
    """Return the whole page."""
    return "\n".join(lines(stored)) + "\n"
