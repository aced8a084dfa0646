"""Changes between any two plans of a fabric: of engines, VLANs, tagging, groups, after failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from knotless.base.errors import KnotlessError
from tests.prove_changes import prove_pairs, table_of
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


def test_a_series_of_pairs_that_was_stopped_goes_on(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    for pairs, into, jobs in ((6, whole, 1), (2, parts, 1), (6, parts, 2)):
        assert prove_pairs(pairs, 7, into, jobs) == 0
    series, other = (json.loads(file.read_text()) for file in (whole, parts))
    assert (series["rows"], series["next"]) == (other["rows"], other["next"])
    assert sum(row["seeds"] for row in series["rows"]) == series["next"] - 7
    assert " 6 drew a pair" in table_of(series)[0]
    with pytest.raises(KnotlessError, match="other seeds"):
        prove_pairs(6, 8, whole)
