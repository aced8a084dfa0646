"""The commands of the labs' sheets run on the solutions, and print what the sheets show.

Commands that need a running fabric are run by tests/integration/test_lab_fabrics.py.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.lab_checks.lab import FOLDER, Lab, labs

BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LIVE = ("--live", "knotless lab ", *(f"knotless {word}" for word in ("up", "cut", "mend", "down")))
STATUSES = (0, 1)
"""1: a verdict of check or lab-check."""


def blocks(lab: Lab) -> Iterator[tuple[list[str], list[str]]]:
    """Yield commands with what the sheet shows of their output, where no fabric is needed."""
    commands: list[str] = []
    for kind, text in BLOCK.findall((lab.folder / "README.md").read_text()):
        lines = text.splitlines()
        if kind == "sh":
            commands = lines
            if not any(word in text for word in LIVE):
                yield commands, []
        elif "mininet>" not in text and not any(word in " ".join(commands) for word in LIVE):
            yield commands, lines


def output_of(command: str, cache: dict[str, str]) -> str:
    words = shlex.split(command)
    assert words[0] == "knotless"
    if words[1] == "lab-check" and "--files-only" not in words:
        words.append("--files-only")
    if command not in cache:
        done = CliRunner().invoke(main, words[1:])
        assert done.exit_code in STATUSES, (command, done.output)
        cache[command] = done.output
    return cache[command]


@pytest.mark.thin(3)
@pytest.mark.parametrize("number", labs())
def test_the_sheet_shows_what_its_commands_print(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = labs()[number]
    for which in ("skeleton", "solution"):
        # The text of lab 10 shows the rules with their fault.
        if (number, which) != (10, "solution"):
            shutil.copytree(lab.folder / which, tmp_path, dirs_exist_ok=True)
    if number == 3:  # step 1 is about the rules as they were given
        shutil.copytree(lab.folder / "skeleton", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    cache: dict[str, str] = {}
    for commands, shown in blocks(lab):
        printed = [output_of(command, cache) for command in commands]
        if shown == [f"{lab.title}: all right"]:
            shutil.copytree(lab.folder / "solution", tmp_path, dirs_exist_ok=True)
            cache.clear()
            printed = [output_of(command, cache) for command in commands]
        lines = {line.strip() for text in printed for line in text.splitlines()}
        assert set(shown) <= lines, (commands, printed)


def test_every_sheet_has_commands_and_what_they_print() -> None:
    for lab in labs().values():
        kinds = [kind for kind, _ in BLOCK.findall((lab.folder / "README.md").read_text())]
        assert {"sh", "text"} <= set(kinds), lab.title
        page = (lab.folder / "README.md").read_text()
        for heading in ("**Idea.**", "## Steps", "## Questions"):
            assert heading in page, lab.title
        assert f"]({lab.folder.name}/README.md)" in (FOLDER / "README.md").read_text()
