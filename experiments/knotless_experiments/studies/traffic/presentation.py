"""The report of the traffic experiment: sentences, table, and notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from knotless.base.counting import counted
from knotless.traffic import theory
from knotless_experiments.framework.excluded_runs import REPEATS, excluded
from knotless_experiments.framework.experiment import SIMULATION, Plot, Presentation
from knotless_experiments.studies.traffic.cases import ACKNOWLEDGED, OPEN_LOOP
from knotless_experiments.studies.traffic.columns import COLUMNS

Row = Mapping[str, Any]
REFERENCE = "updown"


def means(rows: Sequence[Row], *keys: str) -> dict[tuple[Any, ...], float]:
    """Return the mean over repeats (and whatever else the keys leave out) of ``mean_mbps``."""
    rates_mbps: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in rows:
        rates_mbps[tuple(row[key] for key in keys)].append(row["mean_mbps"])
    return {key: fmean(values) for key, values in rates_mbps.items()}


def gains(rows: Sequence[Row]) -> dict[tuple[str, str, str, int], float]:
    """Return bandwidth over that of updown with one VC, by (fabric, routes, pattern, bytes)."""
    rates_mbps = means(
        [row for row in rows if row["part"] == ACKNOWLEDGED],
        *("fabric", "routes", "pattern", "message_bytes"),
    )
    return {
        key: mbps / rates_mbps[key[0], REFERENCE, *key[2:]]
        for key, mbps in rates_mbps.items()
        if (key[0], REFERENCE, *key[2:]) in rates_mbps and key[1] != REFERENCE
    }


def sentences(rows: Sequence[Row]) -> list[str]:
    """Return the findings of the valid rows."""
    return [*_sentences([row for row in rows if row["valid"]]), *excluded(rows)]


def _sentences(rows: Sequence[Row]) -> Iterator[str]:
    if ratios := gains(rows):
        best = max(ratios, key=lambda key: ratios[key])
        worst = min(ratios, key=lambda key: ratios[key])
        yield (
            "Against up*/down* with one virtual channel, acknowledged messages had between "
            f"{ratios[worst]:.2f} ({_testbed(worst)}) and {ratios[best]:.2f} times"
            f" ({_testbed(best)}) the bandwidth."
        )
    for protocol in ("udp", "tcp"):
        flood = [row for row in rows if (row["part"], row["protocol"]) == (OPEN_LOOP, protocol)]
        if flood:
            low = min(flood, key=lambda row: row["of_theory"])
            high = max(flood, key=lambda row: row["of_theory"])
            yield (
                f"Open loop, {protocol.upper()}: flows had together {low['of_theory']:.3f} "
                f"({low['fabric']}, {low['pattern']}) to {high['of_theory']:.3f} "
                f"({high['fabric']}, {high['pattern']}) of their max-min fair shares, "
                f"and lost {counted(sum(row['lost_frames'] for row in flood), 'frames')}."
            )
    if frozen := [row for row in rows if row["deadlock"]]:
        yield f"DEADLOCK in {len(frozen)} of {counted(len(rows), 'runs')}."


def _testbed(key: tuple[str, str, str, int]) -> str:
    fabric, routes, pattern, size = key
    return f"{routes}, {pattern} on {fabric}, {size} B"


def notes(on: str) -> list[tuple[str, str]]:
    """Explain how each figure of runs in a place came about."""
    fair = (
        "Theory is max-min fair sharing of the lines, headers, tags and TCP's acknowledgements "
        "counted in. Queues are FIFO, so a flow may wait behind another that is held up further "
        "on, and get less."
    )
    payload = (
        f"{theory.UDP_PAYLOAD_BYTES} bytes of payload on "
        f"{theory.wire_bytes('udp', theory.UDP_PAYLOAD_BYTES, tagged=True)} of line between "
        "switches"
    )
    acknowledged = (
        "Acknowledged messages",
        "On each switch one host only sends and another only receives; the pattern is one of "
        "switches. A sender sends a message of D bytes (UDP payload), waits for the receiver's "
        "acknowledgement (a frame of the smallest size), and sends the next: B = D / T, T the "
        "mean time from message to acknowledgement. Over 1,472 bytes a message is two "
        "datagrams. Theory is D / T in an empty fabric, store-and-forward, without "
        "the hosts' own time.",
    )
    if on == SIMULATION:
        return [
            acknowledged,
            (
                "Open loop",
                "Every host of the pattern is a source that always has a next packet. Goodput is "
                f"what receivers are delivered in the measuring window: {payload}. {fair}",
            ),
            (
                "Hosts",
                "Hosts take no time of their own. A message is as many packets as on the emulated "
                "fabric, with the same headers. Repeats have the same seed: result_sha256 of their "
                "rows must be the same.",
            ),
        ]
    return [
        acknowledged,
        (
            "Open loop",
            "Every host of the pattern runs an unmodified iperf3 that sends all it can. Goodput is "
            "from the emulator's counters of the channel that delivers to each receiver, in the "
            f"measuring window: {payload}. {fair}",
        ),
        (
            "Stretch and validity",
            "The stretch is real over virtual time: a busy machine makes the fabric slower, not "
            "different. A run in which anything went wrong is marked not valid and left out of the "
            f"findings; its remarks say why. {REPEATS}",
        ),
    ]


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Return the presentation of a run; with plots only if ``draw``."""
    del samples
    rows = run["rows"]
    plots: list[Plot] = []
    if draw:
        from knotless_experiments.studies.traffic import figures

        plots = figures.plots(rows)
    return Presentation(
        title="Traffic patterns: what routes make of the same fabric",
        lead="The same traffic on the same switches by the routes of several engines: with "
        "acknowledged messages of one sender and one receiver a switch, and with hosts that send "
        f"all they can. On {run['parameters']['on']}.",
        sentences=sentences(rows),
        columns=COLUMNS,
        rows=rows,
        notes=notes(run["parameters"]["on"]),
        plots=plots,
    )
