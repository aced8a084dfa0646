"""Yamamoto et al., RHiNET-1: time and bandwidth of its remote memory primitives."""

from __future__ import annotations

from collections.abc import Sequence

from knotless.experiments.framework.experiment import SIMULATION
from knotless.experiments.framework.routed import Routed
from knotless.experiments.reproduction.claim import INFERRED, Claim, Compute
from knotless.experiments.reproduction.figures import values, where
from knotless.experiments.reproduction.rows import Row
from knotless.experiments.studies.primitives.stages import STAGES
from knotless.results.spread import Spread

LATENCY_US = 8.1 + 1.0
"""One-way latency of 8 bytes: of the interfaces, plus that of the software."""
CLOCK_MHZ, WIDTH_BITS = 80.0, 8
"""Clock and width of a link when the paper measured (table 2); nominally it has 1.3 Gbit/s."""
BANDWIDTH_MBPS = 37.0 * 8
"""Bandwidth of transfers of 4 KiB."""
STAGES_US = {
    "(1) PCI: primitive written": 0.00,
    "(2) LB: primitive written": 0.29,
    "(3) LB: data DMA requested": 2.04,
    "(4) NW: head sent": 2.21,
    "(5) PCI: data DMA starts": 2.64,
    "(6) LB: data written": 3.54,
    "(7) NW: data sent": 3.96,
    "(8) LB: flag DMA requested": 4.98,
    "(9) PCI: flag DMA": 5.94,
    "(10) LB: DMA requested": 6.23,
    "(11) LB: data read": 6.97,
    "(12) PCI: data DMA starts": 8.14,
}
"""Table 3, a push of 64 bytes: when each stage begins; (1) to (9) send, (10) to (12) receive."""
ON_THE_LINE_US, WRITTEN_US = STAGES_US["(4) NW: head sent"], STAGES_US["(12) PCI: data DMA starts"]
SENT, ARRIVED = "frame given to the kernel", "area written, answer posted"
OURS = STAGES[: STAGES.index(ARRIVED) + 1]
"""Our stages until the data is in the remote memory."""


def _latency(rows: Sequence[Row]) -> Spread | None:
    return values(rows, lambda row: float(row["median_us"]), where(kind="message", bytes=8))


def _of_line(rows: Sequence[Row]) -> Spread | None:
    def share(row: Row) -> float:
        return float(row["mbit_per_s"] / Routed(row["fabric"]).fabric.hosts[0].rate_mbps)

    return values(rows, share, where(kind="message", bytes=4096))


def _reached(stage: str) -> Compute:
    """Return when a stage of ours ended, as a share of the time until the area is written."""

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(operation="stages")
        return values(
            rows, lambda row: float(row["stages_us"][stage] / row["stages_us"][ARRIVED]), test
        )

    return compute


def _sent_of_way(rows: Sequence[Row]) -> Spread | None:
    def share(row: Row) -> float:
        return float(row["stages_us"][SENT] / row["stages_us"][ARRIVED])

    return values(rows, share, where(operation="stages"))


MESSAGES = [
    Claim(
        "003",
        "Figure 7, section 4.1",
        "One-way time of 8 bytes, us",
        LATENCY_US,
        "pingpong",
        _latency,
        "In the paper, the network interface reads and writes memory. Our messages are sent and "
        "received by the processors. In simulation, this takes the times measured in paper 001 "
        "(o_s and o_r, 12.5 us together). The rest is the line and the switch.",
        1,
        (SIMULATION,),
    ),
    Claim(
        "003",
        "Section 4.2",
        "Bandwidth with 4 KiB, as a share of the line's at 80 MHz and 8 bits",
        BANDWIDTH_MBPS / (CLOCK_MHZ * WIDTH_BITS),
        "pingpong",
        _of_line,
        "The paper's interface reads memory 32 bytes at a time over PCI, which limits it to 37 "
        "MB/s, on a network clocked at 80 MHz (its table 2). Its nominal 1.3 Gbit/s is the link's "
        "capacity, not what it measured with. Our messages cross no such bus; only headers reduce "
        "their bandwidth.",
        3,
        mark=INFERRED,
    ),
]
STAGES_WHY = (
    "The stages differ: two PCI buses in the paper, a process on each side here. Emulated "
    "processes are 50 times as fast as on this machine."
)
PUSH = [
    Claim(
        "003",
        "Table 3",
        "Time until the head is on the line, as a share of the time until (12)",
        ON_THE_LINE_US / WRITTEN_US,
        "primitives",
        _sent_of_way,
        STAGES_WHY,
        3,
        mark=INFERRED,
    ),
    *(
        Claim(
            "003",
            f"Table 3, {stage}",
            f"Share of the time until (12): {stage[stage.index(')') + 2 :]}",
            begins_us / WRITTEN_US,
            "primitives",
            lambda _: None,
            STAGES_WHY,
            3,
            (),
            INFERRED,
        )
        for stage, begins_us in STAGES_US.items()
    ),
    *(
        Claim(
            "003",
            "Table 3, our stages",
            f"Share of the time until the remote area is written: {stage}",
            "-",
            "primitives",
            _reached(stage),
            STAGES_WHY,
            3,
        )
        for stage in OURS
    ),
]
