"""The all-to-all exchanges: paper 002's small and large configurations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from knotless.base.name_lists import choice
from knotless.traffic.patterns.pattern import Flows
from knotless.traffic.schedules.latin_square import latin_square_of
from knotless.traffic.schedules.schedule import Schedule, shift, triple, vector_table
from knotless_experiments.framework.experiment import (
    ANALYSIS,
    EMULATION,
    SIMULATION,
    ExperimentError,
)
from knotless_experiments.framework.routed import Routed, with_options

SHIFT, CONTENTION_FREE = "shift", "contention-free"
SCHEDULES = (SHIFT, CONTENTION_FREE)


@dataclass(frozen=True)
class Configuration:
    """A fabric, and the hosts of it that exchange all to all.

    ``lattice`` (k, m) means m hosts on each of n x k leaves of the lattice part of an LSFT;
    ``leaves`` means all hosts of the first leaves; neither means all hosts. ``share`` is the
    percentage of hosts, as in the paper.
    """

    name: str
    spec: str
    lattice: tuple[int, int] | None = None
    leaves: int | None = None
    share: int = 100

    @property
    def is_latin(self) -> bool:
        """True if it has contention-free schedules."""
        return self.spec.startswith("lsft")


SMALL = (
    Configuration("S1", "lsft,2"),
    Configuration("S2", "lsft,2", lattice=(2, 2)),
    Configuration("S3", "lsft,3", lattice=(3, 3)),
    Configuration("S1'", "fattree2,5"),
    Configuration("S2'", "fattree2,5", leaves=2),
    Configuration("S3'", "fattree2,7", leaves=4),
)
"""Table 4 of the paper. The hosts of S2' and S3' are given only in a figure; here they are all
hosts of the first leaves."""
LARGE_PARTS = {
    ("L1", 3): {50: (3, 3), 25: (2, 2)},
    ("L2", 5): {50: (5, 4), 25: (3, 3)},
    ("L3", 7): {75: (7, 7), 50: (6, 6), 25: (4, 4)},
    ("L4", 11): {75: (11, 10), 50: (9, 9), 25: (6, 6)},
    ("L5", 13): {75: (13, 11), 50: (10, 10), 25: (7, 7)},
    ("L6", 17): {75: (16, 16), 50: (13, 13), 25: (9, 9)},
}
"""Table 5 of the paper: (k, m) by percentage of hosts."""
LARGE = tuple(
    Configuration(name, f"lsft,{order}", lattice=lattice, share=share)
    for (name, order), parts in LARGE_PARTS.items()
    for share, lattice in [(100, None), *parts.items()]
)
EVERY = (*SMALL, *LARGE)
SHARES = (100, 75, 50, 25)


@dataclass(frozen=True)
class Case:
    """A configuration with a schedule."""

    configuration: Configuration
    schedule: str
    routed: Routed
    repeat: int = 1

    def __str__(self) -> str:
        """Describe the case for progress bars."""
        part = f" {self.configuration.share} %" if self.configuration.name[0] == "L" else ""
        return f"{self.configuration.name}{part}, {self.schedule}"

    @cached_property
    def phases(self) -> Schedule:
        """The schedule. Raises ScheduleError if it does not fit the fabric."""
        fabric = self.routed.fabric
        square, lattice = latin_square_of(fabric), self.configuration.lattice
        if self.schedule == CONTENTION_FREE:
            if square is None:
                raise ExperimentError(f"{self}: only Latin-square fat-trees have that schedule")
            return vector_table(square, *lattice) if lattice else triple(square)
        if square is not None and lattice:
            members = vector_table(square, *lattice).hosts
        elif self.configuration.leaves is not None:
            count = len(fabric.hosts_at[fabric.switches[0].name]) * self.configuration.leaves
            members = np.arange(count, dtype=np.int32)
        else:
            members = np.arange(len(fabric.hosts), dtype=np.int32)
        among = shift(len(members))
        return Schedule(SHIFT, members, among.phases)

    def flows(self) -> Iterator[Flows]:
        """Yield each phase's flows between hosts, including those from a host to itself."""
        for flows in self.phases.flows():
            yield flows.astype(np.int32)

    def names(self) -> list[list[tuple[str, str]]]:
        """Return each phase's (source, destination) names, without flows from a host to itself."""
        hosts = self.routed.fabric.hosts
        return [
            [(hosts[a].name, hosts[b].name) for a, b in flows.tolist() if a != b]
            for flows in self.flows()
        ]


def cases(
    on: str,
    asked: str | None,
    schedules: tuple[str, ...],
    *,
    quick: bool,
    rate_mbps: float,
    delay_us: float,
    repeats: int,
    shares: Sequence[int] = SHARES,
) -> list[Case]:
    """List the cases, grouped by fabric; ``shares`` are percentages.

    Raises KnotlessError.
    """
    default = {EMULATION: SMALL, SIMULATION: SMALL, ANALYSIS: EVERY}[on]
    if quick:
        default = (SMALL[1],) if on == EMULATION else SMALL
        default = (*SMALL, *LARGE[:3]) if on == ANALYSIS else default
    configurations = tuple(dict.fromkeys(configuration.name for configuration in EVERY))
    names = choice(asked, configurations, "--configuration", ())
    for name in names:
        if on == EMULATION and name.startswith("L"):
            raise ExperimentError(
                f"--configuration: {name} is too large to emulate; use --on {ANALYSIS}"
            )
    pool = EVERY if names else default
    runs = []
    routes: dict[str, Routed] = {}
    for configuration in pool:
        if (names and configuration.name not in names) or configuration.share not in shares:
            continue
        spec = with_options(configuration.spec, rate=rate_mbps, delay=delay_us)
        # d-mod-k on the fat-trees and the unique paths of the LSFTs: their default engines.
        routed = routes.setdefault(spec, Routed(spec))
        runs += [
            Case(configuration, schedule, routed, repeat)
            for schedule in schedules
            if schedule == SHIFT or configuration.is_latin
            for repeat in range(1, repeats + 1)
        ]
    if not runs:
        raise ExperimentError(
            "no case is left: only LSFTs have a contention-free schedule, and only L1 .. L6 have "
            "parts"
        )
    return runs
