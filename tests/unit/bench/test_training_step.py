"""The benchmark of a training step: the command that it times, and its table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import training_step
from bench.training_step import STEPS, Step, measure, table_of
from tests.support import REPOSITORY

STORED = json.loads((REPOSITORY / "docs" / "benchmarks" / "training-step.json").read_text())


@pytest.mark.parametrize("transport", training_step.TRANSPORTS)
def test_a_small_step_is_measured(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Step(layers=4, micro_batches=1, hidden=64, sequence=16)
    monkeypatch.setattr(training_step, "STEPS", {"small": small})
    row = measure("small", transport, tmp_path)
    assert row["packet_hops"] > 0
    assert (row["lost_frames"], row["deadlock"]) == (0, False)
    assert (row["cnps"] is None) == (transport == "none")
    assert row["peak_mb"] > 10


def test_all_steps_have_a_rank_for_each_host() -> None:
    for step in STEPS.values():
        assert step.data * step.tensor * step.pipeline == 128


def test_the_stored_run_has_every_step_and_transport() -> None:
    rows = STORED["rows"]
    assert {(row["size"], row["transport"]) for row in rows} == {
        (size, transport) for size in STEPS for transport in training_step.TRANSPORTS
    }
    assert all(Step(**row["step"]) == STEPS[row["size"]] for row in rows)
    assert len(table_of(STORED)) == 2 + len(rows) + 2
