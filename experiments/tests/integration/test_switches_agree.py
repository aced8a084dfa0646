"""Emulator and simulator run the same switch settings with the same results."""

from __future__ import annotations

from pathlib import Path

from experiments.tests.integration.test_run_experiments import run


def test_both_have_the_same_switches_inside(tmp_path: Path) -> None:
    measured = run("agreement", "--case", "switches", "--duration", "1.5", out=tmp_path)["rows"]
    assert [row["settings"] for row in measured].count("alpha") == 2
    for row in measured:
        assert row["valid"], row["problems"]
        assert row["agrees"]
        assert (row["peaks_apart"], row["pools_apart"]) == ([], [])
        assert abs(row["emulated_lost"] - row["simulated_lost"]) <= 2
        assert (row["simulated_marked"] > 0) == (row["settings"] == "marking")
