"""The emulator and the simulator run the same description with the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.tests.integration.test_run_experiments import run


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    out: Path = tmp_path_factory.mktemp("results")
    measured: list[dict[str, Any]] = run("agreement", "--quick", "--duration", "1.5", out=out)[
        "rows"
    ]
    return measured


def test_both_freeze_in_the_same_knot(rows: list[dict[str, Any]]) -> None:
    frozen = [row for row in rows if row["fabric"] == "ring,4"]
    assert [row["flow_control"] for row in frozen] == ["pause", "pfc"]
    for row in frozen:
        assert row["emulated_knot"] == row["simulated_knot"] == [f"s{i}:2/0" for i in (1, 2, 3, 4)]


def test_both_count_credits_alike(tmp_path: Path) -> None:
    measured = run("agreement", "--case", "credits", "--duration", "1.5", out=tmp_path)["rows"]
    assert [bool(row["simulated_knot"]) for row in measured] == [True, False, False, False]
    for row in measured:
        assert row["valid"], row["problems"]
        assert row["agrees"]
        assert row["emulated_knot"] == row["simulated_knot"]
        assert (row["emulated_lost"], row["simulated_lost"]) == (0, 0)
        assert row["emulated_account_peak_bytes"] == row["simulated_account_peak_bytes"]
        assert row["peaks_apart"] == []
        assert row["pauses_apart"] <= 1


def test_both_deliver_the_same(rows: list[dict[str, Any]]) -> None:
    (shared,) = (row for row in rows if row["fabric"] != "ring,4")
    assert not shared["emulated_deadlock"]
    assert shared["simulated_lost"] == 0
    assert shared["valid"], shared["problems"]
    assert shared["ratio"] == pytest.approx(1, abs=0.01)
    assert shared["agrees"]
    assert shared["emulated_lost"] == 0
    # The same model: equal peaks of ingress buffer occupancy, equal numbers of pauses.
    assert shared["emulated_account_peak_bytes"] == shared["simulated_account_peak_bytes"]
    assert shared["pauses_apart"] <= 1
