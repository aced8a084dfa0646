"""``docs/agreement.md``: the stored runs of the agreement, and why the two differ where they do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.framework.experiment import EMULATION
from experiments.studies.agreement import show
from runs.stored import Stored

HEAD = """\
# One model, two clocks: how far emulator and simulator agree

This page is written by `knotless reproduction` from the runs of `sudo knotless run agreement` in
[runs](runs): no figure on it was typed. Each case is described once, as one object (fabric, plan,
flows, packet size, flow control), and run twice: by the [emulator](emulation.md), with real frames
of real programs through Open vSwitch, and by the [simulator](simulator.md), under a virtual clock.
"""
TABLE = (
    *("fabric", "routes", "pattern", "flow control", "run", "ratio", "worst flow"),
    *("frames apart", "knot simulated", "knot emulated", "pauses emulated", "pauses simulated"),
    *("pauses apart", "stopped emulated", "stopped simulated", "peak emulated"),
    *("peak simulated", "peaks that differ", "agrees"),
)
READING = """\
'Ratio' is what all flows delivered in the emulator over what they did in the simulator, 'worst
flow' that of the flow that is farthest from 1, and 'frames apart' by how many frames a flow differs
at most. Pauses are those of all channels together, 'pauses apart' by how many a channel differs at
most, and 'stopped' how long all channels together were paused. 'Peak' is that of the fullest
account, in bytes, and 'peaks that differ' says on how many of the channels that carried frames the
peak was not equal to the byte. `samples.parquet` of a run has every channel.
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
            f"- Left out: {left_out} rows that are not valid, because the machine was too late for "
            "them or something else went wrong."
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
            yield "Peaks that differ (emulated less simulated, bytes):"
            yield ""
            for line, peaks in named:
                case = ", ".join(line[key] for key in TABLE[:5])
                yield f"- {case}: {'; '.join(peaks)}"
            yield ""
    yield "## Why they differ where they do"
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
