"""Otsuka et al., switch-tagged VLAN routing."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from knotless.experiments.framework.experiment import ANALYSIS, EMULATION
from knotless.experiments.framework.fabrics import TABLE_1
from knotless.experiments.reproduction.claim import INFERRED, Claim, Compute
from knotless.experiments.reproduction.figures import Test, ratios, typical, values, where
from knotless.experiments.reproduction.rows import Row, condition
from knotless.experiments.studies.hops.show import slope
from knotless.results.spread import Spread, spread_of
from knotless.traffic import theory

LINE_MBPS_004 = 958.0
"""The paper's UDP bandwidth on a 1 Gbit/s line without other traffic."""


def _mean_of_line(fabric: str, pattern: str) -> Compute:
    """Return the mean over all 16 hosts; one that would send to itself counts as a full line.

    We infer that the paper counts in the same way: otherwise its prediction for the mesh
    (521 Mbit/s) does not follow.
    """

    def mean(row: Row) -> float:
        line_mbps = row["rate_mbps"] / theory.load_per_payload("udp", tagged=True)
        flows = [mbps / line_mbps for mbps in row["flows_mbps"]]
        return fmean([*flows, *[1.0] * (16 - len(flows))])

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(protocol="udp", fabric=fabric, pattern=pattern, **OPEN_LOOP)
        return values(rows, mean, test)

    return compute


def _of_prediction(fabrics: tuple[str, ...], patterns: tuple[str, ...]) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(protocol="udp", fabric=fabrics, pattern=patterns, **OPEN_LOOP)
        return values(rows, lambda row: float(row["of_theory"]), test)

    return compute


def _tag_cost(measure: str, value: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        here = where(measure=measure)
        of_kind = [row for row in rows if here(row)]
        tagged, plain = where(tagging="switch"), where(tagging="none")
        return typical(ratios(of_kind, value, tagged, plain, ("tagging",)))

    return compute


def _linear(measure: str) -> Compute:
    """Return the time that a switch adds, over that of its line and link, per size and repeat."""

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(measure=measure, tagging="switch")
        found: dict[tuple[object, ...], list[Row]] = {}
        for row in rows:
            if test(row):
                key = (*condition(row, ("switches",)), row["repeat"])
                found.setdefault(key, []).append(row)
        each = [
            (slope(here, "p50_us"), slope(here, "theory_us")) for here in found.values() if here
        ]
        return spread_of([ours / due for ours, due in each if ours is not None and due])

    return compute


def _of_table_1(fabric: str, figure: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(fabric=fabric, vlan_assignment="tree")
        return values(rows, lambda row: float(row[figure]), test)

    return compute


def _fullest(fabric: str, pattern: str) -> Compute:
    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(fabric=fabric, pattern=pattern, **OPEN_LOOP)
        return values(rows, lambda row: float(row["max_channel_load"]), test)

    return compute


def _over_the_tree(patterns: tuple[str, ...]) -> Compute:
    """Return the ratio of bandwidth on looped topologies to that on the M-tree, over patterns."""

    def compute(rows: Sequence[Row]) -> Spread | None:
        test = where(protocol="udp", pattern=patterns, **OPEN_LOOP)
        here = [row for row in rows if test(row)]
        free = ("fabric", "engine", "vcs", "routes")
        found = {
            fabric: ratios(here, "mean_mbps", _usual(fabric), _usual("mtree,4,4"), free)
            for fabric in LOOPED
        }
        return typical({(name, *key): v for name, of in found.items() for key, v in of.items()})

    return compute


def _usual(fabric: str) -> Test:
    """Return a test for rows of a fabric with the routes that the paper uses on it."""
    return where(fabric=fabric, engine=USUAL_ENGINE[fabric.partition(",")[0]], select="spread")


USUAL_ENGINE = {"mesh": "dor", "torus": "dor", "mtree": "updown", "flat": "updown"}
USUAL_ENGINE |= {"fattree": "fattree", "clos": "updown"}
OPEN_LOOP: dict[str, object] = {"part": "open-loop", "rate_mbps": 1000.0, "delay_us": 1.0}
"""Our runs of the traffic of section 5.2, on links of the paper's rate."""
LINEAR_WHY = (
    "1 means that a switch that stores and forwards adds exactly one transmission time and one "
    "link delay. Paper 004 prints no slope; those of paper 000 are compared on its page."
)
TAG_WHY = "A tag takes 4 bytes on each link between switches."
LOOPED = tuple(name for name in TABLE_1 if not name.startswith(("mtree", "flat")))

DRAWN = {"flat": "flat,16", "mesh 4x2": "mesh,4,2,hosts=2", "torus 4x2": "torus,4,2,hosts=2"}
DRAWN |= {"Myrinet-Clos": "clos,4,hosts=2", "M-tree": "mtree,4,4", "mesh 4x4": "mesh,4,4"}
DRAWN |= {"torus 4x4": "torus,4,4", "fat-tree": "fattree,2,4,2"}
"""The bars of figure 10, and our fabrics."""
CP_OF_MESH = ("mesh 4x4", "max_channel_load")
"""Figure 6 shows the paths that are counted by this figure of table 1."""
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
TOPOLOGIES = [
    Claim(
        "004",
        f"Table 1, {name}" + (", figure 6" if (name, figure) == CP_OF_MESH else ""),
        words,
        theirs,
        "paths",
        _of_table_1(spec, figure),
        "Ours are computed from the rules. The paper's loads of the two 4x2 grids are exchanged. "
        "On the 4x2 torus, every routing has paths through four switches (two steps in one "
        "dimension and one in the other). The paper's four VLANs of the torus contain rings, in "
        "which ordinary switches flood for ever; loop-free VLANs need 16. The paper's 12 for the "
        "Clos excludes the pairs at the ends of the link itself (see [table-1.md](../table-1.md)).",
        2 if figure == "mean_switches" else 0,
        (ANALYSIS,),
    )
    for name, (spec, printed) in PRINTED.items()
    for (figure, words), theirs in zip(FIGURES.items(), printed, strict=True)
]
TRAFFIC = [
    Claim(
        "004",
        "Figure 11, mesh 4x4, bit-reversal",
        "Most paths on a channel",
        3,
        "traffic",
        _fullest("mesh,4,4", "bit-reversal"),
        "At most three paths share a channel, in the paper and here.",
        0,
    ),
    *(
        Claim(
            "004",
            f"Figure 10, {pattern}, UDP",
            "Bandwidth on looped topologies over that on the M-tree",
            "higher",
            "traffic",
            _over_the_tree((pattern,)),
            "A value above 1 means that loops increase the bandwidth here too.",
        )
        for pattern in ("bit-reversal", "transpose")
    ),
    *(
        Claim(
            "004",
            f"Figure 10, {pattern}, UDP",
            f"Mean bandwidth of 16 hosts as a share of the line rate, {name}",
            533.6 / LINE_MBPS_004 if (name, pattern) == ("mesh 4x4", "bit-reversal") else drawn,
            "traffic",
            _mean_of_line(spec, pattern),
            "A host that would send to itself counts as a full line. From the paper's prediction "
            "of 521 Mbit/s for bit-reversal on the mesh we infer that it counts in the same way.",
            3,
            mark=INFERRED,
        )
        for pattern in ("bit-reversal", "transpose")
        for name, spec in DRAWN.items()
        for drawn in ("only drawn",)
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
        mark=INFERRED,
    ),
    Claim(
        "004",
        "Section 5.2, all topologies of table 1, UDP",
        "Measured bandwidth over that predicted from shared channels",
        "nearly agree",
        "traffic",
        _of_prediction(TABLE_1, ("bit-reversal", "transpose")),
        "Queues are FIFO: on the M-tree, flows wait behind others that are blocked downstream, "
        "and get less than their fair shares.",
        3,
    ),
]
TAGS = [
    Claim(
        "004",
        "Figure 9",
        "Time of a message with switch tagging over time without VLANs",
        "no difference",
        "hops",
        _tag_cost("messages", "p50_us"),
        TAG_WHY,
        3,
        (EMULATION,),
    ),
    Claim(
        "004",
        "Figure 9",
        "Bandwidth both ways with switch tagging over that without VLANs",
        "no difference",
        "hops",
        _tag_cost("both-ways", "bandwidth_mbps"),
        TAG_WHY,
        3,
        (EMULATION,),
    ),
    Claim(
        "004",
        "Figure 9",
        "Message time added by a switch, over that of line and delay",
        "nearly linear",
        "hops",
        _linear("messages"),
        LINEAR_WHY,
        3,
    ),
    Claim(
        "004",
        "Figure 9 (and 000, figure 10)",
        "Time added by a switch to a barrier of two hosts, over that of line and delay",
        "linear",
        "hops",
        _linear("barrier"),
        LINEAR_WHY,
        3,
    ),
]
