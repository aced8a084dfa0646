"""``docs/agreement.md``: the stored runs of the experiment, and the reasons for differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from knotless.results import markdown
from knotless.results.stored import Stored
from knotless_experiments.framework.experiment import EMULATION
from knotless_experiments.studies.agreement import presentation
from knotless_experiments.studies.agreement.columns import COLUMNS

HEAD = """\
# Agreement of emulator and simulator

Run the same cases in the emulator and in the simulator, and compare every counter:

    sudo knotless run agreement

Each case is one object (fabric, plan, flows, packet size, flow control). The
[emulator](emulation.md) runs it with real frames of real programs through Open vSwitch, and the
[simulator](simulator.md) in virtual time. `knotless reproduction` writes this page from the
[stored runs](../experiments); no figure on it was typed.

Both run one model of a switch, written once. So that they agree shows that the emulator keeps time
and that real frames take the modelled steps; it is no evidence that switches of others behave as
the model. For that see [validation](validation.md) and the [sources](flow-control.md) of the model.
"""
TABLE = (
    *("fabric", "routes", "pattern", "flow control", "switches", "run", "ratio", "worst flow"),
    *("frame difference", "knot simulated", "knot emulated", "pauses emulated"),
    *("pauses simulated", "pause difference", "paused emulated", "paused simulated"),
    *("peak emulated", "peak simulated", "peaks that differ", "pools that differ"),
    *("marked emulated", "marked simulated", "pause frames emulated", "pause frames simulated"),
    *("storms emulated", "storms simulated", "agrees"),
)
READING = """\
| column | meaning |
|---|---|
| switches | [switch settings](switch-settings.md) of the case |
| ratio | bytes delivered by all flows in the emulator, over those in the simulator |
| worst flow | the same ratio for the flow whose ratio is farthest from 1 |
| frame difference | largest difference of a flow, in frames |
| pauses | number of pauses of all channels together; under credits, of waits of a first frame |
| pause difference | largest difference of a channel |
| paused | time for which channels were paused, or waited for credit, added over all channels |
| peak | largest ingress buffer occupancy of any channel, in bytes |
| peaks that differ | channels that carried frames and whose peak is not equal to the byte |
| pools that differ | pools of switches whose peak, or that of their headroom, is not equal |
| marked | frames that queues have marked |
| pause frames | [pause frames](switch-settings.md#pause-frames) that took their place on the wire |
| storms | [storms](pause-storms.md#the-watchdog) that watchdogs have detected |

`samples.parquet` of a run has every channel.
"""


def lines(stored: Stored) -> Iterator[str]:
    """Yield the page, line by line."""
    rows = stored.rows("agreement", EMULATION)
    runs = [run for run in stored.runs if run["experiment"] == "agreement"]
    left_out = sum(not row["valid"] for run in runs for row in run["rows"])
    yield HEAD
    for sentence in presentation.sentences(rows):
        yield f"- {sentence}"
    if left_out:
        yield f"- Skipped: {left_out} rows that are not valid."
    yield ""
    cells = [dict(zip(COLUMNS.headings, line, strict=True)) for line in COLUMNS.table(rows)]
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
    yield "## How to read the differences"
    for title, text in presentation.NOTES:
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
    return markdown.page(lines(stored))
