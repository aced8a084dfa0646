"""Iwasaki et al., fast user-level barriers on a PC cluster with Ethernet."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.framework.experiment import SIMULATION
from experiments.reproduction.claim import Claim, Compute
from experiments.reproduction.figures import Row, ratios, typical, values, where
from runs.spread import Spread


def _algorithm(fabric: str, name: str, hosts: int) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(fabric=fabric, algorithm=name, hosts=hosts, networks=1)
        return values(rows, lambda row: float(row["mean_us"]), test)

    return compute


def _over_shuffle(name: str, hosts: int) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        here = [row for row in rows if (row["fabric"], row["networks"]) == ("flat,32", 1)]
        shuffle = where(algorithm="shuffle", hosts=32)
        found = ratios(here, "mean_us", where(algorithm=name, hosts=hosts), shuffle, ("fabric",))
        return typical(found)

    return compute


def _one_way(rows: Sequence[Row]) -> Spread | None:
    test = where(fabric="flat,32", algorithm="shuffle", hosts=32, networks=1)
    return values(rows, lambda row: float(row["one_way_us"]), test)


ONE_SWITCH, ONE_HUB = "Barrier, one switch", "Barrier, one repeater hub"
GROUNDS = {
    ONE_SWITCH: (
        "flat,32",
        "The simulated processors have the paper's LogP parameters. For every algorithm, the "
        "paper measures 13 to 19 % more than its model predicts. The emulated fabric has slower "
        "lines and longer delays, so only the order of the algorithms can be compared.",
    ),
    ONE_HUB: (
        "hub,32",
        "Nearly all of the time is due to collisions on the shared medium, which LogP does not "
        "model. A hub cannot be emulated.",
    ),
}
ALGORITHMS = (
    ("Shuffle exchange", "shuffle", 32, 174.0, 3743.0),
    ("2-way tree and multicast", "tree2", 32, 204.0, 728.0),
    ("3-way tree and multicast", "tree3", 31, 200.0, 675.0),
    ("Concurrent", "concurrent", 32, 309.0, 1059.0),
)
"""Words, name, hosts, and the times on a switch and on a hub in microseconds."""

PAPER_001 = [
    Claim(
        "001",
        "Figure 2, section 5.1.1",
        "One-way time of a short message, o_s + L + o_r, us",
        30.0,
        "barrier",
        _one_way,
        "o_s and o_r are the paper's. Its L includes two copies by DMA; ours includes only the "
        "lines and the switch.",
        1,
        (SIMULATION,),
    )
]
PAPER_001 += [
    Claim(
        "001",
        place,
        f"{words}, {hosts} hosts, us",
        theirs_us,
        "barrier",
        _algorithm(GROUNDS[place][0], name, hosts),
        GROUNDS[place][1],
        0,
        (SIMULATION,),
    )
    for words, name, hosts, *times_us in ALGORITHMS
    for place, theirs_us in zip(GROUNDS, times_us, strict=True)
]


PAPER_001 += [
    Claim(
        "001",
        f"{ONE_SWITCH}, ratio",
        f"{words}, {hosts} hosts: time over that of shuffle exchange",
        theirs_us / ALGORITHMS[0][3],
        "barrier",
        _over_shuffle(name, hosts),
        "On emulated lines of 0.5 Mbit/s, a message takes most of its time on the line, not in "
        "processors. Messages to the same host wait for its line.",
    )
    for words, name, hosts, theirs_us, _ in ALGORITHMS[1:]
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
            "Two messages on two interfaces cause two interrupts, as the paper says. The cost of "
            "an interrupt in the simulation is derived from this figure. Emulated processes have "
            "no interrupts.",
        ),
        (
            "Concurrent",
            "concurrent",
            16,
            147 / 179,
            "While one interface is served, messages accumulate at the other, as the paper says. "
            "Here, one network already delivers a frame every 6.7 us (8.3 us in the paper), "
            "nearly as fast as the master's processor can receive them. In emulation the lines "
            "are the bottleneck, and two lines deliver twice as much.",
        ),
    )
]
