"""The verifier's own parser reads the same fabric and rules as the product's."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.damage import damaged, damaged_text
from tests.support.proof_trials import PLANS, trial_of_files
from tests.support.proofs import BUILT, files_of_plan

pytestmark = BUILT


@pytest.fixture(scope="module")
def plans() -> list[dict[str, str]]:
    return [files_of_plan(spec, **choices) for spec, choices in PLANS]


@pytest.mark.parametrize(("spec", "choices"), PLANS)
def test_both_read_the_same(tmp_path: Path, spec: str, choices: dict[str, object]) -> None:
    files = files_of_plan(spec, **choices)
    rng = random.Random(spec)  # noqa: S311 - it only has to be repeatable
    assert trial_of_files(files, tmp_path / "rules") == "read by both, with one meaning"
    for _ in range(20):
        trial_of_files(damaged(files, rng)[1], tmp_path / "rules")


@pytest.mark.seeds(1000, gate=60)
def test_damaged_files_have_one_meaning(
    tmp_path: Path, plans: list[dict[str, str]], seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    trial_of_files(damaged_text(rng.choice(plans), rng), tmp_path / "rules")
