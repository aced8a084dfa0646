"""Failures in a row: after and amid repairs and returns, all that is connected is served."""

from __future__ import annotations

import pytest

from tests.seeded.aimed import in_a_row
from tests.seeded.run import run

IN_STAGES = pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="each path that is left to a host closes a cycle with paths that older packets take",
)


@pytest.mark.thin(1)
@pytest.mark.parametrize(
    "seed",
    [1, 2, 3, 4, pytest.param(5, marks=[IN_STAGES, pytest.mark.deep]), 6, 7],
)
def test_every_failure_is_served_as_soon_as_a_first_one(seed: int) -> None:
    """That is what the invariant *late* says, with the limit of the kind *cut*."""
    setting, faults = in_a_row(seed)
    result = run(setting, faults, seconds=60)
    assert not result.violations, "\n".join(map(str, result.violations))
