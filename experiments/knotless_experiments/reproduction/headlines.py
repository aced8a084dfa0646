"""The claims of the headlines, and our figures of claims from stored runs."""

from __future__ import annotations

from collections.abc import Mapping

from knotless.results.spread import Spread
from knotless.results.stored import Stored
from knotless_experiments.framework.experiment import ANALYSIS, EMULATION, SIMULATION
from knotless_experiments.reproduction.claim import Claim, Headline
from knotless_experiments.reproduction.claims import claims
from knotless_experiments.reproduction.rows import rows

PLACES = (EMULATION, SIMULATION, ANALYSIS)


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


def judged(spreads: Mapping[str, Spread | None]) -> Spread | None:
    """Return the figure that is judged: the first that there is."""
    return next((spread for spread in spreads.values() if spread is not None), None)
