"""Commands of experiments that get too little: one line, and nothing half-written."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from tests.support.scarcity import limited, refused

SWEEP = "do: analyse\ngrid: {fabric: 'ring,3', pattern: shift}\n"


@pytest.mark.parametrize(
    "words",
    [["sweep", "s.yaml", "--out", "f"], ["run", "paths", "--quick", "--out", "f"]],
    ids=lambda words: words[0],
)
def test_a_full_disk(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(SWEEP)
    before = set(tmp_path.iterdir())
    line = refused(*words, limit=limited(resource.RLIMIT_FSIZE, 100))
    assert "File too large" in line
    assert "f" in line
    left = [path for path in tmp_path.rglob("*") if path not in before and path.is_file()]
    assert all(path.name == "grid.json" for path in left), left
    assert all(path.stat().st_size == 0 for path in left)


def test_a_sweep_with_too_few_open_files(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(SWEEP)
    words = ["sweep", str(file), "--out", str(tmp_path / "out"), "--workers", "1"]
    line = refused(*words, limit=limited(resource.RLIMIT_NOFILE, 16))
    assert line == "knotless: a sweep takes up to 80 open files, ulimit -n allows 16"
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "incomplete"
