"""The commands of experiments: in the table of all, and with one line for odd files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.plugins import module_names
from knotless.cli.groups import OF_EXPERIMENTS
from knotless.cli.main import main
from knotless.results.results import Results
from tests.unit.cli.test_groups import offered
from tests.unit.cli.test_hostile_files import ODD, complaint, leaves_no_empty_folders

SWEEP = "do: analyse\ngrid: {fabric: 'ring,3', pattern: shift}\n"


def test_the_table_of_commands_has_every_one() -> None:
    assert module_names("knotless_experiments.commands") == sorted(OF_EXPERIMENTS)


def test_an_experiment_that_was_meant_is_named() -> None:
    done = CliRunner(mix_stderr=False).invoke(main, ["run", "deadlok"], prog_name="knotless")
    assert done.exit_code == 2
    assert "No such command 'deadlok'; did you mean deadlock?" in done.stderr
    assert offered("run", incomplete="dead") == ["deadlock"]


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A folder of results of an experiment without measurements."""
    with Results("deadlock", {}, 1, {"time_s": "float64"}, tmp_path) as results:
        pass
    return results.directory


@pytest.mark.parametrize("odd", ODD)
def test_grids(odd: Callable[[Path], str], tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    assert odd(path) in complaint("sweep", str(path))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["run.json", "samples.parquet"])
def test_runs(name: str, odd: Callable[[Path], str], run_folder: Path) -> None:
    (run_folder / name).unlink()
    assert odd(run_folder / name) in complaint("report", str(run_folder))


def test_a_sweep_whose_folder_holds_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(SWEEP)
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "grid.json")
    assert "grid.json: cannot be written: it is a pipe" in complaint(
        "sweep", str(file), "--out", str(tmp_path / "out")
    )


WRONG: list[Any] = [None, 3, "x", [], {"a": [1]}]
VALID: dict[str, list[Any]] = {
    "finished": [None, "x"],
    "parameters": [{"a": [1]}],
    "rows": [[]],
    "id": ["x"],
}
"""Values of these that are valid for a key."""


@pytest.mark.parametrize("key", ["machine", "parameters", "status", "finished", "rows", "id"])
def test_runs_that_lack_something(key: str, run_folder: Path) -> None:
    file = run_folder / "run.json"
    whole = json.loads(file.read_text())
    for value in WRONG:
        if value in VALID.get(key, []):
            continue
        file.write_text(json.dumps({**whole, key: value}))
        assert f"run.json: not a run of an experiment: {key}" in complaint(
            "report", str(run_folder)
        )
    del whole[key]
    file.write_text(json.dumps(whole))
    assert f"{key}: it is missing" in complaint("report", str(run_folder))


def test_rows_of_another_kind_are_a_complaint(run_folder: Path) -> None:
    file = run_folder / "run.json"
    held = json.loads(file.read_text())
    file.write_text(json.dumps({**held, "rows": [{"valid": True}]}))
    assert "has rows that this experiment does not write" in complaint("report", str(run_folder))


@pytest.mark.parametrize(
    "words",
    [
        ["run", "deadlock", "--on", "simulation", "--out", "made/results"],
        ["sweep", "grid.yaml", "--out", "made/swept"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_no_empty_folders(words: list[str], there: bool, tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(SWEEP)
    leaves_no_empty_folders(words, there, tmp_path)
