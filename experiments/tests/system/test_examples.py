"""The example scripts run as their page says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from knotless_experiments.messages.logp import ALGORITHMS
from tests.support import REPOSITORY

FOLDER = REPOSITORY / "experiments" / "examples"


def lines_of(script: str, spec: str) -> list[list[str]]:
    done = subprocess.run(
        [sys.executable, FOLDER / script, spec], capture_output=True, text=True, check=True
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_patterns_are_analysed_and_simulated() -> None:
    lines = lines_of("patterns.py", "torus,4,4")
    assert [line[0] for line in lines] == ["neighbour", "shuffle", "tornado", "permutation"]
    assert all(float(line[6]) > 0 and line[-3:] == ["no", "deadlock", "formed"] for line in lines)


def test_every_barrier_takes_longer_than_a_message() -> None:
    times_us = {name: float(us) for name, us, _ in lines_of("barriers.py", "mesh,2,2")}
    assert list(times_us) == list(ALGORITHMS)
    assert min(times_us.values()) > 20


@pytest.mark.parametrize("script", sorted(path.name for path in FOLDER.glob("*.py")))
def test_the_page_names_every_script(script: str) -> None:
    assert f"`{script}`" in (FOLDER / "README.md").read_text()
