"""Text from files of others controls no terminal: no escape codes, no markup of Rich."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.printable import printable
from knotless.cli.main import main
from knotless.topologies import load
from knotless.topologies.formats.files import to_json
from tests.support import REPOSITORY

CODE = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"
MARKUP = "x[/b][link=http://evil]:skull:[red]"


def run(*words: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(words), prog_name="knotless")


def harmless(done: Result) -> None:
    """Fail if a byte of the output could control a terminal."""
    for text in (done.stdout, done.stderr):
        assert all(c.isprintable() or c == "\n" for c in text), repr(text)


@given(st.text())
def test_printable_text_stays_and_other_text_can_be_told_apart(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert (shown == text) == text.isprintable()


@pytest.fixture
def named(tmp_path: Path) -> str:
    """A fabric whose name is markup."""
    values: dict[str, Any] = {**to_json(load("ring,4")), "name": MARKUP}
    path = tmp_path / "named.json"
    path.write_text(json.dumps(values))
    return str(path)


@pytest.mark.parametrize(
    "words",
    [
        ["topology"],
        ["plan", "--engine", "updown"],
        ["plan", "--engine", "updown,dor", "--compare"],
        ["advise", "--engine", "updown"],
        ["analyse", "--pattern", "shift:1"],
        ["simulate", "--pattern", "shift:1", "--duration", "20000"],
    ],
)
def test_the_name_of_a_fabric_is_no_markup(words: list[str], named: str) -> None:
    done = run(words[0], named, *words[1:])
    assert done.exit_code == 0, done.stderr
    harmless(done)
    assert MARKUP in done.stdout.replace("\n", "")


def test_the_name_of_a_checked_fabric_is_no_markup(named: str, tmp_path: Path) -> None:
    out = str(tmp_path / "rules")
    assert run("flows", named, "--engine", "updown", "--out", out).exit_code == 0
    done = run("check", out)
    harmless(done)
    assert MARKUP in done.stdout.replace("\n", "")


def test_notes_of_files_show_codes_as_escapes(tmp_path: Path) -> None:
    data = "&#x9b;31m&#x202e;evil"
    file = tmp_path / "some.graphml"
    file.write_text(
        f'<graphml><key id="k" for="node" attr.name="{data}"/><graph><node id="a">'
        f'<data key="k">1</data></node></graph></graphml>'
    )
    done = run("plan", str(file))
    harmless(done)
    assert r"data of nodes that are not read: \x9b31m\u202eevil; read are" in done.stderr


@pytest.mark.parametrize("place", ["description", "complaint", "far"])
def test_the_findings_of_a_check_show_codes_as_escapes(place: str, tmp_path: Path) -> None:
    text = (REPOSITORY / "tests/data/fabrics/loopback-cable.ibnetdiscover").read_text()
    if place == "description":
        text = text.replace('# "sw" base', f'# "{CODE}" base').replace('# "a"', f'# "{CODE}a"')
    elif place == "complaint":
        text = f"ibwarn: [1] {CODE}\n{text}"
    else:
        text = text.replace("4xEDR", f"4xEDR {CODE}")
    file = tmp_path / "net.txt"
    file.write_text(text)
    for words in (["check", str(file)], ["plan", str(file)], ["topology", str(file)]):
        done = run(*words)
        assert done.exit_code in (0, 1), done.stderr
        harmless(done)


def test_commands_print_by_these_functions_alone() -> None:
    """A new command cannot forget it: ``click.echo`` is for generated text."""
    generated = {"completion.py", "schedule.py"}
    for path in (REPOSITORY / "knotless" / "cli" / "commands").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = ast.unparse(node.func)
                assert called != "click.echo" or path.name in generated, path
                if called.endswith("table.add_row"):
                    assert "rich_text" in ast.unparse(node), (path, node.lineno)
