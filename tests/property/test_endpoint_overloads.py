"""Verdicts with end points, against seeded overloads in simulation."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from knotless.verification.endpoint_waits import EndpointWaits
from tests.support.endpoint_overloads import Answering, random_answering
from tests.support.random_fabrics import seeded


def freezes(answering: Answering, overloads: int) -> bool:
    """Return whether one of several overloads freezes; each knot is a cycle of the waits."""
    waits = EndpointWaits(answering.checked.state, answering.model, answering.control)
    steps = {(waits.name_of(a), waits.name_of(b)) for a, b in waits.edges.tolist()}
    for seed in range(overloads):
        if knot := answering.knot(seed):
            assert {*pairwise([*knot, knot[0]])} <= steps, (answering.values, knot)
            return True
    return False


@pytest.mark.parametrize(
    ("fabrics", "overloads", "freeze", "by_reserve", "freeze_with_less"),
    [(30, 3, 5, 5, 0), pytest.param(200, 10, 50, 50, 10, marks=pytest.mark.long)],
)
def test_nothing_called_safe_freezes(
    fabrics: int, overloads: int, freeze: int, by_reserve: int, freeze_with_less: int
) -> None:
    """And many of the others do, also of those whose reserve is smaller by one for each sender."""
    counts = Counter[str]()
    for _, rng in seeded(range(fabrics)):
        answering = random_answering(rng)
        verdict = answering.verdict
        frozen = freezes(answering, overloads)
        assert not (verdict.safe and frozen), (answering.plan.fabric, answering.values)
        assert verdict.safe or verdict.through_hosts
        counts["freeze"] += frozen
        if verdict.safe and answering.reserve and not answering.with_reserve(0).verdict.safe:
            counts["by reserve"] += 1
            less = answering.with_reserve(answering.reserve - 1)
            assert not less.verdict.safe
            counts["freeze with less"] += freezes(less, overloads)
    assert counts["freeze"] >= freeze, counts
    assert counts["by reserve"] >= by_reserve, counts
    assert counts["freeze with less"] >= freeze_with_less, counts
