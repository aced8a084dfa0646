"""Shimizu, Nakashima, all-to-all communication on Latin-square fat-trees."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.all_to_all.cases import ANALYSIS
from experiments.compare import Spread
from experiments.experiment import EMULATION, SIMULATION
from experiments.reproduction.claim import Claim, Compute
from experiments.reproduction.figures import Row, ratios, typical, values, where


def _exchange(configuration: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        here = [row for row in rows if row["configuration"] == configuration]
        key = "of_line" if any(row["of_line"] is not None for row in here) else "throughput_ratio"
        free, shift = where(schedule="contention-free"), where(schedule="shift")
        return typical(ratios(here, key, free, shift, ("configuration", "share")))

    return compute


def _ratio(configuration: str, share: int, schedule: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(configuration=configuration, share=share, schedule=schedule)
        return values(rows, lambda row: float(row["throughput_ratio"]), test)

    return compute


def _large_parts(rows: Sequence[Row]) -> Spread | None:
    large = [row for row in rows if row["configuration"].startswith("L")]
    test = where(schedule="contention-free")
    # What paths say is not what a simulation has shown, though its rows tell it, too.
    key = "of_line" if any(row["of_line"] is not None for row in large) else "throughput_ratio"
    return values(large, lambda row: float(row[key]), test)


PAPER_002 = [
    Claim(
        "002",
        f"Figures 19 to 21, {name}",
        f"{name}: throughput of the proposed schedule over shift",
        3700 / shift,
        "all-to-all",
        _exchange(name),
        "By paths alone the shift's flows share less than they lose on real machines: a phase "
        "lasts as long as its slowest flow. In our exchanges the way of the last frame of each "
        "phase counts, too, and takes a larger part of a phase than on InfiniBand; and the "
        "proposed schedule spreads messages to oneself over all phases, where the shift has "
        "one empty phase: with 8 hosts (S2) that is an eighth.",
        places=(EMULATION, SIMULATION, ANALYSIS),
    )
    for name, shift in (("S1", 1400), ("S2", 2700), ("S3", 1500))
] + [
    Claim(
        "002",
        "Figure 18, L6",
        f"Throughput ratio of all 5,526 hosts, {words}",
        theirs,
        "all-to-all",
        _ratio("L6", 100, schedule),
        "Computed, not measured, there and here: the order of hosts makes the last digit.",
        3,
        (ANALYSIS,),
    )
    for words, schedule, theirs in (
        ("shift", "shift", 0.108),
        ("proposed", "contention-free", 1.0),
    )
]
PAPER_002.append(
    Claim(
        "002",
        "Figure 18, L1 to L6",
        "Throughput of the proposed schedules over a line's, 100, 75, 50 and 25 % of the hosts",
        1.0,
        "all-to-all",
        _large_parts,
        "No two flows share a channel, there and here. Simulated, a phase begins when the one "
        "before has arrived everywhere, so that the way of its last frame counts, too: a fifth of "
        "a phase of 16 full frames that are stored and forwarded three times.",
        3,
        (SIMULATION, ANALYSIS),
    )
)
