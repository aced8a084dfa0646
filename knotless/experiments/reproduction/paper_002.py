"""Shimizu and Nakashima, all-to-all communication on Latin-square fat-trees."""

from __future__ import annotations

from collections.abc import Sequence

from knotless.experiments.framework.experiment import ANALYSIS, EMULATION, SIMULATION
from knotless.experiments.reproduction.claim import Claim, Compute
from knotless.experiments.reproduction.figures import ratios, typical, values, where
from knotless.experiments.reproduction.rows import Row
from knotless.results.spread import Spread


def _exchange(configuration: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        here = [row for row in rows if row["configuration"] == configuration]
        key = "of_line" if any(row["of_line"] is not None for row in here) else "throughput_ratio"
        free, shift = where(schedule="contention-free"), where(schedule="shift")
        return typical(ratios(here, key, free, shift, ("schedule",)))

    return compute


def _ratio(configuration: str, share: int, schedule: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(configuration=configuration, share=share, schedule=schedule)
        return values(rows, lambda row: float(row["throughput_ratio"]), test)

    return compute


def _large_parts(rows: Sequence[Row]) -> Spread | None:
    large = [row for row in rows if row["configuration"].startswith("L")]
    test = where(schedule="contention-free")
    # Rows of a simulation also hold the ratio from path analysis; the measured share is used.
    key = "of_line" if any(row["of_line"] is not None for row in large) else "throughput_ratio"
    return values(large, lambda row: float(row[key]), test)


def _of_line(configuration: str, schedule: str) -> Compute:
    """Return the hosts' share of their line rate; from path analysis, the throughput ratio."""

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(configuration=configuration, schedule=schedule)
        here = [row for row in rows if test(row)]
        key = "of_line" if any(row["of_line"] is not None for row in here) else "throughput_ratio"
        return values(here, lambda row: float(row[key]), lambda _: True)

    return compute


def _over_fat_tree(name: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        free = where(configuration=name, schedule="contention-free")
        tree = where(configuration=f"{name}'", schedule="shift")
        timed = any(row["of_line"] is not None for row in rows if free(row) or tree(row))
        key = "of_line" if timed else "throughput_ratio"
        other = ("configuration", "fabric", "schedule", "hosts", "phases")
        return typical(ratios(rows, key, free, tree, other))

    return compute


LIMIT_MIB_S = 3717
"""The largest throughput that the paper measured between two hosts."""
EXCHANGED_MIB_S = {"S1": (1400, 3700), "S2": (2700, 3700), "S3": (1500, 3700)}
"""Throughput with the shift and with the proposed schedule."""
SCHEDULES = {"shift": "shift", "contention-free": "proposed"}
SIZES = ("L1", "L2", "L3", "L4", "L5", "L6")
SHIFT_ALL_L6 = 0.108

ANALYSED = [
    Claim(
        "002",
        "Figure 17, S1' to S3'",
        f"{name}, a conventional fat-tree: throughput ratio of shift",
        1.0,
        "all-to-all",
        _ratio(name, 100, "shift"),
        "No two flows share a channel, in the paper and here.",
        places=(ANALYSIS,),
    )
    for name in ("S1'", "S2'", "S3'")
] + [
    Claim(
        "002",
        f"Figure 17, {name}",
        f"{name}: throughput of the proposed schedule over shift on the fat-tree {name}'",
        1.0,
        "all-to-all",
        _over_fat_tree(name),
        "The proposed schedule distributes the messages of hosts to themselves over all phases, "
        "so every phase takes time. The shift has them all in one phase, which takes no time. "
        "The fewer phases, the larger this difference. The two exchanges also have different "
        "numbers of hosts.",
        places=(EMULATION, SIMULATION, ANALYSIS),
    )
    for name in EXCHANGED_MIB_S
]
MEASURED = [
    Claim(
        "002",
        "Figures 19 to 22",
        f"{name}: throughput of hosts as a share of the line rate, {words}",
        theirs[number] / LIMIT_MIB_S,
        "all-to-all",
        _of_line(name, schedule),
        "A phase begins when all messages of the previous one have arrived, so it includes the "
        "travel time of the last frame. In the proposed schedule, each host also loses the phase "
        "in which it sends to itself: one of 21, 8 and 27.",
        places=(EMULATION, SIMULATION, ANALYSIS),
    )
    for name, theirs in EXCHANGED_MIB_S.items()
    for number, (schedule, words) in enumerate(SCHEDULES.items())
] + [
    Claim(
        "002",
        f"Figures 19 to 21, {name}",
        f"{name}: throughput of the proposed schedule over shift",
        proposed / shift,
        "all-to-all",
        _exchange(name),
        "Path analysis predicts a higher throughput of the shift than real machines reach, where "
        "a phase lasts as long as its slowest flow.",
        places=(EMULATION, SIMULATION, ANALYSIS),
    )
    for name, (shift, proposed) in EXCHANGED_MIB_S.items()
]
SHARES = {100: SIZES, 75: SIZES[2:], 50: SIZES, 25: SIZES}
"""The parts of the hosts, in per cent, and the configurations of table 5 that have one."""
LARGE = [
    Claim(
        "002",
        f"Figure 18, {name}",
        f"Throughput ratio of shift, {share} % of the hosts",
        SHIFT_ALL_L6 if (name, share) == ("L6", 100) else "only drawn",
        "all-to-all",
        _ratio(name, share, "shift"),
        "Computed, not measured, in the paper and here. The order of the hosts determines the "
        "last digit.",
        3,
        (ANALYSIS,),
    )
    for share, names in SHARES.items()
    for name in names
] + [
    Claim(
        "002",
        "Figure 18, L1 to L6",
        "Throughput of the proposed schedules over that of a line; 100, 75, 50 and 25 % of the "
        "hosts",
        1.0,
        "all-to-all",
        _large_parts,
        "No two flows share a channel, in the paper and here. In simulation, a phase begins when "
        "all messages of the previous one have arrived, so it includes the travel time of the "
        "last frame of 16 that are stored and forwarded three times.",
        3,
        (SIMULATION, ANALYSIS),
    )
]
