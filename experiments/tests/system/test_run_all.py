"""``knotless run all``: every experiment, in the simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless_experiments.framework import experiment as catalogue
from knotless_experiments.framework.experiment import SIMULATION, Experiment, ExperimentError
from knotless_experiments.studies.hops import EXPERIMENT as HOPS


def rows(tmp_path: Path, *args: str) -> tuple[int, list[dict[str, Any]]]:
    asked = ["run", "all", "--on", "simulation", "--quick", "--json", "--out", str(tmp_path), *args]
    result = CliRunner(mix_stderr=False).invoke(main, asked)
    return result.exit_code, json.loads(result.stdout)["rows"]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[dict[str, Any]]]:
    return rows(tmp_path_factory.mktemp("first"))


def test_every_simulated_experiment_runs_and_counts(
    first: tuple[int, list[dict[str, Any]]],
) -> None:
    code, results = first
    simulated = [n for n in catalogue.names() if SIMULATION in catalogue.load(n).places]
    assert [row["experiment"] for row in results] == simulated
    assert {"traffic", "hops", "all-to-all"} <= set(simulated)
    assert all(row["ok"] and row["valid"] for row in results)
    assert sum(row["seconds"] for row in results) > 0
    assert all(Path(row["report"]).is_file() for row in results)
    assert code == 0


def measured(row: dict[str, Any]) -> tuple[list[Any], bytes]:
    folder = Path(row["report"]).parent
    stored = json.loads((folder / "run.json").read_text(encoding="utf-8"))["rows"]
    return stored, (folder / "samples.parquet").read_bytes()


@pytest.mark.deep
def test_simulations_are_reproducible_bit_for_bit(
    first: tuple[int, list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = [name for name in catalogue.names() if name != "nas"]  # its kernels take a while
    monkeypatch.setattr(catalogue, "names", lambda: again)
    _, second = rows(tmp_path)
    before = {row["experiment"]: measured(row) for row in first[1]}
    assert len(second) >= 9
    for row in second:
        assert measured(row) == before[row["experiment"]], row["experiment"]


def test_an_experiment_that_breaks_is_a_row_and_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        parameters: dict[str, Any] = {"on": SIMULATION}  # noqa: RUF012 - never changed
        steps = 1

        def run(self, *_: object) -> None:
            raise ExperimentError("the bench fell over")

    broken = Experiment(**{**vars(HOPS), "prepare": lambda *_: Broken()})
    monkeypatch.setattr(catalogue, "names", lambda: ["hops"])
    monkeypatch.setattr(catalogue, "load", lambda _: broken)
    code, (row,) = rows(tmp_path)
    assert (row["ok"], row["valid"], row["reason"]) == (False, False, "the bench fell over")
    assert code == 1
