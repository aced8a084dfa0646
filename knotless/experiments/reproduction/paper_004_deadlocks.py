"""Otsuka et al., switch-tagged VLAN routing: tables 3 and 4, routes that deadlock under PAUSE."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from knotless.base.flow_control import FlowControl
from knotless.experiments.framework.experiment import EMULATION, SIMULATION
from knotless.experiments.reproduction.claim import Claim, Compute
from knotless.experiments.reproduction.figures import ratios, typical, values, where
from knotless.experiments.reproduction.rows import Row
from knotless.results.spread import Spread

PAPERS_LINKS_MBPS = 1000.0
SLOW_MBPS = (5.0, 10.0)
"""The rates of links on which UDP is simulated once more."""


def _frozen(
    pattern: str,
    protocol: str,
    control: str,
    tagging: str,
    rate_mbps: float | tuple[float, ...] = PAPERS_LINKS_MBPS,
    watchdog_us: float | None = None,
) -> Compute:
    """Return the bandwidth on cyclic routes over that on acyclic ones."""
    case: dict[str, object] = {"pattern": pattern, "protocol": protocol, "tagging": tagging}
    case |= {"flow_control": control, "rate_mbps": rate_mbps, "watchdog_us": watchdog_us}

    def compute(rows: Sequence[Row]) -> Spread | None:
        here = where(**case)
        means = [{**row, "mean": fmean(row["flows_mbps"])} for row in rows if here(row)]
        cyclic, acyclic = where(routes="cyclic"), where(routes="acyclic")
        return typical(ratios(means, "mean", cyclic, acyclic, ("routes",)))

    return compute


def _paused(
    pattern: str, tagging: str, rate_mbps: float | tuple[float, ...] = PAPERS_LINKS_MBPS
) -> Compute:
    case = {"pattern": pattern, "protocol": "udp", "routes": "acyclic", "tagging": tagging}

    def compute(rows: Sequence[Row]) -> Spread | None:
        here = where(**case, rate_mbps=rate_mbps, watchdog_us=None)
        means = [{**row, "mean": fmean(row["flows_mbps"])} for row in rows if here(row)]
        every, none = where(flow_control="pause"), where(flow_control="none")
        return typical(ratios(means, "mean", every, none, ("flow_control",)))

    return compute


def _missing(pattern: str, routes: str, control: str, tagging: str) -> Compute:
    """Return the share of sent frames that never arrived, in per cent."""
    case = {"pattern": pattern, "protocol": "udp", "flow_control": control, "tagging": tagging}

    def compute(rows: Sequence[Row]) -> Spread | None:
        here = where(**case, routes=routes, rate_mbps=PAPERS_LINKS_MBPS, watchdog_us=None)
        return values(
            [row for row in rows if row["sent_frames"]],
            lambda row: 100 * (1 - row["delivered_frames"] / row["sent_frames"]),
            here,
        )

    return compute


FROZEN_WHY = (
    "The paper only draws (c) to (f); ours are our own fabrics. Where the paper's cyclic routes "
    "nearly stop, ours stop permanently at the deadlock, and the measurement starts after that. "
    "The paper's (c) did not deadlock with PAUSE on all links; ours does. In our (e), only the "
    "flows that wait for the deadlocked channels stop; the others continue with the remaining "
    "bandwidth. The tests of explanations below show what the rate of the links and a watchdog "
    "in the switches change."
)
SCAN_WHY = (
    "The scan shows 209 Mbit/s, beside 0.3 in the same cell of table 3, and the text says that it "
    "is nearly zero in both tables. The words of the text are compared."
)
RATE_WHY = (
    "The same transfers on slow links, and on links of the paper's rate and 1 us: where both "
    "figures are the same, the rate of the links explains no difference."
)
WATCHDOG_WHY = (
    "Switches that empty a queue after it was paused for the stated time, on links of the paper's "
    "rate. The paper does not say whether its switches do; its flows also continue slowly."
)
LOSS_WHY = (
    "Lost are the frames that were sent and never arrived: those dropped and, in a deadlock, those "
    "that wait for ever. A deadlocked simulation sends nothing in its window, so it has no share."
)
LOSSY_WHY = (
    "Without flow control between switches there is no deadlock. Queues and timing determine "
    "which flow loses more."
)
TCP_WHY = (
    "Ours is TCP Reno. (BBR, the default of the machine, keeps buffers empty and never "
    "deadlocked.) With PAUSE between switches, Reno fills the links and deadlocks permanently, as "
    "UDP does; the paper's TCP continues slowly, as its UDP does. In our (e), the flow that "
    "crosses no deadlocked channel continues. Without PAUSE between switches, Reno reduces its "
    "rate when frames are lost, and the fairness varies randomly in so short a window."
)


def _why(protocol: str, control: str) -> str:
    if protocol == "tcp":
        return TCP_WHY
    return FROZEN_WHY if FlowControl(control).switch_links.pauses else LOSSY_WHY


SCANNED_MBPS = 209.0
"""The scan of table 4, (a), UDP, PAUSE on all links; contradicted by the text."""
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
        ("ring-4", "udp"): ((345.2, SCANNED_MBPS, 477.2, 0.3), (403.3, 317.7, 506.4, 230.1)),
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
LOSSES: dict[str, dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "host": {
        "ring-4": ((62, 28, 0.06, 99.9), (59, 0.3, 7, 76)),
        "ring-6": ((62, 0.04, 0.2, 99.9), (54, 0.06, 7, 74)),
        "mesh-3x3": ((63, 9, 0.3, 99.9), (62, 0.06, 4, 89)),
    },
    "switch": {
        "ring-4": ((64, 23, 0.07, 99.9), (58, 0.02, 7, 76)),
        "ring-6": ((65, 0.09, 0.1, 99.9), (64, 0.02, 0.04, 74)),
        "mesh-3x3": ((64, 11, 1, 98), (60, 0, 3, 89)),
    },
}
"""Tables 3 and 4, lost frames in per cent with UDP: cyclic routes, then acyclic."""


def _table(tagging: str) -> str:
    return f"Table {4 if tagging == 'switch' else 3}"


def _bandwidth(
    tagging: str, pattern: str, protocol: str, column: int, theirs: tuple[float, float]
) -> Claim:
    cyclic, acyclic = theirs
    unreadable, control = cyclic == SCANNED_MBPS, CONTROLS[column]
    return Claim(
        "004",
        f"{_table(tagging)}, {PAIRS[pattern]}, {protocol.upper()}",
        f"Cyclic over acyclic routes, {WORDS[control]}",
        "nearly zero" if unreadable else cyclic / acyclic,
        "deadlock",
        _frozen(pattern, protocol, control, tagging),
        SCAN_WHY if unreadable else _why(protocol, control),
        3,
        (EMULATION,) if protocol == "tcp" else (EMULATION, SIMULATION),
    )


def bandwidths(tagging: str) -> list[Claim]:
    """Return the bandwidths of table 3 (tagged by hosts) or 4 (by switches) as ratios."""
    found = [
        _bandwidth(tagging, pattern, protocol, column, theirs)
        for (pattern, protocol), printed in TABLES[tagging].items()
        for column, theirs in enumerate(zip(*printed, strict=True))
    ]
    return found + [
        Claim(
            "004",
            f"{_table(tagging)}, {PAIRS[pattern][-3:]}, UDP",
            "PAUSE on all links over no flow control, acyclic routes",
            acyclic[1] / acyclic[0],
            "deadlock",
            _paused(pattern, tagging),
            "Our lossless lines stay full even while other flows wait; the paper does not "
            "describe how its switches behave. On (d), paused senders synchronise in some runs: "
            "two flows then get about half of their share.",
            3,
        )
        for (pattern, protocol), (_, acyclic) in TABLES[tagging].items()
        if protocol == "udp"
    ]


def losses(tagging: str) -> list[Claim]:
    """Return the lost frames of table 3 or 4."""
    return [
        Claim(
            "004",
            f"{_table(tagging)}, ({letter}), UDP",
            f"Lost frames, {WORDS[control]}, %",
            theirs,
            "deadlock",
            _missing(pattern, routes, control, tagging),
            LOSS_WHY,
            1,
            # A ring that stopped sends nothing in the window of the simulation.
            (EMULATION,)
            if (routes, control) == ("cyclic", "pause") and pattern.startswith("ring")
            else (EMULATION, SIMULATION),
        )
        for pattern, printed in LOSSES[tagging].items()
        for routes, letter, shares in zip(
            ("cyclic", "acyclic"), PAIRS[pattern][1::9], printed, strict=True
        )
        for control, theirs in zip(CONTROLS, shares, strict=True)
    ]


RATES = (
    ("5 or 10 Mbit/s", SLOW_MBPS, (SIMULATION,)),
    ("1 Gbit/s", PAPERS_LINKS_MBPS, (EMULATION, SIMULATION)),
)
WATCHDOGS_US = (1000.0, 100_000.0)


def _theirs(pattern: str, column: int) -> float | str:
    """Return the paper's ratio of cyclic over acyclic routes, tagged by switches, for UDP."""
    cyclic, acyclic = TABLES["switch"][pattern, "udp"]
    return "nearly zero" if cyclic[column] == SCANNED_MBPS else cyclic[column] / acyclic[column]


TESTS = [
    Claim(
        "004",
        f"Test: rate of the links, {PAIRS[pattern]}, UDP",
        f"Cyclic over acyclic routes, {WORDS[control]}, links of {words}",
        _theirs(pattern, column),
        "deadlock",
        _frozen(pattern, "udp", control, "switch", rate_mbps),
        RATE_WHY,
        3,
        places,
    )
    for pattern in PAIRS
    for column, control in enumerate(CONTROLS)
    for words, rate_mbps, places in RATES
] + [
    Claim(
        "004",
        f"Test: a watchdog, {PAIRS[pattern]}, UDP",
        f"Cyclic over acyclic routes, {WORDS[control]}, watchdog of {watchdog_us / 1000:g} ms",
        _theirs(pattern, column),
        "deadlock",
        _frozen(pattern, "udp", control, "switch", PAPERS_LINKS_MBPS, watchdog_us),
        WATCHDOG_WHY,
        3,
        (SIMULATION,),
    )
    for pattern in PAIRS
    for column, control in enumerate(CONTROLS)
    if FlowControl(control).switch_links.pauses
    for watchdog_us in WATCHDOGS_US
]
