"""Iwasaki et al., fast user-level barriers on a PC cluster with Ethernet."""

from __future__ import annotations

from collections.abc import Sequence

from knotless.experiments.framework.experiment import SIMULATION
from knotless.experiments.reproduction.claim import FITTED, Claim, Compute
from knotless.experiments.reproduction.figures import ratios, typical, values, where
from knotless.experiments.reproduction.rows import Row
from knotless.results.spread import Spread


def _algorithm(fabric: str, name: str, hosts: int) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(fabric=fabric, algorithm=name, hosts=hosts, networks=1)
        return values(rows, lambda row: float(row["mean_us"]), test)

    return compute


def _over_shuffle(name: str, hosts: int) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        here = [row for row in rows if (row["fabric"], row["networks"]) == ("flat,32", 1)]
        shuffle = where(algorithm="shuffle", hosts=32)
        other = where(algorithm=name, hosts=hosts)
        return typical(ratios(here, "mean_us", other, shuffle, ("algorithm", "hosts")))

    return compute


def _one_way(rows: Sequence[Row]) -> Spread | None:
    test = where(fabric="flat,32", algorithm="shuffle", hosts=32, networks=1)
    return values(rows, lambda row: float(row["one_way_us"]), test)


def _two_networks(algorithm: str, hosts: int) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        here = where(fabric="flat,32", algorithm=algorithm, hosts=hosts)
        of_case = [row for row in rows if here(row)]
        two, one = where(networks=2), where(networks=1)
        return typical(ratios(of_case, "mean_us", two, one, ("networks",)))

    return compute


ONE_SWITCH, ONE_HUB = "Barrier, one switch", "Barrier, one repeater hub"
GROUNDS = {
    ONE_SWITCH: (
        "flat,32",
        "The simulated processors have the paper's LogP parameters. For every algorithm, the "
        "paper measures more than its model predicts.",
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
TWO_NETWORKS = (
    (
        "3-way tree",
        "tree3",
        15,
        (159.0, 169.0),
        FITTED,
        "Two messages on two interfaces cause two interrupts, as the paper says. The simulated "
        "cost of an interrupt was chosen to give this figure, so the simulation shows nothing "
        "here. Emulated processes have no interrupts.",
    ),
    (
        "Concurrent",
        "concurrent",
        16,
        (179.0, 147.0),
        "",
        "In emulation the lines are the bottleneck, and two lines deliver twice as much. In "
        "simulation, the master's processor is nearly the bottleneck with one network already.",
    ),
)
"""Words, name, hosts, the times with one and two networks in microseconds, mark, explanation."""

ONE_WAY = [
    Claim(
        "001",
        "Figure 2, section 5.1.1",
        "One-way time of a short message, o_s + L + o_r, us",
        30.0,
        "barrier",
        _one_way,
        "o_s and o_r are the paper's, and the delay of our links (`--delay 2.03`) was chosen so "
        "that the sum is the paper's. The figure is an input here, not a result.",
        1,
        (SIMULATION,),
        FITTED,
    )
]
TIMES = [
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
] + [
    Claim(
        "001",
        f"{ONE_SWITCH}, ratio",
        f"{words}, {hosts} hosts: time over that of shuffle exchange",
        theirs_us / ALGORITHMS[0][3],
        "barrier",
        _over_shuffle(name, hosts),
        "Emulated processes are 200 times as fast as on this machine, so a message takes most of "
        "its time on the line, not in processors. Messages to the same host wait for its line.",
    )
    for words, name, hosts, theirs_us, _ in ALGORITHMS[1:]
]
NETWORKS = [
    Claim(
        "001",
        f"Barrier of {hosts} hosts, two networks",
        f"{words}: time over that with one network",
        two_us / one_us,
        "barrier",
        _two_networks(algorithm, hosts),
        why,
        mark=mark,
    )
    for words, algorithm, hosts, (one_us, two_us), mark, why in TWO_NETWORKS
]
