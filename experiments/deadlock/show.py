"""What the deadlock experiment found, in sentences, a table, and the notes of its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments import theory
from experiments.experiment import Plot, Presentation

Row = Mapping[str, Any]

TITLE = "One fabric that freezes, one that cannot"
LEAD = (
    "A ring of four Open vSwitch switches, one host at each, every host sending two switches "
    "round with iperf3 as fast as it can. The same four flows on the same switches; only the "
    "routes and the flow control differ. No channel carries more than two flows."
)
COLUMNS = (
    "routes",
    "control",
    "protocol",
    "run",
    "Mbit/s each",
    "fair share",
    "lost",
    "deadlock",
    "knot",
    "lateness p99",
    "valid",
    "remarks",
)
BRIEF = ("routes", "control", "protocol", "Mbit/s each", "lost", "deadlock", "knot", "valid")
"""The columns that fit on a terminal."""
CLOSE_ENOUGH = 0.01
"""A flow within 1 % of its fair share got what theory says."""
NOTHING_MBPS = 0.0005


def range_of(values: Sequence[float], digits: int = 2) -> str:
    """Return ``4.76-4.78``, or one number where both ends read the same."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low}-{high}"


def _knot(row: Row) -> str:
    if not row["deadlock"]:
        return "-"
    return "predicted" if row["cycle"] == row["predicted_cycle"] else "NOT predicted"


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each row."""
    return [
        [
            row["routes"],
            row["flow_control"],
            row["protocol"],
            str(row["repeat"]),
            range_of(row["flows_mbps"]),
            f"{row['theory_mbps']:.3f}",
            f"{row['lost_frames']:,}",
            f"at {row['frozen_after_s']:.2f} s" if row["deadlock"] else "no",
            _knot(row),
            f"{row['lateness_us_p99']:.0f} us",
            "yes" if row["valid"] else "NO",
            "; ".join([*([" ".join(row["cycle"])] if row["cycle"] else []), *row["problems"]]),
        ]
        for row in rows
    ]


def _times(count: int, total: int) -> str:
    if total == 1:
        return "in the one run" if count else "not"
    return f"in {count} of {total} runs"


def sentences(rows: Sequence[Row]) -> list[str]:
    """Say what was found, of the valid UDP rows; each sentence only where there are such rows."""
    return list(_sentences([row for row in rows if row["valid"]], len(rows)))


def _sentences(rows: Sequence[Row], made: int) -> Iterator[str]:
    def of(routes: str, flow_control: str) -> list[Row]:
        return [
            row
            for row in rows
            if (row["routes"], row["flow_control"], row["protocol"])
            == (routes, flow_control, "udp")
        ]

    if cyclic := of("cyclic", "all"):
        yield _frozen(cyclic)
    if acyclic := of("acyclic", "all"):
        yield _ran("The acyclic routes", "PAUSE on every link", acyclic)
    if dateline := of("dateline", "pfc"):
        yield _ran(
            "The cyclic routes on two virtual channels (dateline)", "PFC on every link", dateline
        )
    if lossy := of("cyclic", "none"):
        frozen = sum(row["deadlock"] for row in lossy)
        lost = range_of([row["lost_frames"] for row in lossy], 0)
        sent = range_of([row["sent_frames"] for row in lossy], 0)
        what = "nothing froze" if not frozen else f"it froze {_times(frozen, len(lossy))}"
        yield (
            f"Without flow control {what} on the cyclic routes, "
            f"but {lost} of {sent} frames were lost."
        )
    if again := sum(len(row["earlier_attempts"]) for row in rows):
        runs = "1 run was" if again == 1 else f"{again} runs were"
        yield f"{runs} made again because the machine was too busy to be on time."
    if len(rows) < made:
        left_out = f"{made - len(rows)} of {made} runs"
        yield f"Not valid, and left out of these findings: {left_out}."


def _frozen(rows: Sequence[Row]) -> str:
    frozen = [row for row in rows if row["deadlock"]]
    if not frozen:
        return "With PAUSE on every link the cyclic routes did not freeze in these runs."
    knots = list(dict.fromkeys(" ".join(row["cycle"]) for row in frozen))
    agreed = sum(row["cycle"] == row["predicted_cycle"] for row in frozen)
    verdict = "exactly the knot" if agreed == len(frozen) else "not always the knot"
    most = max(mbps for row in frozen for mbps in row["flows_mbps"])
    still = (
        "nothing moved any more" if most < NOTHING_MBPS else f"flows had at most {most:.3f} Mbit/s"
    )
    lost = range_of([row["lost_frames"] for row in frozen], 0)
    times = f" {_times(len(frozen), len(rows))}" if len(rows) > 1 else ""
    return (
        f"With PAUSE on every link the cyclic routes froze{times}: channels {' or '.join(knots)} "
        f"formed the knot, {verdict} that the static check had predicted from the rules; "
        f"{still}, and {lost} frames were lost."
    )


def _ran(who: str, how: str, rows: Sequence[Row]) -> str:
    frozen = sum(row["deadlock"] for row in rows)
    lost = sum(row["lost_frames"] for row in rows)
    flows = [mbps for row in rows for mbps in row["flows_mbps"]]
    off = max(
        abs(mbps / share - 1)
        for row in rows
        for mbps, share in zip(row["flows_mbps"], row["theory_flows_mbps"], strict=True)
    )
    froze = "did not freeze" if not frozen else f"FROZE {_times(frozen, len(rows))}"
    nothing = "lost no frame" if not lost else f"LOST {lost:,} frames"
    near = f"within {100 * off:.1f} % of" if off <= CLOSE_ENOUGH else f"up to {100 * off:.1f} % off"
    return (
        f"{who}, with {how}, {froze} and {nothing}: each flow got {range_of(flows)} Mbit/s, "
        f"{near} the fair share of {rows[0]['theory_mbps']:.3f}."
    )


def notes(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Explain how each figure came about."""
    rate = run["parameters"]["rate_mbps"]
    udp = theory.wire_bytes("udp", theory.UDP_PAYLOAD_BYTES, tagged=True)
    tcp = theory.wire_bytes("tcp", theory.TCP_PAYLOAD_BYTES, tagged=True)
    ack = theory.wire_bytes("tcp", 0, tagged=True)
    return [
        (
            "Fair share (theory)",
            f"Two flows on a channel of {rate:g} Mbit/s. A datagram of {theory.UDP_PAYLOAD_BYTES} "
            f"bytes takes {udp} bytes of line between switches: Ethernet header 14, VLAN tag 4, "
            "IPv4 20, UDP 8, payload 1472, FCS 4, preamble 8, gap 12. So "
            f"{rate:g} x 1472 / {udp} / 2 = {rate * 1472 / udp / 2:.3f} Mbit/s of payload. "
            f"TCP: segments of {theory.TCP_PAYLOAD_BYTES} bytes on {tcp}, and an acknowledgement "
            f"of {ack} bytes for every second segment on the way back; shares are max-min fair. "
            "It is what an ideal scheduler would give. Queues are FIFO: where a flow merges with "
            "others twice it can wait behind frames that are held up further on (head-of-line "
            "blocking); and TCP's own dynamics are not in the sum.",
        ),
        (
            "Goodput",
            "From the emulator's counters of the channel that delivers to each receiving host: "
            "bytes less headers, over the measuring window. The window opens one second after all "
            "flows have started; in a deadlock it opens when the detector has reported it, so "
            "that it shows the freeze and not the moments before. Counters, because in a deadlock "
            "iperf3 cannot report: its own connection is stuck in the same knot. Where "
            "iperf3 came to its end, its receiver's figures (over the whole test, start included) "
            "stand beside ours in run.json.",
        ),
        (
            "Lost frames",
            "Every drop of the emulated switches and links, counted exactly until the network "
            "was empty again (in a deadlock: until the window's end). Counters begin at "
            "zero before the first sender starts. Where some links have no flow control, iperf3's "
            "own connection could be lost: there the senders start with PAUSE on every link, and "
            "once all send, the fabric is emptied, flow control is set as stated, and counters "
            "begin at zero. A host's own card never drops: it blocks the sender.",
        ),
        (
            "Deadlock and knot",
            "Deadlock is what the emulator's detector reported: channels paused by accounts that "
            "could not fall under XON even if all else left the fabric, with nothing moving. The "
            "predicted cycle comes from the static check, which walks the OpenFlow rules, before "
            "anything runs. It is a property of the routes, stated on every line; it can "
            "freeze only where links between switches are paused. Under 802.3x all priorities of a "
            "link stop together; under PFC each by itself.",
        ),
        (
            "Lateness and validity",
            "Every queue is emulated in virtual time; lateness is by how much real frames came "
            "back too late from Open vSwitch. A run whose 99th percentile is over the limit, or in "
            "which anything else went wrong, is marked not valid and left out of the findings. A "
            "run that was late, and only such a run, is tried again, at most twice; run.json keeps "
            "the late ones under earlier_attempts.",
        ),
    ]


def pick(rows: Sequence[Row], routes: str, flow_control: str) -> Row | None:
    """Return the first UDP row of that kind, a valid one if there is any."""
    found = [
        row
        for row in rows
        if (row["routes"], row["flow_control"], row["protocol"]) == (routes, flow_control, "udp")
    ]
    return next((row for row in found if row["valid"]), found[0] if found else None)


def draw_plots(run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]) -> list[Plot]:
    """Draw what the rows allow."""
    from experiments.deadlock import figures

    rows: list[Row] = [{**row, "index": index} for index, row in enumerate(run["rows"])]
    shown: list[Plot] = []
    kinds = (("cyclic", "all"), ("acyclic", "all"), ("dateline", "pfc"), ("cyclic", "none"))
    found = {kind: row for kind in kinds if (row := pick(rows, *kind)) is not None}
    rings = [found[kind] for kind in kinds[:2] if kind in found]
    if rings:
        shown.append(
            Plot(
                "knot",
                "The ring. Arrows are channels, each named by the switch and port it leaves by, "
                "with the number of flows on it. Red: the knot that the running fabric froze in, "
                "as its detector named it; blue: other channels that carry flows.",
                figures.knot(rings, run["parameters"]["rate_mbps"]),
            )
        )
    if found:
        shown.append(
            Plot(
                "timeline",
                "What all four flows together delivered, in steps of a tenth of a second, to the "
                "end of the measuring window (grey). Dashed: four fair shares. In a deadlock the "
                "line falls to zero and stays there.",
                figures.timeline(list(found.values()), samples),
            )
        )
    if rows:
        shown.append(
            Plot(
                "goodput",
                "Each dot is one flow of one run, in its measuring window; the dashed line is what "
                "two flows on a channel can have. Crosses: runs that are not valid.",
                figures.goodput(rows),
            )
        )
    return shown


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Put the presentation of a run together; plots only where ``draw``."""
    rows = run["rows"]
    return Presentation(
        title=TITLE,
        lead=LEAD,
        sentences=sentences(rows),
        columns=COLUMNS,
        brief=BRIEF,
        table=table(rows),
        notes=notes(run),
        plots=draw_plots(run, samples) if draw else (),
    )
