"""What the sheets of labs 1, 3, 4 and 6 show of running fabrics is what their commands print.

The rest of the sheets needs no fabric: tests/system/test_lab_sheets.py.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from knotless.emulation.names import Names
from knotless.lab_checks.lab import labs
from tests.support.fabric_fixtures import FREE_PORTS, Knotless
from tests.support.terminal import PROMPT, Lab
from tests.support.waiting import Limit

BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CHANGING = ("up", "cut", "mend", "switch", "down")
"""Commands of the sheet that are not repeated when their answer is awaited."""


def blocks(number: int) -> list[tuple[str, list[str]]]:
    """Return the blocks of a sheet: kind and lines."""
    sheet = (labs()[number].folder / "README.md").read_text()
    return [(kind, text.splitlines()) for kind, text in BLOCK.findall(sheet)]


def typed(number: int) -> Iterator[tuple[str, list[str]]]:
    """Yield each line that a sheet types at the prompt, with the lines that it shows then."""
    for kind, lines in blocks(number):
        if kind == "text" and any(line.startswith(PROMPT) for line in lines):
            answers: list[tuple[str, list[str]]] = []
            for line in lines:
                if line.startswith(PROMPT):
                    answers.append((line.removeprefix(PROMPT), []))
                else:
                    answers[-1][1].append(line)
            yield from answers


def work_on(number: int, folder: Path) -> Path:
    for which in ("skeleton", "solution"):
        shutil.copytree(labs()[number].folder / which, folder, dirs_exist_ok=True)
    return folder


@pytest.mark.parametrize("number", [1, 3, 4])
def test_the_prompt_shows_what_the_sheet_shows(
    number: int, lab: Callable[..., Lab], tmp_path: Path
) -> None:
    commands = [line for kind, lines in blocks(number) if kind == "sh" for line in lines]
    (start,) = (shlex.split(line) for line in commands if line.startswith("knotless lab "))
    one = lab(*start[2:], directory=work_on(number, tmp_path))
    one.expect(PROMPT)
    steps = [*typed(number)]
    assert len(steps) >= 4
    for line, shown in steps:
        answer = one.say_until(line, shown[-1]) if shown else one.say(line)
        printed = {text.strip() for text in answer.splitlines()}
        assert {*shown} <= printed, (line, answer)
        assert "knotless:" not in answer, (line, answer)


def test_lab_6_prints_what_its_sheet_shows(
    knotless: Knotless, names: Names, tmp_path: Path
) -> None:
    folder = work_on(6, tmp_path)
    named = ("--name", names.name)
    commands: list[list[str]] = []
    run: list[list[str]] = []

    def output(words: list[str]) -> list[str]:
        more = (*named, *(FREE_PORTS if words[0] == "up" else ()))
        done = knotless(*words, *(() if words[0] == "plan" else more), cwd=folder)
        assert done.returncode in (0, 1), (words, done.stderr)
        return done.stdout.replace(names.name, "default").splitlines()

    for kind, lines in blocks(6):
        if kind == "sh":
            commands = [shlex.split(line)[1:] for line in lines]
            printed = {line.strip() for words in commands for line in output(words)}
            run += commands
            continue
        limit = Limit()
        while not {*lines} <= printed:
            limit.check((commands, lines, printed))
            again = [words for words in commands if words[0] not in CHANGING]
            printed |= {line.strip() for words in again for line in output(words)}
    assert {"up", "cut", "mend", "switch", "down"} <= {words[0] for words in run}
