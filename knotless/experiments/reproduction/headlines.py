"""The headline claims, and the rule by which they are judged from stored runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from knotless.experiments.framework.experiment import ANALYSIS, EMULATION, SIMULATION
from knotless.experiments.reproduction.claim import Claim
from knotless.experiments.reproduction.claims import CLAIMS
from knotless.experiments.reproduction.rows import rows
from knotless.results.spread import Spread
from knotless.results.stored import Stored

REPRODUCED, DIRECTION = "reproduced", "direction only"
NOT_REPRODUCED, NOT_ATTEMPTED = "not reproduced", "not attempted"
PLACES = (EMULATION, SIMULATION, ANALYSIS)
NEAR = 0.1
"""A figure is reproduced if it differs from the paper's by at most this part."""
SAME = 0.02
"""A ratio has a direction if it differs from 1 by more than this."""

RULE = (
    f"*Reproduced*: ours is within {NEAR:.0%} of the paper's figure (and on the same side of 1 if "
    f"the paper's ratio differs from 1 by more than {NEAR / 2:.0%}), or agrees with its words. "
    "*Direction only*: a ratio is on the same side of 1, but differs more. The emulated figure is "
    "judged if there is one, else the simulated one, else that of path analysis."
)


def near_one(ours: float) -> bool:
    """Tell whether a ratio agrees with 'no difference'."""
    return abs(ours - 1) <= 0.05


def nearly_zero(ours: float) -> bool:
    """Tell whether a ratio agrees with 'nearly zero'."""
    return ours <= 0.01


@dataclass(frozen=True)
class Headline:
    """One line of the first page: a claim by its place and a part of its words.

    ``agrees`` judges a claim that the paper makes in words.
    """

    paper: str
    words: str
    place: str
    what: str
    agrees: Callable[[float], bool] | None = None


HEADLINES: Sequence[Headline] = (
    Headline(
        "000",
        "DL has up to 51 % more bandwidth than up\\*/down\\*",
        "Figures 4 to 7, text",
        "Largest",
    ),
    Headline(
        "000",
        "DL and SBP have almost the same bandwidth",
        "Figures 4 to 7, text",
        "DL over SBP",
        near_one,
    ),
    Headline(
        "000", "Path selection changes the bandwidth by up to 15 %", "Figure 9, text", "Largest"
    ),
    Headline(
        "000",
        "DL makes barriers of 64 hosts 5 % faster than up\\*/down\\*",
        "Table 3, A",
        "DL, 2 VCs over up\\*/down\\* with 1 VC",
    ),
    Headline(
        "000", "DL makes IS.S.32 4 % faster than up\\*/down\\*", "Table 4, A", "IS.S.32: time of DL"
    ),
    Headline(
        "001",
        "A 2-way tree with multicast is slower than shuffle exchange by 17 %",
        "Barrier, one switch, ratio",
        "2-way",
    ),
    Headline(
        "001",
        "Two networks make a concurrent barrier 18 % faster",
        "Barrier of 16 hosts, two networks",
        "Concurrent",
    ),
    Headline(
        "002",
        "The proposed schedule is 2.6 times as fast as shift (S1)",
        "Figures 19 to 21, S1",
        "S1",
    ),
    Headline(
        "002",
        "Shift on 5,526 hosts reaches 0.108 of the throughput",
        "Figure 18, L6",
        "shift, 100 %",
    ),
    Headline("003", "A message of 8 bytes takes 9.1 us", "Figure 7, section 4.1", "One-way"),
    Headline(
        "004",
        "Cyclic routes stop under PAUSE on all links (a)",
        "Table 4, (a) over (b), UDP",
        "PAUSE on all",
        nearly_zero,
    ),
    Headline(
        "004",
        "Measured bandwidth is that predicted from shared channels",
        "Section 5.2, mesh 4x4, bit-reversal, UDP",
        "Measured",
    ),
    Headline(
        "004",
        "Looped fabrics run NAS programs at over 0.9 of the speed of one switch",
        "Figure 12",
        "looped",
        lambda ours: ours > 0.9,
    ),
    Headline("004", "Programs of class B (NAS) on looped fabrics", "", ""),
)


def claim_of(headline: Headline) -> Claim | None:
    """Return the claim of a headline; None for one that is not attempted."""
    if not headline.place:
        return None
    (found,) = [
        claim
        for claim in CLAIMS
        if (claim.paper, claim.place) == (headline.paper, headline.place)
        and headline.what in claim.what
    ]
    return found


def measured(stored: Stored, claim: Claim, *, valid: bool = True) -> Mapping[str, Spread | None]:
    """Return our figures of a claim by place, in the order of PLACES."""
    return {
        on: claim.compute(rows(stored, claim.experiment, on, valid=valid))
        for on in PLACES
        if on in claim.places
    }


def judged(found: Mapping[str, Spread | None]) -> tuple[str, Spread] | None:
    """Return the place and the figure that is judged: the first that there is."""
    return next(((on, spread) for on, spread in found.items() if spread is not None), None)


def verdict(theirs: float | str, ours: float | None, agrees: Callable[[float], bool] | None) -> str:
    """Judge a figure by :data:`RULE`."""
    if ours is None:
        return NOT_ATTEMPTED
    if agrees is not None:
        return REPRODUCED if agrees(ours) else NOT_REPRODUCED
    assert not isinstance(theirs, str)  # noqa: S101 - words are judged by ``agrees``
    same_side = (ours - 1) * (theirs - 1) >= 0
    if abs(ours / theirs - 1) <= NEAR and (same_side or abs(theirs - 1) <= NEAR / 2):
        return REPRODUCED
    same_side = same_side and abs(ours - 1) > SAME
    return DIRECTION if same_side and max(ours, theirs) < 5 else NOT_REPRODUCED
