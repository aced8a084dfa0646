"""What the verifier accepts of fabrics of routers, and of damaged routes, is right."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.support.proofs import BUILT
from tests.support.route_trials import (
    first_with,
    trial_of_cyclic_routes,
    trial_of_fabric,
    trial_of_routes,
)

pytestmark = BUILT


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, str]]:
    rng = random.Random(7)  # noqa: S311 - it only has to be repeatable
    scratch = tmp_path_factory.mktemp("safe")
    places = [scratch / str(number) for number in range(6)]
    for place in places:
        place.mkdir()
    return [first_with("safe", place, rng) for place in places]


@pytest.mark.seeds(100, gate=12)
def test_verdicts_on_fabrics_of_routers_are_accepted_or_replayed(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    claim, _, _ = trial_of_fabric(tmp_path, rng)
    assert claim in ("safe", "cycle") or claim.startswith("not written: such a proof says that all")


@pytest.mark.seeds(300, gate=40)
def test_damaged_routes_are_accepted_only_if_they_are_right(
    tmp_path: Path, safe: list[tuple[Path, str]], seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    folder, proof = rng.choice(safe)
    trial_of_routes(folder, proof, tmp_path / "damaged", rng)


def test_some_damaged_routes_are_right_and_many_are_not(
    tmp_path: Path, safe: list[tuple[Path, str]]
) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(70):
        rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
        outcomes[trial_of_routes(*rng.choice(safe), tmp_path / "damaged", rng)] += 1
    assert outcomes["refused, and wrong"] > 10
    assert outcomes["accepted with the old evidence"] > 1


@pytest.mark.seeds(40, gate=4)
def test_no_proof_is_accepted_for_routes_that_can_deadlock(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    folder, proof = first_with("cycle", tmp_path, rng)
    assert trial_of_cyclic_routes(folder, proof, rng) > 4
