"""``knotless sweep``: its file, its results, and continuing an interrupted sweep."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from experiments.tests.support.sweep_grid import SMALL, invoke, write
from knotless.base.errors import SweepError
from knotless.cli.main import main
from knotless.routing.request import OPTIONS
from knotless_experiments.sweeps import grid
from knotless_experiments.sweeps.figures import ERROR, columns, run_point
from knotless_experiments.sweeps.folder import Folder
from knotless_experiments.sweeps.settings import KINDS, Analysis, Simulation, settings_of

MANY = list(range(1, 401))


def test_a_grid_has_every_combination_the_last_key_fastest() -> None:
    parsed = grid.parse(SMALL)
    assert parsed.varying == ["engine", "load", "seed"]
    assert [(p.engine, p.load, p.seed) for p in parsed.points] == [  # type: ignore[union-attr]
        (engine, load, seed)
        for engine in ("updown", "dor")
        for load in (0.2, 0.4)
        for seed in (1, 2)
    ]


@pytest.mark.parametrize("settings", [Analysis, Simulation])
def test_files_have_every_choice_with_the_same_default(settings: type[Analysis]) -> None:
    for key, default in OPTIONS.items():
        assert settings.model_fields[key].default == default


def test_several_grids_follow_one_another() -> None:
    parsed = grid.parse(
        "do: analyse\n"
        "grid: [{fabric: 'mesh,4,4', engine: dor, pattern: [tornado, transpose]},"
        " {fabric: 'lsft,3', engine: lsft, pattern: shift}]"
    )
    assert [(p.fabric, p.pattern) for p in parsed.points] == [
        ("mesh,4,4", "tornado"),
        ("mesh,4,4", "transpose"),
        ("lsft,3", "shift"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid: {fabric: 'ring,4', pattern: shift, colour: red}", "unknown key 'colour'"),
        ("grid: {fabric: 'ring,4', pattern: shift}\ngird: 1", "unknown key 'gird'"),
        ("do: guess\ngrid: {fabric: 'ring,4', pattern: shift}", "do: must be simulate or analyse"),
        ("do: [analyse]\ngrid: {fabric: 'ring,4', pattern: shift}", "do: must be simulate or"),
        ("grid: {fabric: 'ring,4', pattern: shift}\nplot: {x: [load]}", "plot: x: no column"),
        ("grid: {fabric: 'ring,4'}", "pattern: it is missing"),
        ("grid: {fabric: 'rong,4', pattern: shift}", "fabric: "),
        ("grid: {fabric: 'ring,4', pattern: shaft}", "pattern: there is no pattern"),
        ("grid: {fabric: 'ring,4', pattern: shift, engine: magic}", "engine: "),
        ("grid: {fabric: 'ring,4', pattern: uniform, load: [0.5, 1.5], duration_us: 9}", "load: "),
        ("grid: {fabric: 'ring,4', pattern: uniform, load: '0.5', duration_us: 9}", "load: "),
        ("grid: {fabric: 'ring,4', pattern: shift, seed: -1}", "seed: "),
        ("grid: {fabric: 'ring,4', pattern: shift, seed: []}", "seed: the list of values is empty"),
        (
            "grid: {fabric: 'ring,4', pattern: shift, seed: [1, 1]}",
            "point 1 is the same as point 0",
        ),
        ("grid: {fabric: 'ring,4', pattern: neighbour}", "never ends: give a duration"),
        ("grid: {fabric: 'ring,4', pattern: shift, seed: &a [*a]}", "seed: "),
        ("grid: {fabric: 'ring,4', pattern: shift, duration_us: .nan}", "duration_us: "),
        ("do: analyse\ngrid: {fabric: 'ring,4', pattern: shift, load: 0.5}", "unknown key 'load'"),
        ("grid: {fabric: 'ring,4', pattern: shift}\nplot: {x: lode}", "plot: x: no column"),
        ("grid: [", "not YAML"),
        ("", "must have keys with values"),
        (f"grid: {{fabric: 'ring,4', pattern: shift, seed: {MANY}, packet_bytes: {MANY}}}", "more"),
    ],
    ids=count(),
)
def test_invalid_values_are_reported_before_anything_starts(
    text: str, message: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = invoke(write(tmp_path, text), "--out", out)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("do", KINDS)
def test_every_setting_fits_its_column(do: str) -> None:
    point = KINDS[do](fabric="ring,4", pattern="shift:1")
    for key, value in settings_of(do, point).items():
        pa.array([value], pa.type_for_alias(columns(do)[key]))


def test_an_exception_in_a_point_becomes_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise MemoryError("of all things")

    monkeypatch.setattr("knotless_experiments.sweeps.figures.figures", fail)
    row, _ = run_point("analyse", 3, {"fabric": "ring,4", "pattern": "shift"})
    assert (row["index"], row[ERROR]) == (3, "MemoryError: of all things")


def test_a_folder_holds_one_grid_and_one_sweep_at_a_time(tmp_path: Path) -> None:
    mine = grid.parse(SMALL)
    with Folder(tmp_path / "out", mine):
        with pytest.raises(SweepError, match="another sweep is using this folder"):
            Folder(tmp_path / "out", mine)
        # A file with the same meaning is the same grid.
        assert grid.parse(SMALL.replace("[0.2, 0.4]", "[0.20, 0.40]")).sha256 == mine.sha256
    with pytest.raises(SweepError, match="another grid; name another folder"):
        Folder(tmp_path / "out", grid.parse(SMALL.replace("0.4", "0.5")))


def test_a_fabric_file_that_was_changed_is_another_grid(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    for spec, expected in (("ring,4", 1), ("ring,4", 1), ("ring,5", 2)):
        assert CliRunner().invoke(main, ["topology", spec, "--out", str(file)]).exit_code == 0
        text = f"do: analyse\ngrid: {{fabric: '{file}', pattern: shift}}"
        (tmp_path / grid.parse(text).sha256).touch()
        assert len([path for path in tmp_path.iterdir() if len(path.name) == 64]) == expected
