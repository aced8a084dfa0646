"""A run as a data frame."""

from __future__ import annotations

from pathlib import Path

import pandas
from click.testing import CliRunner

import knotless as kn
from knotless.cli.main import main


def test_a_run_becomes_a_frame_with_its_rows(tmp_path: Path) -> None:
    ran = ["run", "deadlock", "--on", "simulation", "--quick", "--out", str(tmp_path)]
    assert CliRunner().invoke(main, ran).exit_code == 0
    (folder,) = tmp_path.iterdir()
    frame = kn.frame(folder)
    assert isinstance(frame, pandas.DataFrame)
    assert frame.attrs["experiment"] == "deadlock"
    assert len(frame.attrs["rows"]) > 1
