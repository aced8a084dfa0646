"""Figures of ours that were expected before they were measured, and whether they came out so."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.results.spread import Spread
from knotless.results.stored import Stored
from knotless_experiments.reproduction.claim import Claim
from knotless_experiments.reproduction.claims import claims
from knotless_experiments.reproduction.headlines import judged, measured

AS_EXPECTED, REFUTED, NOT_RUN = "as expected", "refuted", "not run yet"


def expected() -> list[Claim]:
    """Return the claims with an expectation, in order."""
    return [claim for claim in claims() if claim.expectation is not None]


def outcome(claim: Claim, spread: Spread | None) -> str:
    """Tell whether the mean of an expected figure is as expected."""
    if claim.expectation is None or spread is None:
        return NOT_RUN
    return AS_EXPECTED if claim.expectation.agrees(spread.mean, spread.mean) else REFUTED


def lines(stored: Stored) -> Iterator[str]:
    """Yield the page of expectations, line by line."""
    here = [(claim, judged(measured(stored, claim))) for claim in expected()]
    met = sum(outcome(claim, spread) == AS_EXPECTED for claim, spread in here)
    run = sum(spread is not None for _, spread in here)
    yield "# Figures that were expected in advance"
    yield ""
    yield (
        "[Overview](../reproduction.md). A row is here if what we expected of it was committed "
        "before any run from which its figure is computed; a test compares the two commits. All "
        "other figures on these pages were known when their claims were written. Rows stay if "
        f"they are refuted. Of {len(here)} rows {run} were run, and {met} are as expected."
    )
    reasons: dict[str, list[tuple[Claim, Spread | None]]] = {}
    for claim, spread in here:
        if claim.expectation is not None:
            words = (
                f"Because {claim.expectation.because}. Refuted by {claim.expectation.refuted_by}."
            )
            reasons.setdefault(words, []).append((claim, spread))
    for words, of_reason in reasons.items():
        yield ""
        yield words
        yield ""
        yield "| paper | where | what | expected | ours | |"
        yield "|---|---|---|---|---|---|"
        for claim, spread in of_reason:
            yield _row(claim, spread)


def _row(claim: Claim, spread: Spread | None) -> str:
    limits = "" if claim.expectation is None else claim.expectation.words
    ours = "-" if spread is None else f"{spread.mean:.{claim.digits}f}"
    cells = [f"[{claim.paper}]({claim.paper}.md)", claim.place, claim.what, limits, ours]
    return f"| {' | '.join(cells)} | **{outcome(claim, spread)}** |"
