"""Whatever the names in files of others: one line, no control of terminals, no markup."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import KnotlessError
from knotless.base.printable import (
    MAX_NAME,
    brief,
    drawn_text,
    html_text,
    json_text,
    log_text,
    protect_logs,
)
from knotless.cli.groups import OF_EXPERIMENTS, commands
from knotless.cli.main import main
from knotless.results.plots import new_figure, save
from knotless.shown import Comparison, Figures
from knotless.topologies import load
from knotless.topologies.formats.files import to_json
from tests.support.forged_inputs import originals, rules, stored_run
from tests.support.hostile_names import (
    LETTER,
    NAMES,
    judge,
    judge_drawing,
    judge_page,
    names,
    with_name,
)
from tests.support.readable_fabrics import WRITERS

ROOT = {
    *("up", "down", "lab", "top", "web", "traffic", "freeze", "release", "change", "cut", "mend"),
    *("switch", "mn", "exec", "attach", "link"),
    *("drain", "undrain", "controller", "probe", "capture", "record", "lab-check"),
}
"""Commands that need root, or a running fabric; ``lab-check`` runs programs of students."""

COMMANDS: dict[str, list[list[str]]] = {
    "topology": [["FABRIC"], ["FABRIC", "--json"], ["FABRIC", "--draw", "d.svg"], ["NAME"]],
    "plan": [
        ["FABRIC", "--engine", "updown"],
        ["FABRIC", "--engine", "updown", "--json"],
        ["FABRIC", "--engine", "updown,dor", "--compare"],
        ["FABRIC", "--engine", "updown", "--explain"],
        ["FABRIC", "--engine", "NAME"],
        ["FABRIC", "--root", "NAME"],
        ["FABRIC", "--out", "NAME/x"],
        ["FABRIC", "--endpoints", "request-reply"],
        ["FABRIC", "--endpoints", "NAME"],
    ],
    "advise": [["FABRIC", "--engine", "updown"], ["FABRIC", "--engine", "updown", "--json"]],
    "flows": [["FABRIC", "--engine", "updown", "--out", "rules"], ["FABRIC", "--out", "NAME/x/y"]],
    "export": [["FABRIC", "--engine", "updown", "--to", "l2", "--out", "bridges"]],
    "schedule": [["FABRIC"], ["FABRIC", "--hosts", "NAME"], ["FABRIC", "--json"]],
    "check": [["FOLDER"], ["FOLDER", "--json"], ["FOLDER", "--draw", "d.svg"],
              ["FOLDER", "--pair", "NAME", "NAME"], ["FOLDER", "--routes", "bgp"], ["NAME"],
              ["FOLDER", "--endpoints", "request-reply"]],
    "triage": [["FOLDER"], ["NAME"]],
    "verify": [["NAME", "NAME"], ["FOLDER", "NAME"]],
    "analyse": [["FABRIC", "--pattern", "shift:1", "--engine", "updown"],
                ["FABRIC", "--pattern", "NAME"]],
    "simulate": [["FABRIC", "--pattern", "shift:1", "--duration", "50", "--engine", "updown"],
                 ["ring,3", "--trace", "TRACE"], ["FABRIC", "--send", "NAME"]],
    "replay": [["NAME"]],
    "status": [["--name", "NAME"]],
    "completion": [["NAME"]],
    "help": [["NAME"]],
}  # fmt: skip
"""Arguments of each command without root. In capitals: what the test makes, with the name."""
CASES = [(command, words) for command, lines in COMMANDS.items() for words in lines]


def test_no_command_without_root_is_forgotten() -> None:
    assert set(COMMANDS) == set(commands()) - ROOT - set(OF_EXPERIMENTS)


def run(*words: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(words), prog_name="knotless")


def named_fabric(name: str, place: int) -> str:
    """Return a fabric as JSON that has ``name`` as its own, or as that of a switch or host."""
    values: dict[str, Any] = {**to_json(load("ring,4"))}
    if place == 0:
        values["name"] = name
    else:
        values["switches" if place == 1 else "hosts"][1]["name"] = name
    return json.dumps(values)


def arguments(words: list[str], name: str, place: int) -> Iterator[str]:
    """Make the files of a command in the current folder; yield its arguments."""
    for word in words:
        if word == "FABRIC":
            Path("fabric.json").write_text(named_fabric(name, place % 3))
            yield "./fabric.json"
        elif word == "FOLDER":
            for file, data in rules().items():
                Path("folder").mkdir(exist_ok=True)
                Path("folder", file).write_bytes(data)
            paths = sorted(Path("folder").iterdir())
            path = paths[place % len(paths)]
            path.write_bytes(with_name(path, place, name, everywhere=place % 2 == 0))
            yield "folder"
        elif word in ("TRACE", "SWEEP"):
            path = Path("messages.csv" if word == "TRACE" else "sweep.yaml")
            path.write_bytes(originals()[path.name])
            path.write_bytes(with_name(path, place, name, everywhere=False))
            yield str(path)
        elif word == "RUN":
            Path("run").mkdir(exist_ok=True)
            path = Path("run", "run.json")
            path.write_bytes(stored_run(place % 7)[1])
            path.write_bytes(with_name(path, place, name, everywhere=False))
            yield "run"
        else:
            yield word.replace("NAME", name)


@pytest.mark.parametrize("case", range(len(CASES)), ids=[" ".join([a, *b]) for a, b in CASES])
def test_a_name_controls_no_terminal(case: int) -> None:
    """An eighth of the names: of the 8 commands in a row, each has others."""
    for place in range(case % 8, len(NAMES), 8):
        one_case(*CASES[case], NAMES[place], place * 7 + place // 3)


@pytest.mark.long
@pytest.mark.parametrize("case", range(len(CASES)), ids=[" ".join([a, *b]) for a, b in CASES])
def test_no_name_controls_a_terminal(case: int) -> None:
    for place, name in enumerate(NAMES):
        one_case(*CASES[case], name, place * 7 + place // 3)


@pytest.mark.examples(0.4)
@given(st.sampled_from(CASES), names, st.integers(0, 999))
def test_any_name_controls_no_terminal(case: tuple[str, list[str]], name: str, place: int) -> None:
    one_case(*case, name, place)


def one_case(command: str, words: list[str], name: str, place: int) -> None:
    with TemporaryDirectory() as folder, chdir(folder):
        line = [command, *arguments(words, name, place)]
        done = run(*line)
        judge(done, as_json="--json" in words)
        for drawing in Path().glob("*.svg"):
            judge_drawing(drawing)
        for page in Path().glob("*/report.html"):
            judge_page(page.read_text())


@pytest.mark.thin(8)
@pytest.mark.parametrize("form", WRITERS)
def test_names_in_files_of_switches(form: str, tmp_path: Path) -> None:
    folder = WRITERS[form](tmp_path / "whole")
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    first = list(WRITERS).index(form) % 4
    for number, name in list(enumerate(NAMES))[first::4]:
        path = paths[number % len(paths)]
        kept = path.read_bytes()
        path.write_bytes(with_name(path, number * 13, name, everywhere=number % 2 == 0))
        as_json = ["--json"] if number % 3 == 0 else []
        judge(run("check", str(folder), *as_json), as_json=bool(as_json))
        path.write_bytes(kept)


@given(names)
def test_each_medium(name: str) -> None:
    assert log_text(name).replace("\n", "").isprintable()
    assert all(line.startswith("    ") for line in log_text(name).split("\n")[1:])
    assert json.loads(json_text(name)) == name
    assert json_text(name).isprintable()
    judge_page(html_text(name))
    assert drawn_text(drawn_text(name)) == drawn_text(name)
    assert len(str(KnotlessError(f"no {name!r}"))) <= MAX_NAME + 3
    page = Figures(name, {name: name}, name)
    text = page._repr_html_() + Comparison(name, (name,), ((name,),), name)._repr_html_()
    judge_page(text)
    assert text.count("<b>") == 2
    assert repr(page).replace("\n", "").isprintable()


@pytest.mark.thin(8)
@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_shows_a_name_as_it_is(name: str, tmp_path: Path) -> None:
    """Titles, labels, and ticks with names; numbers of a logarithmic axis stay mathematics."""
    shown = name[:200]
    figure = new_figure(4, 3)
    axes = figure.add_subplot()
    axes.set_title(shown)
    axes.plot([1, 2], [1, 1000])
    axes.set_xticks([1, 2], [shown, "b"])
    axes.set_yscale("log")
    axes.legend([shown])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph|.*constrained_layout|.*tight")
        save(figure, tmp_path, "plot")
    judge_drawing(tmp_path / "plot.svg")
    assert "mathdefault" in axes.yaxis.get_ticklabels()[1].get_text()


def test_a_log_has_one_entry_for_a_name(caplog: pytest.LogCaptureFixture) -> None:
    """Ryu's and other libraries' logs too, and tracebacks."""
    kept = logging.getLogRecordFactory()
    protect_logs()
    try:
        for name in NAMES:
            logging.getLogger("other").warning("%s has gone", name)
            try:
                raise ValueError(name)
            except ValueError:
                logging.getLogger("knotless.x").exception("failed")
    finally:
        logging.setLogRecordFactory(kept)
    assert caplog.text.replace("\n", "").isprintable()
    assert not [line for line in caplog.text.split("\n") if line.startswith("root logged in")]


def test_long_names_are_cut_where_they_stand() -> None:
    name = LETTER * 300
    for text in (name, f"{name!r}", f'"{name}"', f"switch {name}: no port", f"({name})"):
        assert brief(text).count(LETTER) <= MAX_NAME
        assert brief(brief(text)) == brief(text)
    prose = "the hosts' ports and the switches' rules " * 9
    assert brief(prose) == prose
    assert brief(f"/home/{'a' * 300}/fabric.json").endswith("/fabric.json")
