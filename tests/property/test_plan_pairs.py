"""Changes between any two plans of a fabric: of engines, VLANs, tagging, groups, after failures."""

from __future__ import annotations

import pytest

from tests.support.plan_pairs import prove, random_pair
from tests.support.random_fabrics import seeded


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(6))
def test_every_step_between_two_plans_is_proven_and_the_last_has_the_new_rules(block: int) -> None:
    changes = []
    for _, rng in seeded(range(block * 40, block * 40 + 40)):
        pair = random_pair(rng)
        if pair is not None:
            changes.append(prove(pair))
    assert sum(change is not None for change in changes) > 4
