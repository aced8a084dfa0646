"""The structure of the code: which part imports which, and how long a file may be."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

REPOSITORY = Path(__file__).resolve().parents[2]
MAX_LINES = 350


def test_imports_run_downwards_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert lint_imports(no_cache=True) == 0, capsys.readouterr().out


def test_no_source_file_is_longer_than_a_reader_can_hold() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.py"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    lengths = {name: len((REPOSITORY / name).read_text().splitlines()) for name in listed}
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}
