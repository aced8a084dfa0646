"""Yamamoto et al., RHiNET-1: time and bandwidth of its remote memory primitives."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.framework.experiment import SIMULATION
from experiments.framework.routed import Routed
from experiments.reproduction.claim import Claim
from experiments.reproduction.figures import Row, values, where
from runs.spread import Spread

LATENCY_US = 8.1 + 1.0
"""One-way latency of 8 bytes: of the interfaces, plus that of the software."""
LINE_MBPS, BANDWIDTH_MBPS = 1300.0, 37.0 * 8
"""Rate of a link, and bandwidth of transfers of 4 KiB."""
ON_THE_LINE_US, WRITTEN_US = 2.21, 8.14
"""Table 3, a push of 64 bytes: (4) its head is on the line; (12) its data is being written."""
SENT, ARRIVED = "frame given to the kernel", "area written, answer posted"


def _latency(rows: Sequence[Row]) -> Spread | None:
    return values(rows, lambda row: float(row["median_us"]), where(kind="message", bytes=8))


def _of_line(rows: Sequence[Row]) -> Spread | None:
    def share(row: Row) -> float:
        return float(row["mbit_per_s"] / Routed(row["fabric"]).fabric.hosts[0].rate_mbps)

    return values(rows, share, where(kind="message", bytes=4096))


def _sent_of_way(rows: Sequence[Row]) -> Spread | None:
    def share(row: Row) -> float:
        return float(row["stages_us"][SENT] / row["stages_us"][ARRIVED])

    return values(rows, share, where(operation="stages"))


PAPER_003 = [
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
        "Bandwidth with 4 KiB, as a share of the line's",
        BANDWIDTH_MBPS / LINE_MBPS,
        "pingpong",
        _of_line,
        "The paper's interface reads memory 32 bytes at a time over PCI, which limits it to 37 "
        "MB/s. Our messages cross no such bus; only headers reduce their bandwidth.",
        3,
    ),
    Claim(
        "003",
        "Table 3, a push of 64 bytes",
        "Time until the data is on the line, as a share of the time until it is in the remote "
        "memory",
        ON_THE_LINE_US / WRITTEN_US,
        "primitives",
        _sent_of_way,
        "The stages differ: two PCI buses in the paper, a process on each side here. On emulated "
        "lines, the transmission takes far longer than the stages before and after it.",
        3,
    ),
]
