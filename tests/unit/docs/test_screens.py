"""What commands show: the answer first, within a screen, and the same in a pipe, whole."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from docs.generator import screens
from docs.generator.screens import (
    COLUMNS,
    EXPERIMENT,
    LINES,
    RUNNING,
    SCREENS,
    folded,
    run,
    running,
)
from knotless.cli.main import main

PIPED = [
    *SCREENS,
    "plan torus,4,4 --engine all --compare",
    "plan torus,4,4 --without s1-s2 --without s11",
    "plan ring,30 --engine dor --vcs 1 --select low-port",
    "plan torus,5,5 --explain",
    "check rules --freeze",
    "check rules --pair h1 h3",
    "check safe --failures 1",
    "check control-knot --remedies",
    "analyse fattree2,4 --pattern permutation --multipath ecmp",
    "simulate fattree3,4 --collective ring-allreduce --rate 10000 --delay 1",
    "simulate torus,4,4 --pattern tornado --pause-host h1@1000 --pause-tree",
    "schedule lsft,3",
    "export mesh,3,3 --engine dor --to l2 --out l2",
]


@pytest.fixture(scope="module", autouse=True)
def in_folder() -> Iterator[None]:
    with screens.folder():
        yield


@pytest.mark.parametrize(("command", "word"), SCREENS.items())
def test_a_screen_begins_with_its_answer_and_fits(command: str, word: str) -> None:
    lines = run(command, COLUMNS)
    assert word in f"{lines[0]} {lines[1]}".partition(": ")[2]
    assert len(folded(lines)) <= LINES
    assert run(command, COLUMNS) == lines, "it has no times"


def test_an_experiment_fits_and_says_how_many_runs_froze() -> None:
    lines = run(EXPERIMENT, COLUMNS)
    assert "1 of 4 runs froze" in " ".join(lines[:2])
    assert len(folded(lines)) <= LINES


@pytest.mark.parametrize(("command", "word"), RUNNING.items())
def test_commands_of_running_fabrics_begin_with_their_answer_and_fit(
    command: str, word: str
) -> None:
    lines = running(COLUMNS)[command]
    assert word in lines[0].partition(": ")[2]
    assert len(folded(lines)) <= LINES


@pytest.mark.parametrize("command", SCREENS)
def test_what_is_suggested_next_runs_as_printed(command: str) -> None:
    with screens.folder():  # one of its own: hints write files
        lines = run(command, COLUMNS)
        hints = [line for line in lines if re.match(r"  [a-z ]+: knotless ", line)]
        assert 1 <= len(hints) <= 2
        for hint in hints:
            run(hint.partition(": knotless ")[2])  # raises for the exit status of a mistake


@pytest.mark.parametrize("command", PIPED)
def test_a_pipe_gets_plain_lines_with_one_fact_each(command: str) -> None:
    lines = run(command)
    text = "\n".join(lines)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert not re.search("[\u2500-\u259f]", text), "box characters"
    assert not lines[0].startswith(" ")
    assert all(line.startswith("  ") and line.strip() for line in lines[1:])
    assert not re.search(r"\(\d+ more\)|and \d+ more \w+ \(--details\)|: knotless ", text)


def test_the_width_of_a_terminal_does_not_change_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "plan ring,30 --engine dor --vcs 1 --select low-port"
    monkeypatch.setenv("COLUMNS", "40")
    narrow = run(command)
    monkeypatch.setenv("COLUMNS", "200")
    assert run(command) == narrow
    assert max(map(len, narrow)) > 200, "the cycle is whole"


@pytest.mark.parametrize("command", SCREENS)
def test_forty_columns_are_enough(command: str) -> None:
    for line in run(command, 40):
        # Only a word, such as a path or the name of a channel, or a command is longer.
        is_command = ": knotless " in line
        assert len(line) <= 40 or is_command or len(line.split()) <= 2, line


@pytest.mark.parametrize("command", SCREENS)
def test_details_begin_with_the_same_answer_and_have_more(command: str) -> None:
    answer = run(command)
    detailed = run(f"{command} --details")
    assert detailed[0] == answer[0]
    assert len(detailed) > len(answer)


def test_commands_that_judge_or_measure_have_details() -> None:
    context = main.make_context("knotless", ["--help"], resilient_parsing=True)
    for name in {shlex.split(command)[0] for command in PIPED}:
        command = main.get_command(context, name)
        assert command is not None
        assert any("--details" in option.opts for option in command.params), name
