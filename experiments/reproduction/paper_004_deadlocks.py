"""Otsuka et al., switch-tagged VLAN routing: tables 3 and 4, routes that deadlock under PAUSE."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from experiments.framework.experiment import EMULATION, SIMULATION
from experiments.reproduction.claim import Claim, Compute
from experiments.reproduction.figures import Row, ratios, typical, where
from runs.spread import Spread


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


FROZEN_WHY = (
    "The paper only draws (c) to (f); ours are our own fabrics. Where the paper's cyclic routes "
    "nearly stop, ours stop permanently at the deadlock, and the measurement starts after that. A "
    "real switch drops frames that wait too long, so its flows continue slowly. The paper's (c) "
    "did not deadlock with PAUSE on all links; ours does. In our (e), only the flows that wait "
    "for the deadlocked channels stop; the others continue with the remaining bandwidth. (In table "
    "4, the scan shows 209 Mbit/s for (a), UDP, all links. The text says nearly zero, which is "
    "used here.)"
)
LOSSY_WHY = (
    "Without flow control between switches there is no deadlock. Queues and timing determine "
    "which flow loses more."
)
TCP_WHY = (
    "Ours is TCP Reno. (BBR, the default of the machine, keeps buffers empty and never "
    "deadlocked.) With PAUSE between switches, Reno fills the links and deadlocks permanently, as "
    "UDP does; the paper's TCP continues slowly, as its UDP does. (On (e) with PAUSE between "
    "switches only, the deadlock takes longer to form than most of these windows last.) Without "
    "PAUSE between switches, Reno reduces its rate when frames are lost, and the fairness varies "
    "randomly in so short a window."
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
"""Tables 3 and 4, Mbit/s per path: cyclic routes, then acyclic, in the order of CONTROLS."""
WORDS = {"none": "no flow control", "pause": "PAUSE on all links", "host": "PAUSE on host links"}
WORDS |= {"switch": "PAUSE between switches"}
DEADLOCKS_004 = [
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
DEADLOCKS_004 += [
    Claim(
        "004",
        f"Table {4 if tagging == 'switch' else 3}, {PAIRS[pattern][-3:]}, UDP",
        "PAUSE on all links over no flow control, acyclic routes",
        acyclic[1] / acyclic[0],
        "deadlock",
        _paused(pattern, tagging),
        "Our lossless lines stay full even while other flows wait; the paper does not describe "
        "how its switches behave. On (d), paused senders synchronise, and two flows then get "
        "about half of their share, in most emulated runs and, in simulation, for most small "
        "differences in link length.",
        3,
    )
    for tagging in ("switch", "host")
    for (pattern, protocol), (_, acyclic) in TABLES[tagging].items()
    if protocol == "udp"
]
