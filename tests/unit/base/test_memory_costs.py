"""What work takes of memory is what was estimated, within a factor."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from knotless.base.memory import Cost
from tests.support import REPOSITORY
from tests.support.memory_cases import CASES

FACTOR = 2.0
FACTORS = {"choices": 4.0, "more-choices": 4.0}
"""A choice takes little where many share channels, as in dragonflies, and much in full meshes."""
OF_SIMULATIONS = {cost for cost in Cost if cost.name.startswith("SIMULAT")}


@pytest.mark.parametrize("name", CASES)
def test_what_work_takes_was_estimated(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.memory_cases", name],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    )
    estimated, taken = map(int, done.stdout.split())
    factor = FACTORS.get(name, FACTOR)
    assert taken > 4_000_000, "too small to be measured beside what else a process has"
    assert taken / factor < estimated < factor * taken


def test_every_cost_is_measured() -> None:
    measured = {cost for cost, _ in CASES.values() if cost is not None}
    assert measured == {*Cost} - OF_SIMULATIONS


@pytest.mark.parametrize("cost", Cost, ids=lambda cost: str(cost.name))
def test_the_table_names_the_files_that_refuse_by_a_cost(cost: Cost) -> None:
    used = [
        str(path.relative_to(REPOSITORY / "knotless"))
        for path in (REPOSITORY / "knotless").rglob("*.py")
        if re.search(rf"\bCost\.{cost.name}\b", path.read_text())
    ]
    assert sorted(used) == cost.files
