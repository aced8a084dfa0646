"""The rule by which our figures are judged."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from knotless.results.spread import Spread
from knotless_experiments.reproduction.claim import FITTED, Claim

REPRODUCED, DIRECTION = "reproduced", "direction only"
NOT_REPRODUCED, NOT_ATTEMPTED = "not reproduced", "not attempted"
VERDICTS = (REPRODUCED, DIRECTION, NOT_REPRODUCED, FITTED)
"""The verdicts on figures that were measured."""
DATE = "2026-11-30"
"""The day since which the rule holds."""
SHARE = 0.25
"""An effect is reproduced if it differs from the paper's by at most this part of it."""
NO_EFFECT = 0.01
"""A ratio of a paper that is nearer to 1 shows no effect."""
MOST = 2.0
"""From this part of the paper's effect on, no effect at all would be as near to the paper's."""
SAME = 0.02
"""A ratio of ours that is nearer to 1 shows no effect."""
NEAR = 0.1
"""A figure that is no ratio is reproduced if it differs from the paper's by at most this part."""

RULE = (
    f"The rule, since {DATE}: a ratio x is judged by its effect against the paper's y, "
    "(1 - x) / (1 - y): 1 is the paper's effect, 0 none, and less than 0 the contrary. "
    f"*Reproduced*: the effect is within {1 - SHARE:g} to {1 + SHARE:g}. *Direction only*: it is "
    f"above 0 and below {MOST:g}, where it is nearer to the paper's than no effect would be, and x "
    f"differs from 1 by more than {SAME:g}. If y differs from 1 by less than "
    f"{NO_EFFECT:g}, the paper shows no effect, and x must differ by no more than {SAME:g}. "
    f"Figures that are no ratios must be within {NEAR:.0%} of the paper's, or half of its last "
    "digit. Where there are repeats, the whole 95 % interval of their mean (Student's t) must meet "
    "the rule. Claims in words are judged likewise, by limits that the papers' pages name. "
    "*Fitted* figures were chosen, and show nothing. The emulated figure is judged if there is "
    "one, else the simulated one, else that of path analysis."
)


@dataclass(frozen=True)
class Interval:
    """A figure with the ends of its 95 % interval, which are the figure if it has no repeats."""

    mean: float
    low: float
    high: float

    def within(self, low: float, high: float) -> bool:
        """Tell whether all of the interval is between two figures."""
        return low <= self.low and self.high <= high


def interval(spread: Spread) -> Interval:
    """Return the 95 % interval of a figure."""
    width = spread.half_width or 0.0
    return Interval(spread.mean, spread.mean - width, spread.mean + width)


def effect(claim: Claim, spread: Spread | None) -> Interval | None:
    """Return our effect as a part of the paper's, or None where no effect is compared.

    It is (1 - x) / (1 - y) for our ratio x and the paper's y.
    """
    if spread is None or not claim.effect or isinstance(claim.theirs, str):
        return None
    theirs = 1 - claim.theirs
    if abs(theirs) < NO_EFFECT:
        return None
    ours = interval(spread)
    ends = sorted(((1 - ours.low) / theirs, (1 - ours.high) / theirs))
    return Interval((1 - ours.mean) / theirs, *ends)


def verdict(claim: Claim, spread: Spread | None, *, most: float = MOST) -> str:
    """Judge a figure by :data:`RULE`; claims in words that have no rule get no verdict.

    Effects that are ``most`` times the paper's, or more, are others.
    """
    if spread is None:
        return NOT_ATTEMPTED
    if claim.mark == FITTED:
        return FITTED
    ours = interval(spread)
    if claim.agrees is not None:
        return REPRODUCED if claim.agrees(ours.low, ours.high) else NOT_REPRODUCED
    if isinstance(claim.theirs, str):
        return ""
    if not claim.effect:
        margin = max(NEAR * abs(claim.theirs), 0.5 * 10**-claim.digits)
        reproduced = ours.within(claim.theirs - margin, claim.theirs + margin)
        return REPRODUCED if reproduced else NOT_REPRODUCED
    part = effect(claim, spread)
    if part is None:
        return REPRODUCED if ours.within(1 - SAME, 1 + SAME) else NOT_REPRODUCED
    if part.within(1 - SHARE, 1 + SHARE):
        return REPRODUCED
    is_nearer = part.low > 0 and part.high < most
    return DIRECTION if is_nearer and abs(ours.mean - 1) > SAME else NOT_REPRODUCED


def verdict_before(claim: Claim, spread: Spread | None) -> str:
    """Judge a figure by the rule before :data:`DATE`, to say what has changed.

    However large an effect was, it had the paper's direction.
    """
    return verdict(claim, spread, most=inf)
