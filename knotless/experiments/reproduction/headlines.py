"""The headline claims, and the rule by which they are judged from stored runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from knotless.experiments.framework.experiment import ANALYSIS, EMULATION, SIMULATION
from knotless.experiments.reproduction.claim import Claim, Headline
from knotless.experiments.reproduction.claims import claims
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


def claim_of(headline: Headline) -> Claim | None:
    """Return the claim of a headline; None for one that is not attempted."""
    if not headline.place:
        return None
    (named,) = [
        claim
        for claim in claims()
        if (claim.paper, claim.place) == (headline.paper, headline.place)
        and headline.what in claim.what
    ]
    return named


def measured(stored: Stored, claim: Claim, *, valid: bool = True) -> Mapping[str, Spread | None]:
    """Return our figures of a claim by place, in the order of PLACES."""
    return {
        on: claim.compute(rows(stored, claim.experiment, on, valid=valid))
        for on in PLACES
        if on in claim.places
    }


def judged(spreads: Mapping[str, Spread | None]) -> tuple[str, Spread] | None:
    """Return the place and the figure that is judged: the first that there is."""
    return next(((on, spread) for on, spread in spreads.items() if spread is not None), None)


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
