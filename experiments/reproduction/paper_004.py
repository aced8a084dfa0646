"""Otsuka et al., switch-tagged VLAN routing."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from experiments.framework.experiment import ANALYSIS, EMULATION, SIMULATION
from experiments.framework.fabrics import TABLE_1
from experiments.reproduction.claim import Claim, Compute
from experiments.reproduction.figures import Row, ratios, typical, values, where
from experiments.studies.hops.show import slope
from runs.spread import Spread, spread_of
from traffic import theory

LINE_MBPS_004 = 958.0
"""What the paper's UDP had on a line of 1 Gbit/s that nobody shares."""


def _mean_of_line(fabric: str, pattern: str) -> Compute:
    """The mean over all 16 hosts; those that would send to themselves count as a free line.

    That the paper does so too is an inference: only so its prediction for the mesh
    (521 Mbit/s) can be had.
    """

    def mean(row: Row) -> float:
        line_mbps = row["rate_mbps"] / theory.load_per_payload("udp", tagged=True)
        flows = [mbps / line_mbps for mbps in row["flows_mbps"]]
        return fmean([*flows, *[1.0] * (16 - len(flows))])

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(part="open-loop", protocol="udp", fabric=fabric, pattern=pattern)
        return values(rows, mean, test)

    return compute


def _of_prediction(fabrics: tuple[str, ...], patterns: tuple[str, ...]) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(part="open-loop", protocol="udp", fabric=fabrics, pattern=patterns)
        return values(rows, lambda row: float(row["of_theory"]), test)

    return compute


def _tag_cost(measure: str, value: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        keys, here = ("switches", "message_bytes", "repeat"), where(measure=measure)
        of_kind = [row for row in rows if here(row)]
        return typical(ratios(of_kind, value, where(tagging="switch"), where(tagging="none"), keys))

    return compute


def _linear(measure: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        found = []
        for size in {row["message_bytes"] for row in rows}:
            for repeat in {row["repeat"] for row in rows}:
                kind = {"measure": measure, "message_bytes": size, "repeat": repeat}
                test = where(tagging="switch", **kind)
                here = [row for row in rows if test(row)]
                each, due = slope(here, "p50_us"), slope(here, "theory_us")
                found += [each / due] if each is not None and due else []
        return spread_of(found)

    return compute


def _frozen(pattern: str, protocol: str, control: str, tagging: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        here = where(pattern=pattern, protocol=protocol, flow_control=control, tagging=tagging)
        means = [{**row, "mean": fmean(row["flows_mbps"])} for row in rows if here(row)]
        cyclic, acyclic = where(routes="cyclic"), where(routes="acyclic")
        return typical(ratios(means, "mean", cyclic, acyclic, ()))

    return compute


def _paused(pattern: str, tagging: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        here = where(pattern=pattern, protocol="udp", routes="acyclic", tagging=tagging)
        means = [{**row, "mean": fmean(row["flows_mbps"])} for row in rows if here(row)]
        every, none = where(flow_control="pause"), where(flow_control="none")
        return typical(ratios(means, "mean", every, none, ()))

    return compute


def _of_table_1(fabric: str, figure: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(fabric=fabric, vlan_assignment="tree")
        return values(rows, lambda row: float(row[figure]), test)

    return compute


def _fullest(fabric: str, pattern: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(part="open-loop", fabric=fabric, pattern=pattern)
        return values(rows, lambda row: float(row["max_channel_load"]), test)

    return compute


def _over_the_tree(patterns: tuple[str, ...]) -> Compute:
    """Return the bandwidth of looped topologies over that of the M-tree, pattern by pattern."""

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(part="open-loop", protocol="udp", pattern=patterns)
        here = [row for row in rows if test(row)]
        tree, keys = where(fabric="mtree,4,4"), ("pattern", "rate_mbps")
        found = {
            fabric: ratios(here, "mean_mbps", where(fabric=fabric), tree, keys) for fabric in LOOPED
        }
        return typical({(name, *key): v for name, of in found.items() for key, v in of.items()})

    return compute


LINES_WHY = (
    "The papers print no slope that could be compared: the switches of paper 000 cut through, "
    "ours store and forward. 1 means that the time grows by exactly line and delay."
)
TAG_WHY = "A tag takes 4 bytes on each link between switches."
LOOPED = tuple(name for name in TABLE_1 if not name.startswith(("mtree", "flat")))

CP_OF_MESH = ("mesh 4x4", "max_channel_load")
"""Figure 6 shows what this figure of table 1 comes from."""
FIGURES = {
    "vlans": "VLANs",
    "mean_switches": "Switches on a path, mean (AH)",
    "max_switches": "Switches on a path, most (MH)",
    "max_channel_load": "Most paths on a channel (CP)",
}
PRINTED: dict[str, tuple[str, tuple[float, ...]]] = {
    "mesh 4x2": ("mesh,2,4,hosts=2", (4, 2.75, 5, 24)),
    "torus 4x2": ("torus,2,4,hosts=2", (4, 2.50, 3, 32)),
    "Myrinet-Clos": ("clos,4,hosts=2", (4, 2.25, 3, 12)),
    "M-tree": ("mtree,4,4", (1, 4.81, 10, 64)),
    "mesh 4x4": ("mesh,4,4", (4, 3.50, 7, 16)),
    "torus 4x4": ("torus,4,4", (4, 3.00, 5, 12)),
    "fat-tree": ("fattree,2,4,2", (4, 3.75, 5, 16)),
}
"""Table 1, in the order of FIGURES."""
PAPER_004 = [
    Claim(
        "004",
        f"Table 1, {name}" + (", figure 6" if (name, figure) == CP_OF_MESH else ""),
        words,
        theirs,
        "paths",
        _of_table_1(spec, figure),
        "Ours are computed from the rules. The paper's loads of the two 4x2 grids are exchanged. "
        "Two steps in one dimension and one in the other pass four switches on any route. The "
        "four VLANs of the torus contain rings, in which ordinary switches flood for ever; with "
        "trees, 16 are needed. The 12 of the Clos excludes the pairs at the ends of its own link "
        "(see [table-1.md](table-1.md)).",
        2 if figure == "mean_switches" else 0,
        (ANALYSIS,),
    )
    for name, (spec, printed) in PRINTED.items()
    for (figure, words), theirs in zip(FIGURES.items(), printed, strict=True)
]
PAPER_004 += [
    Claim(
        "004",
        "Figure 11, mesh 4x4, bit-reversal",
        "Most paths on a channel",
        3,
        "traffic",
        _fullest("mesh,4,4", "bit-reversal"),
        "A path shares a channel with at most two others, in the paper and here.",
        0,
    ),
    Claim(
        "004",
        "Figure 10, UDP",
        "Bandwidth on looped topologies over that on the M-tree ('higher')",
        1.0,
        "traffic",
        _over_the_tree(("bit-reversal", "transpose")),
        "The paper prints no number. A value above 1 means that loops increase the bandwidth here "
        "too.",
    ),
    Claim(
        "004",
        "Figure 10, mesh 4x4, bit-reversal, UDP",
        "Mean bandwidth of 16 hosts as a share of a line",
        533.6 / LINE_MBPS_004,
        "traffic",
        _mean_of_line("mesh,4,4", "bit-reversal"),
        "Hosts that would send to themselves count as a line of their own. We infer that the "
        "paper counts in the same way from its prediction of 521 Mbit/s for this pattern.",
        3,
    ),
    Claim(
        "004",
        "Section 5.2, mesh 4x4, bit-reversal, UDP",
        "Measured bandwidth over that predicted from shared channels",
        533.6 / 521,
        "traffic",
        _of_prediction(("mesh,4,4",), ("bit-reversal",)),
        "Ours is relative to the max-min fair shares of the actual flows.",
        3,
    ),
    Claim(
        "004",
        "Section 5.2, all topologies of table 1, UDP",
        "Measured bandwidth over that predicted from shared channels ('nearly agree')",
        1.0,
        "traffic",
        _of_prediction(TABLE_1, ("bit-reversal", "transpose")),
        "Queues are FIFO: on the M-tree, flows wait behind others that are blocked further on, "
        "and get less than their fair shares.",
        3,
    ),
    Claim(
        "004",
        "Figure 9",
        "Time of a message with switch tagging over time without VLANs ('no difference')",
        1.0,
        "hops",
        _tag_cost("messages", "p50_us"),
        TAG_WHY,
        3,
        (EMULATION,),
    ),
    Claim(
        "004",
        "Figure 9",
        "Bandwidth both ways with switch tagging over that without VLANs ('no difference')",
        1.0,
        "hops",
        _tag_cost("both-ways", "bandwidth_mbps"),
        TAG_WHY,
        3,
        (EMULATION,),
    ),
    Claim(
        "004",
        "Figure 9; 000, Figure 8",
        "Message time added by a switch, over that of line and delay ('nearly linear')",
        1.0,
        "hops",
        _linear("messages"),
        LINES_WHY,
        3,
    ),
    Claim(
        "004",
        "000, Figure 10",
        "Time added by a switch to a barrier of two hosts, over that of line and delay (linear)",
        1.0,
        "hops",
        _linear("barrier"),
        LINES_WHY,
        3,
    ),
]

FROZEN_WHY = (
    "The paper only draws (c) to (f); ours are our own fabrics. Where the paper's cyclic routes "
    "nearly stop, ours stop for good after the deadlock, and the measurement starts after that. A "
    "real switch drops frames that wait too long, so its flows continue slowly. The paper's (c) "
    "did not freeze with PAUSE on all links; ours does. In our (e), only the transfers that wait "
    "for the knot stop; the others continue with the remaining bandwidth. (In table 4, the scan "
    "shows 209 Mbit/s for (a), UDP, all links. The text says nearly zero, and this is used here.)"
)
LOSSY_WHY = (
    "Without flow control between switches nothing can freeze. Which flow loses more depends on "
    "queues and timing."
)
TCP_WHY = (
    "Ours is TCP Reno. (BBR, the default of the machine, keeps buffers empty and never froze.) "
    "With PAUSE between switches, Reno fills the links and freezes for good, as UDP does; the "
    "paper's continues slowly, as its UDP does. (On (e) with PAUSE between switches only, this "
    "takes longer than most of these windows.) Without PAUSE between switches, Reno reduces its "
    "rate when frames are lost, and in so short a window the fairness varies by chance."
)


def _why(protocol: str, control: str) -> str:
    if protocol == "tcp":
        return TCP_WHY
    return FROZEN_WHY if control in ("pause", "switch") else LOSSY_WHY


NEARLY_NOTHING_MBPS = 0.209
CONTROLS = ("none", "pause", "host", "switch")
"""The columns of tables 3 and 4."""
PAIRS = {"ring-4": "(a) over (b)", "ring-6": "(c) over (d)", "mesh-3x3": "(e) over (f)"}
TABLES: dict[str, dict[tuple[str, str], tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "host": {
        ("ring-4", "udp"): ((364.4, 0.3, 477.2, 0.5), (394.3, 317.0, 505.8, 230.3)),
        ("ring-6", "udp"): ((366.3, 469.7, 476.8, 0.5), (437.6, 475.4, 507.4, 247.7)),
        ("mesh-3x3", "udp"): ((356.0, 2.1, 477.7, 1.2), (361.3, 204.9, 494.3, 106.4)),
        ("ring-4", "tcp"): ((465.1, 27.3, 456.7, 75.7), (486.8, 323.9, 442.3, 346.2)),
        ("ring-6", "tcp"): ((466.4, 468.6, 466.0, 118.9), (487.5, 468.6, 465.8, 428.4)),
        ("mesh-3x3", "tcp"): ((464.5, 56.7, 464.0, 128.8), (469.2, 177.3, 430.2, 236.9)),
    },
    "switch": {
        ("ring-4", "udp"): ((345.2, NEARLY_NOTHING_MBPS, 477.2, 0.3), (403.3, 317.7, 506.4, 230.1)),
        ("ring-6", "udp"): ((339.0, 464.9, 477.2, 0.3), (344.1, 476.8, 477.5, 247.0)),
        ("mesh-3x3", "udp"): ((349.1, 1.9, 479.4, 19.2), (377.8, 166.7, 486.6, 109.1)),
        ("ring-4", "tcp"): ((445.0, 0.8, 454.6, 90.4), (465.4, 317.6, 440.9, 345.0)),
        ("ring-6", "tcp"): ((462.2, 469.3, 466.4, 401.4), (443.2, 464.1, 469.7, 427.9)),
        ("mesh-3x3", "tcp"): ((465.6, 47.8, 447.0, 153.9), (472.4, 158.3, 416.6, 227.5)),
    },
}
"""Tables 3 and 4, Mbit/s of a path: of cyclic and of acyclic routes, in the order of CONTROLS."""
WORDS = {"none": "no flow control", "pause": "PAUSE on all links", "host": "PAUSE on host links"}
WORDS |= {"switch": "PAUSE between switches"}
PAPER_004 += [
    Claim(
        "004",
        f"Table {4 if tagging == 'switch' else 3}, {PAIRS[pattern]}, {protocol.upper()}",
        f"Cyclic over acyclic routes, {WORDS[control]}",
        cyclic[column] / acyclic[column],
        "deadlock",
        _frozen(pattern, protocol, control, tagging),
        _why(protocol, control),
        3,
        (EMULATION,) if protocol == "tcp" else (EMULATION, SIMULATION),
    )
    for tagging in ("switch", "host")
    for (pattern, protocol), (cyclic, acyclic) in TABLES[tagging].items()
    for column, control in enumerate(CONTROLS)
]
PAPER_004 += [
    Claim(
        "004",
        f"Table {4 if tagging == 'switch' else 3}, {PAIRS[pattern][-3:]}, UDP",
        "PAUSE on all links over no flow control, acyclic routes",
        acyclic[1] / acyclic[0],
        "deadlock",
        _paused(pattern, tagging),
        "A lossless line is full even if other flows wait. The paper does not describe its "
        "switches in this respect. On (d), paused senders synchronise, and two flows then get "
        "about half of their share: in most emulated runs, and in simulation for most small "
        "differences in link length.",
        3,
    )
    for tagging in ("switch", "host")
    for (pattern, protocol), (_, acyclic) in TABLES[tagging].items()
    if protocol == "udp"
]
