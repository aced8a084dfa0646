"""A run's folder: complete after success, readable however the run ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from knotless.results import results
from knotless.results.results import Results, ResultsError
from tests.support.waiting import HANG_S

ROWS: list[dict[str, Any]] = [
    {"routes": "cyclic", "flows_mbps": [1.0, 2.0], "valid": True, "problems": []},
    {"routes": "acyclic", "flows_mbps": [3.0], "valid": True, "problems": []},
]
TYPES = {"row": "int32", "time_s": "float64", "flow": "string"}


def samples(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a hundred samples for each row."""
    times = [number / 10 for number in range(100)]
    return [{"row": i, "time_s": t, "flow": "h1"} for i, _ in enumerate(rows) for t in times]


def new(folder: Path) -> Results:
    return Results("deadlock", {"rate_mbps": 10.0}, 7, TYPES, folder)


def filled(folder: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    lines = samples(rows)
    with new(folder) as kept:
        for index, each in enumerate(rows):
            kept.add(each, [line for line in lines if line["row"] == index])
    return kept.directory


def test_a_complete_run_reads_back_as_it_was(tmp_path: Path) -> None:
    run, lines = results.read(filled(tmp_path))
    assert run["rows"] == ROWS
    assert lines == samples(ROWS)
    assert run["status"] == "complete"
    assert run["reason"] is None
    assert run["seed"] == 7
    assert run["parameters"] == {"rate_mbps": 10.0}
    assert run["versions"]["python"].startswith("3.")
    assert run["versions"]["profile"] in ("release", "setup")
    assert run["machine"]["cores"] >= 1


def test_the_folder_is_named_by_experiment_time_and_id(tmp_path: Path) -> None:
    assert re.fullmatch(r"deadlock-\d{8}T\d{6}Z-[0-9a-f]{4}", filled(tmp_path).name)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(KeyboardInterrupt(), "interrupted"), (ValueError("no"), "ValueError: no")],
)
def test_what_was_measured_outlives_what_ends_the_run(
    tmp_path: Path, error: BaseException, reason: str
) -> None:
    kept = new(tmp_path)
    with pytest.raises(type(error)), kept:  # noqa: PT012 - the block is what is tested
        kept.add(ROWS[0], samples(ROWS[:1]))
        raise error
    run, lines = results.read(kept.directory)
    assert (run["status"], run["reason"]) == ("incomplete", reason)
    assert run["rows"] == ROWS[:1]
    assert len(lines) == 100


def test_a_killed_run_reads_as_incomplete(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from knotless.results.results import Results
kept = Results("deadlock", {{}}, 1, {{"row": "int32"}}, Path({str(tmp_path)!r}))
kept.__enter__()
kept.add({{"routes": "cyclic"}}, [{{"row": 0}}])
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False, timeout=HANG_S)
    (directory,) = tmp_path.iterdir()
    run, lines = results.read(directory)
    assert (run["status"], run["rows"]) == ("incomplete", [{"routes": "cyclic"}])
    assert lines == [{"row": 0}]


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="--out"):
        new(tmp_path / "file")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": 1'])
def test_folders_without_a_run_are_refused(tmp_path: Path, text: str) -> None:
    directory = filled(tmp_path)
    (directory / "run.json").write_text(text)
    with pytest.raises(ResultsError):
        results.read(directory)


def test_run_json_is_strict_json(tmp_path: Path) -> None:
    def refuse(name: str) -> None:
        raise ValueError(name)

    text = (filled(tmp_path) / "run.json").read_text()
    json.loads(text, parse_constant=refuse)
