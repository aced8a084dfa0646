"""The form of answers: the answer first, whole in a pipe, and within any terminal."""

from __future__ import annotations

import ast
import sys

import pytest

from knotless.cli import answer
from knotless.cli.answer import (
    Answer,
    Cycle,
    Figure,
    Group,
    Headline,
    Hint,
    Screen,
    Several,
    Table,
    Tone,
    answer_lines,
)
from tests.support import REPOSITORY

CHANNELS = [f"s{number}:2/0" for number in range(1, 31)]
LONG = Answer(
    Headline("ring,30 with dor", "CAN DEADLOCK", "under PAUSE", Tone.BAD),
    why=[Cycle(CHANNELS), Several([f"h{number} waits" for number in range(30)], "packets")],
    figures=[Figure("load", 12, at_least=8.0), Figure("losses", 0), Figure("theorem", None)],
    tables=[
        Table(
            "engines",
            ["engine", "load", "a wide heading", "a wider heading"],
            [["dor", 8, 1.0, True], ["updown", 1234, 22.5, None]],
        )
    ],
    hints=[Hint("look for another", ["knotless", "advise", "ring,30"])],
    details=[Group("plan", {"load_bound": 8.0, "cycle": []}), Group("none", [])],
)
PIPE = Screen()


def lines(on: Screen, *, details: bool = False) -> list[str]:
    return [*answer_lines(LONG, on, details=details)]


def test_a_pipe_gets_everything_but_colours_and_hints() -> None:
    shown = lines(PIPE)
    assert shown[0] == "ring,30 with dor: CAN DEADLOCK under PAUSE"
    assert shown[1] == f"  cycle of 30 channels: {' -> '.join([*CHANNELS, CHANNELS[0]])}"
    assert shown[2:32] == [f"  {line}" for line in LONG.why[1].lines]  # type: ignore[union-attr]
    assert shown[32] == "  load  12 (at least 8)"
    assert shown[34] == "  engine   load  a wide heading  a wider heading"
    assert shown[36] == "  updown  1,234           22.50                -"
    assert len(shown) == 37


def test_a_terminal_cuts_a_cycle_in_the_middle_and_lines_at_the_end() -> None:
    shown = lines(Screen(200))
    assert shown[1] == (
        "  cycle of 30 channels: s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0 -> (23 more) -> "
        "s28:2/0 -> s29:2/0 -> s30:2/0 -> s1:2/0"
    )
    assert shown[2:7] == [*(f"  h{n} waits" for n in range(4)), "  and 26 more packets (--details)"]
    assert shown[-1] == "  look for another: knotless advise ring,30"


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_lines_fit_into_a_terminal(columns: int) -> None:
    shown = lines(Screen(columns))
    assert max(map(len, shown[:-1])) <= columns
    assert any("more columns need a wider terminal" in line for line in shown) is (columns < 60)


def test_the_colour_is_on_the_word_alone() -> None:
    shown = lines(Screen(80, colour=True))
    assert shown[0] == "ring,30 with dor: \x1b[31m\x1b[1mCAN DEADLOCK\x1b[0m under PAUSE"
    assert not any("\x1b" in line for line in shown[1:])
    narrow = lines(Screen(25, colour=True))
    assert "\x1b[31m\x1b[1mCAN DEADLOCK\x1b[0m" in "\n".join(narrow)


def test_details_follow_and_cut_nothing() -> None:
    shown = lines(Screen(200), details=True)
    assert "".join(shown[1:6]).count("s15:2/0") == 1
    assert "  h29 waits" in shown
    at = shown.index("plan:")
    assert shown[at + 1 : at + 3] == ["  load bound  8", "  cycle       -"]
    assert "none:" not in shown


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure("load", 12, at_least=8.0), "12 (at least 8)"),
        (Figure("paths", 3.0, "switches", at_most=5, decimals=1), "3.0 switches, at most 5"),
        (Figure("froze", 108820.0, "us"), "108.8 ms"),
        (Figure("time", 1739.88, "us", at_least=1739.5), "1.74 ms (at least 1.74)"),
        (Figure("throughput", 0.66, "Mbit/s", whole=40), "0.66 Mbit/s of 40"),
        (
            Figure("packets", 30642, "arrived", also=(196, "under way")),
            "30,642 arrived, 196 under way",
        ),
        (Figure("packets", 30642, "arrived", also=(0, "under way")), "30,642 arrived"),
        (Figure("rules", 799, at_most=34, where="on a switch"), "799, at most 34 on a switch"),
        (Figure("mean", float("inf")), "inf"),
        (Figure("load", 1.0, "paths on the busiest channel"), "1 path on the busiest channel"),
        (Figure("with 4 links", 1, "switches", whole=16), "1 switch of 16"),
    ],
)
def test_a_figure_has_its_unit_and_its_bound(figure: Figure, text: str) -> None:
    assert figure.text == text


@pytest.mark.parametrize(
    ("environment", "colour"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ],
)
def test_only_a_terminal_has_columns_and_colour(
    environment: dict[str, str], colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"COLUMNS": "50", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert answer.screen() == Screen(50, colour)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert answer.screen() == PIPE


FOLDERS = (
    REPOSITORY / "knotless" / "cli" / "commands",
    REPOSITORY / "experiments" / "knotless_experiments" / "commands",
)
GENERATED = {"completion", "schedule", "topology", "verify"}
"""Modules that print text as it is: a script, JSON in parts, a fabric's file, another program's.

Notes on standard error are no answers."""


def test_other_commands_print_by_answers_alone() -> None:
    others = set()
    modules = {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for folder in FOLDERS
        for path in folder.rglob("*.py")
    }
    for name, path in modules.items():
        source = path.read_text()
        assert "rich.table" not in source, path
        called = {
            ast.unparse(node.func)
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Call) and "err=True" not in ast.unparse(node)
        }
        if called & {"say", "print", "click.echo", "console.print"}:
            others.add(name)
    assert others == GENERATED
