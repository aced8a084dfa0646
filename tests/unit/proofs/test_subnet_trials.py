"""What the verifier accepts of InfiniBand subnets, and of damaged tables, is right."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.support.proofs import BUILT
from tests.support.subnet_trials import (
    first_with,
    trial_of_cyclic_subnet,
    trial_of_lids,
    trial_of_subnet,
)

pytestmark = BUILT


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, str]]:
    rng = random.Random(7)  # noqa: S311 - it only has to be repeatable
    return [first_with("safe", tmp_path_factory.mktemp("safe"), rng) for _ in range(6)]


@pytest.mark.seeds(100, gate=12)
def test_verdicts_on_subnets_are_accepted_or_replayed(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    claim, _, _ = trial_of_subnet(tmp_path, rng)
    assert claim in ("safe", "cycle") or claim.startswith("not written: ")


@pytest.mark.seeds(300, gate=40)
def test_damaged_tables_are_accepted_only_if_they_are_right(
    tmp_path: Path, safe: list[tuple[Path, str]], seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    folder, proof = rng.choice(safe)
    trial_of_lids(folder, proof, tmp_path / "damaged", rng)


def test_some_damaged_tables_are_right_and_many_are_not(
    tmp_path: Path, safe: list[tuple[Path, str]]
) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(70):
        rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
        outcomes[trial_of_lids(*rng.choice(safe), tmp_path / "damaged", rng)] += 1
    assert outcomes["refused, and wrong"] > 10
    assert outcomes["accepted with the old evidence"] > 1


@pytest.mark.seeds(40, gate=4)
def test_no_proof_is_accepted_for_tables_that_can_deadlock(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    assert trial_of_cyclic_subnet(*first_with("cycle", tmp_path, rng), rng) > 4
