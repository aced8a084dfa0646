"""Recordings of the rows of a run, and the one that ``knotless replay`` chooses."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import EmulationError
from knotless.cli.commands import replay
from knotless.cli.main import main
from knotless.emulation.daemon import Daemon
from knotless.results import recording
from knotless.topologies import load
from knotless_experiments.framework import recorded
from tests.support.fake_fabric import FakeFabric

SMALL = (
    *("run", "deadlock", "--on", "simulation", "--pattern", "a", "--pattern", "ring-4"),
    *("--flow-control", "pause,pfc", "--protocol", "udp", "--duration", "0.5", "--json"),
)


def rows_of(tmp_path: Path, *more: str) -> tuple[list[dict[str, Any]], Path]:
    """Run a few simulated rows and return them, with the folder of the run."""
    done = CliRunner(mix_stderr=False).invoke(main, [*SMALL, "--out", str(tmp_path), *more])
    assert done.exit_code == 0, done.stderr
    output = json.loads(done.stdout)
    return output["rows"], Path(output["report"]).parent


def test_a_run_with_recordings_has_the_same_results_and_can_be_replayed(tmp_path: Path) -> None:
    plain, folder = rows_of(tmp_path / "plain")
    assert not list(folder.glob(f"*{recording.SUFFIX}"))
    rows, folder = rows_of(tmp_path / "recorded", "--record")
    assert [row["result_sha256"] for row in rows] == [row["result_sha256"] for row in plain]
    for number, row in enumerate(rows):
        file = replay._recording((str(folder),), number)
        assert file is not None
        recorded_run = recording.read(file)
        assert recorded_run.title.startswith(f"row {number}, ")
        assert row["routes"] in recorded_run.title
        assert any(frame["knot"] for frame in recorded_run.frames) == row["deadlock"]
    assert {row["deadlock"] for row in rows} == {False, True}
    assert replay._recording((str(folder),), None) == recording.file_of_row(folder, 0)
    again = CliRunner(mix_stderr=False).invoke(main, ["replay", str(folder), "--row", "99"])
    assert (again.exit_code, again.stdout) == (2, "")
    assert "has no recording of row 99" in again.stderr


@pytest.mark.parametrize(
    "words",
    [("paths", "--on", "analysis"), ("barrier", "--on", "simulation")],
)
def test_what_has_no_channels_over_time_is_not_recorded(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    done = CliRunner(mix_stderr=False).invoke(
        main, ["run", *words, "--record", "--out", str(tmp_path)]
    )
    assert done.exit_code == 2
    assert "has no channels over time" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_running_fabric_is_recorded_until_the_row_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeFabric(load("ring,4"))
    monkeypatch.setattr(recorded, "EVERY_S", 0.001)
    lab: Any = SimpleNamespace(daemon=Daemon(tmp_path / "s", {}), fabric=fake.fabric)
    answers = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        fake.pass_time(1000, s1_2=0.5)
        answers.append(request)
        return FakeFabric.answer(fake, request)

    fake.answer = answer  # type: ignore[method-assign]
    token = recorded.folder.set(tmp_path)
    try:
        with fake.emulator(tmp_path / "s"), recorded.emulated(lab, 3, "a case"):
            while len(answers) < 20:
                pass
        stored = recording.read(recording.file_of_row(tmp_path, 3))
        assert stored.title == "row 3, a case: emulation of ring,4"
        assert stored.frames
        with (
            pytest.raises(EmulationError, match="the row's own"),
            recorded.emulated(lab, 4, "its emulator has ended"),
        ):
            raise EmulationError("the row's own")
        with recorded.emulated(lab, 5, "its emulator has ended"):
            pass
    finally:
        recorded.folder.reset(token)
    assert {file.name for file in tmp_path.glob("row-*")} == {f"row-3{recording.SUFFIX}"}
