"""Iwasaki et al., fast user-level barriers on a PC cluster with Ethernet."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.compare import Spread
from experiments.experiment import SIMULATION
from experiments.reproduction.claim import Claim, Compute
from experiments.reproduction.figures import Row, ratios, typical, values, where


def _algorithm(name: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(fabric="flat,32", algorithm=name, hosts=32, networks=1)
        return values(rows, lambda row: float(row["mean_us"]), test)

    return compute


PAPER_001 = [
    Claim(
        "001",
        "Barrier of 32 hosts, one switch",
        f"{words}, us",
        theirs_us,
        "barrier",
        _algorithm(name),
        "The simulated processors have the paper's LogP figures; its switch and its interrupts "
        "are not in them. The emulated fabric is slower by its lines and delays: only the order "
        "of the algorithms can be compared there.",
        0,
        (SIMULATION,),
    )
    for words, name, theirs_us in (
        ("Shuffle exchange", "shuffle", 174.0),
        ("2-way tree and multicast", "tree2", 204.0),
        ("Concurrent", "concurrent", 309.0),
    )
]


def _two_networks(algorithm: str, hosts: int) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        here = where(fabric="flat,32", algorithm=algorithm, hosts=hosts)
        of_case = [row for row in rows if here(row)]
        two, one = where(networks=2), where(networks=1)
        return typical(ratios(of_case, "mean_us", two, one, ("algorithm", "hosts")))

    return compute


PAPER_001 += [
    Claim(
        "001",
        f"Barrier of {hosts} hosts, two networks",
        f"{words}: time over that with one network",
        theirs,
        "barrier",
        _two_networks(algorithm, hosts),
        why,
    )
    for words, algorithm, hosts, theirs, why in (
        (
            "3-way tree",
            "tree3",
            15,
            169 / 159,
            "In the paper two networks make the tree slower, for a reason that is the host's "
            "(two interfaces to look after); LogP has none.",
        ),
        (
            "Concurrent",
            "concurrent",
            16,
            147 / 179,
            "By the paper's own LogP figures the master's processor takes 9.5 us for each "
            "reception, more than the gap of 9 us that a second network would halve: so "
            "the formula and the simulator gain nothing. What was gained there is the interfaces'.",
        ),
    )
]
