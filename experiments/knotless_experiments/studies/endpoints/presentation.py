"""The report of the endpoints experiment: sentences, a table and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless_experiments.framework.excluded_runs import excluded
from knotless_experiments.framework.experiment import Presentation
from knotless_experiments.studies.endpoints.columns import COLUMNS

Row = Mapping[str, Any]


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """Say what was found in the valid rows."""
    for row in rows:
        if row["valid"]:
            verdict = "safe" if row["safe"] else "able to deadlock"
            yield f"{row['on']}, {row['endpoints']}: called {verdict}; {_finding(row)}"
    wrong = sum(row["valid"] and row["safe"] and row["deadlock"] for row in rows)
    if wrong:
        yield f"{wrong} that were called safe FROZE."
    yield from excluded(rows)


def _finding(row: Row) -> str:
    taken = f"hosts took {sum(row['requests']):,} requests"
    if row["deadlock"]:
        after, cycle = row["frozen_after_ms"], " ".join(row["cycle"])
        return f"froze within {after:,.0f} ms, in the cycle {cycle}; until then {taken}."
    return f"did not freeze in {row['window_s']:g} s; {taken}."


NOTES = (
    (
        "Hosts",
        "Each flow always has a request to send. A host keeps what it has received and not taken in"
        " a receive buffer with the limits of a switch's, and above XOFF pauses its switch by"
        " frames of IEEE 802.3x, or under PFC of 802.1Qbb for all priorities, without a limit of"
        " hosts' pauses. With real frames, messages of"
        " one frame go by the endpoint library, unacknowledged; an answer has been sent when the"
        " network interface has it, which has a queue of its own.",
    ),
    (
        "Frozen",
        "The emulator's detector knows switches alone: for it, a host that pauses may resume. So an"
        " emulated fabric counts as frozen if no frame moved for a second of virtual time while"
        " some were in the network. The cycle is one of the verdict's waits, of channels that were"
        " paused for all of that time; a row without one is not valid. The simulator knows what"
        " hosts wait for, and its condition is exact.",
    ),
)


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], with_plots: bool
) -> Presentation:
    """Return the presentation of a run, which has no plots."""
    del samples, with_plots
    rows = run["rows"]
    return Presentation(
        title="Hosts that answer before they take more",
        lead="One fat-tree and its requests, and hosts of several kinds. Switches alone cannot"
        " deadlock; hosts that wait to send a reply before they take the next request can close a"
        " cycle.",
        sentences=list(sentences(rows)),
        columns=COLUMNS,
        rows=rows,
        notes=NOTES,
    )
