"""Some hundred command lines of ``make fuzz-commands``, and tests of the fuzzer."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests import fuzz_commands
from tests.support import REPOSITORY, forged_inputs


def test_forged_command_lines_end_as_they_should() -> None:
    words = ["--cases", "300", "--seed", "7", "--workers", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz_commands", *words],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("300 cases of seed 7, 0 wrong (status 0: ")


def test_a_case_is_the_same_whenever_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = []
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        lines.append(forged_inputs.command_line(random.Random("7/1")))  # noqa: S311
    assert lines[0] == lines[1]


@pytest.mark.parametrize(
    ("ending", "wrong"),
    [
        (ValueError("a mistake of ours"), "ValueError: a mistake of ours"),
        (SystemExit(3), "exit status 3"),
        (SystemExit(2), "no line of complaint"),
        (SystemExit(0), None),
    ],
)
def test_the_fuzzer_reports_violations(
    ending: BaseException, wrong: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*_words: object, **_options: object) -> None:
        raise ending

    monkeypatch.setattr(fuzz_commands, "main", end)
    _, violation = fuzz_commands._judged(["topology"], tmp_path)
    assert (violation or "").startswith(wrong or "")
    assert (violation is None) == (wrong is None)
