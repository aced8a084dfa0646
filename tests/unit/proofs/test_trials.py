"""What the verifier accepts of damaged rules, damaged proofs and cyclic fabrics is right."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.support import REPOSITORY
from tests.support.proof_trials import (
    PLANS,
    Evidence,
    cyclic_plan,
    trial_of_cyclic,
    trial_of_proof,
    trial_of_rules,
)
from tests.support.proofs import BUILT, files_of_plan, judge, proof_of_product, write_rules

pytestmark = BUILT


@pytest.fixture(scope="module")
def plans() -> list[dict[str, str]]:
    return [files_of_plan(spec, **choices) for spec, choices in PLANS]


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> list[Evidence]:
    folder = tmp_path_factory.mktemp("plans")
    return [
        Evidence(write_rules(folder / str(number), files_of_plan(spec, **choices)))
        for number, (spec, choices) in enumerate(PLANS)
    ]


@pytest.mark.seeds(200)
def test_damaged_rules_are_accepted_only_if_they_are_right(
    tmp_path: Path, plans: list[dict[str, str]], seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    trial_of_rules(rng.choice(plans), tmp_path / "rules", rng)


def test_some_damaged_rules_are_right_and_most_are_not(
    tmp_path: Path, plans: list[dict[str, str]]
) -> None:
    found: Counter[str] = Counter()
    for seed in range(30):
        rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
        found[trial_of_rules(plans[0], tmp_path / "rules", rng)[1]] += 1
    assert found["accepted"] > 1
    assert found["refused"] > 10


@pytest.mark.seeds(400, gate=40)
def test_damaged_proofs_are_accepted_only_if_they_are_right(
    evidence: list[Evidence], seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    trial_of_proof(rng.choice(evidence), rng)


def test_proofs_with_the_same_meaning_are_accepted(evidence: list[Evidence]) -> None:
    for one in evidence:
        lines = one.proof.splitlines()
        bound = next(line for line in lines if line.startswith("bound "))
        assert one.may_be_accepted(one.proof)
        ranks = [line for line in lines if line.startswith("rank ")]
        twice = [f"{line.rpartition(' ')[0]} {2 * int(line.rpartition(' ')[2])}" for line in ranks]
        others = [line for line in lines if line != bound and line not in ranks]
        for variant in (
            one.proof,
            one.proof.replace(bound, "bound 1000000"),
            "\n".join([*others, "bound 4000", *reversed(twice)]) + "\n",
        ):
            assert judge(one.folder, variant).accepted, variant


@pytest.mark.seeds(60, gate=6)
def test_no_proof_is_accepted_for_a_fabric_that_can_deadlock(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    folder = write_rules(tmp_path / "rules", cyclic_plan(rng))
    assert trial_of_cyclic(folder, rng) > 4


CYCLIC = [
    *("koibuchi-mesh", "koibuchi-torus", "otsuka-mesh", "otsuka-torus"),
    *("koibuchi-irregular-a", "koibuchi-irregular-b"),
]
"""Stored fabrics on which shortest paths can deadlock."""


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", CYCLIC)
def test_no_proof_is_accepted_for_a_stored_fabric_that_can_deadlock(
    tmp_path: Path, name: str
) -> None:
    spec = str(REPOSITORY / "topologies" / f"{name}.json")
    folder = write_rules(tmp_path / "rules", files_of_plan(spec, engine="minimal"))
    rng = random.Random(name)  # noqa: S311 - it only has to be repeatable
    assert trial_of_cyclic(folder, rng, walk=False) > 4


@pytest.mark.parametrize(
    ("rules", "answer"),
    [
        ("02-read-a-proof/solution", "checked, not proven: under PAUSE, frames can wait"),
        ("10-find-the-fault/skeleton", "checked, not proven: under PAUSE, frames can wait"),
        ("10-find-the-fault/solution", "accepted: the fabric cannot deadlock under PAUSE"),
    ],
)
def test_rules_of_labs(tmp_path: Path, rules: str, answer: str) -> None:
    folder = tmp_path / "rules"
    shutil.copytree(REPOSITORY / "labs" / rules / "rules", folder)
    judgement = judge(folder, proof_of_product(folder))
    assert judgement.status == int(not answer.startswith("accepted"))
    assert judgement.text.startswith(answer)
