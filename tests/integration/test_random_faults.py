"""Parts of a running fabric fail at random: the status names each, and all becomes well again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.random_faults import LIMITS_S, measure


def judge(run: dict[str, Any], steps: int) -> None:
    late = sum(row["late"] for row in run["rows"])
    assert run["faults"] == steps
    assert run["comparisons"] >= steps
    assert len(run["violations"]) == late, run["violations"]


def test_faults_are_named_and_status_check_and_frames_agree() -> None:
    judge(measure("ring,4", seed=1, steps=4), 4)


@pytest.mark.long
def test_every_kind_of_fault() -> None:
    steps = len(LIMITS_S)
    run = measure("torus,4,4", seed=2, steps=steps)
    judge(run, steps)
    assert {row["kind"]: row["count"] for row in run["rows"]} == dict.fromkeys(LIMITS_S, 1)
