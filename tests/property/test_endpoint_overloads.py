"""Verdicts with end points, against seeded overloads in simulation."""

from __future__ import annotations

import pytest

from tests.support.endpoint_overloads import overloads


@pytest.mark.parametrize(
    ("fabrics", "each", "freeze", "by_reserve", "freeze_with_less"),
    [(30, 3, 5, 5, 0), pytest.param(200, 10, 50, 50, 10, marks=pytest.mark.long)],
)
def test_nothing_called_safe_freezes(
    fabrics: int, each: int, freeze: int, by_reserve: int, freeze_with_less: int
) -> None:
    """And many of the others do, also of those whose reserve is smaller by one for each sender."""
    counts = overloads(fabrics, 0, each)
    assert counts["safe"] + counts["unsafe"] == fabrics
    assert counts["unsafe, froze"] >= freeze, counts
    assert counts["by reserve"] >= by_reserve, counts
    assert counts["less, froze"] >= freeze_with_less, counts
