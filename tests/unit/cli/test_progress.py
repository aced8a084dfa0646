"""Progress of long work, and where the files are that a command has written."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.cli import progress
from knotless.cli.main import main
from knotless.cli.progress import Bar
from knotless.importers.paths import read_paths
from tests.support import REPOSITORY

FABRIC = REPOSITORY / "tests" / "data" / "fabrics" / "control-knot"


def run(*words: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")


class Watched:
    """Stands for the terminal's bar; says when it appears."""

    def __init__(self) -> None:
        self.appeared, self.ended = threading.Event(), False

    def add_task(self, description: str, total: float) -> str:
        return f"{description} {total}"

    def start(self) -> None:
        self.appeared.set()

    def stop(self) -> None:
        self.ended = True


def patient(
    monkeypatch: pytest.MonkeyPatch, *, after_s: float, terminal: bool
) -> tuple[Bar, Watched]:
    monkeypatch.setattr(progress, "PATIENCE_S", after_s)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    watched = Watched()
    monkeypatch.setattr(progress, "_progress", lambda **_: watched)
    return Bar("working", 3, patient=True), watched


def test_a_patient_bar_appears_when_the_work_is_not_done_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bar, watched = patient(monkeypatch, after_s=0, terminal=True)
    with bar:
        assert watched.appeared.wait(60)
    assert watched.ended


@pytest.mark.parametrize(("after_s", "terminal"), [(3600.0, True), (0.0, False)])
def test_a_patient_bar_does_not_appear_for_short_work_or_without_a_terminal(
    after_s: float, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bar, watched = patient(monkeypatch, after_s=after_s, terminal=terminal)
    with bar:
        pass
    assert not watched.appeared.is_set()
    assert watched.ended == terminal
    assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())


def test_reading_files_tells_how_many_are_read() -> None:
    told: list[int] = []
    read_paths([FABRIC], progress=told.append)
    files = sum(1 for file in FABRIC.rglob("*") if file.is_file())
    assert told == [*range(1, files + 1)]


@pytest.mark.parametrize(
    ("words", "file", "line"),
    [
        ("topology ring,4 --draw f.svg", "f.svg", "  drawing: f.svg"),
        ("topology ring,4 --out f.json", "f.json", "  fabric: f.json"),
        ("plan ring,4 --out p.json", "p.json", "  plan: p.json"),
        ("analyse ring,4 --pattern shift:1 --plot l.svg", "l.svg", "  figure: l.svg"),
        ("simulate ring,4 --pattern shift:1 --out v.json", "v.json", "  values: v.json"),
        ("simulate ring,4 --pattern shift:1 --load 0.2 --plot c.svg", "c.svg", "  figure: c.svg"),
    ],
)
def test_an_answer_says_where_its_files_are(
    words: str, file: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words.split())
    assert (tmp_path / file).exists(), done.stderr
    assert line in done.stdout.splitlines()


def test_a_drawing_without_a_file_says_what_it_would_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("topology", "torus,3,3", "--draw")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("knotless: --draw writes a drawing of torus,3,3: name its file")
    assert "--draw torus-3-3.svg" in done.stderr
    assert list(tmp_path.iterdir()) == []
