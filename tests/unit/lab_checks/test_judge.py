"""Programs of students that never end, or end the process that judges them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from knotless.base.errors import PlanError
from knotless.cli import user_code
from knotless.lab_checks.judge import judged
from knotless.lab_checks.lab import LabError, Work
from knotless.routing.graphs.channels import channels_of
from knotless.routing.graphs.task import Task
from knotless.routing.path_function import path_by_steps
from knotless.topologies import load

ENGINE = """
from knotless.routing.engine import Engine

def turn(task):
    {body}

ENGINE = Engine(name="mine", summary="mine", route=turn)
"""


def engine(folder: Path, body: str) -> Work:
    (folder / "my_engine.py").write_text(ENGINE.format(body=body))
    return Work(folder)


def test_an_engine_that_never_ends_is_named_with_its_line(tmp_path: Path) -> None:
    engine(tmp_path, "while True: pass")
    program = (
        "import sys; from knotless.lab_checks import judge; judge.CPU_LIMIT_S = 3;"
        " judge.main('9', 'results', sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["judgement"] == {
        "answers": [],
        "engine": [
            f"{tmp_path}/my_engine.py, line 5: turn has not ended after 3 s of processor time:"
            " does it go in a circle?"
        ],
    }


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("import os; os._exit(1)", "the process that judges it was ended by itself"),
        ("import os; os.kill(os.getpid(), 9)", "the process that judges it was ended by signal 9"),
    ],
)
def test_an_engine_that_ends_its_process_ends_no_other(
    body: str, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(LabError, match=complaint):
        judged(9, "results", engine(tmp_path, body), quiet=True)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("return {}[(0, None)]", "line 5: there is no key (0, None) (on mesh,4,4)"),
        ("return [0] * 10**10", "it needs more memory than it may have: does it go in a circle?"),
        ("print('noise'); return 1 / 0", "line 5: ZeroDivisionError: division by zero"),
    ],
)
def test_errors_are_lines_that_students_understand(
    body: str, complaint: str, tmp_path: Path
) -> None:
    (line,) = judged(9, "results", engine(tmp_path, body), quiet=True)["engine"]
    assert complaint in line


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        (lambda at, _end: at ^ 1, "path from s1 to s4: after s1 s2 comes s1 again: it goes in a"),
        (
            lambda at, _end: at + 2,
            r"path from s1 to s4: after s1 comes 2, which is no neighbour: 1 \(s2\), 3 \(s4\)",
        ),
        (lambda _at, _end: None, "comes None, which is no neighbour"),
    ],
)
def test_a_walk_that_goes_wrong_names_its_switches(steps: object, complaint: str) -> None:
    ring = load("ring,4")
    task = Task(ring, channels_of(ring), vcs=None, select="low-port", root=None)
    with pytest.raises(PlanError, match=complaint):
        path_by_steps(task, steps)(0, 3)  # type: ignore[arg-type]


def test_code_that_computes_for_long_is_named_while_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, said = str(tmp_path / "mine.py"), threading.Event()
    lines: list[str] = []

    def say(text: str, *, err: bool) -> None:
        assert err
        lines.append(text)
        said.set()

    monkeypatch.setattr(user_code, "say", say)
    monkeypatch.setattr(user_code, "LOOK_EVERY_S", 0.001)
    end = user_code.watch(file)
    program = "def turn(is_said):\n    while not is_said():\n        pass\nturn(said.is_set)\n"
    exec(compile(program, file, "exec"), {"said": said})  # noqa: S102 - written here
    end()
    assert lines[0].startswith(f"knotless: {file}, line ")
    assert lines[0].endswith(": turn has not ended after 5 s; Ctrl-C ends it")
