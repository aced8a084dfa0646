"""Engines in files of users: ``--engine ./my_engine.py``."""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.errors import PlanError
from knotless.cli.main import main
from knotless.controller import config
from knotless.forwarding.from_plan import state_of_plan
from knotless.lab_checks.lab import labs
from knotless.routing.engine import loaded_engine
from knotless.routing.graphs.channels import channels_of
from knotless.routing.graphs.task import Task
from knotless.routing.path_function import routes_of_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.check import verdict_of

SOLUTION = labs()[9].folder / "solution" / "my_engine.py"
UPDOWN = labs()[5].folder / "solution" / "my_updown.py"
ENGINE = "from knotless.routing.engine import Engine\nENGINE = Engine('a', 'b', lambda task: {})\n"


def written(path: Path, text: str) -> Path:
    path.write_text(textwrap.dedent(text))
    return path


def task_of(spec: str) -> Task:
    fabric = load(spec)
    return Task(fabric, channels_of(fabric), None, "spread", None)


def same_path(path: list[int], _start: int, _end: int) -> list[int]:
    return path


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, words)
    return done.exit_code, done.output


@pytest.mark.parametrize("spec", ["mesh,4,4", "mesh,3,2,hosts=3", "mesh,2,2"])
def test_the_engine_of_a_file_plans_like_one_of_ours(spec: str) -> None:
    plan = make_plan(load(spec), loaded_engine(str(SOLUTION)))
    verdict = verdict_of(state_of_plan(plan), "pause")
    assert verdict.ok
    assert verdict.mean_switches == verdict_of(state_of_plan(make_plan(plan.fabric))).mean_switches


@pytest.mark.parametrize("spec", ["irregular-a", "fattree2,8", "random,20,degree=4,hosts=2,seed=7"])
def test_up_down_of_a_file_takes_paths_as_long_as_ours(spec: str) -> None:
    own = make_plan(load(spec), loaded_engine(str(UPDOWN)))
    ours = make_plan(load(spec), "updown", root="s1")
    verdicts = [verdict_of(state_of_plan(plan), "pause") for plan in (own, ours)]
    assert [verdict.ok for verdict in verdicts] == [True, True]
    assert verdicts[0].mean_switches == verdicts[1].mean_switches


def test_commands_take_a_file_and_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(SOLUTION.read_text())
    monkeypatch.chdir(tmp_path)
    code, text = run("plan", "mesh,3,3", "--engine", "./mine.py")
    assert code == 0
    assert text.splitlines()[0].endswith("mine.py: cannot deadlock under PAUSE")
    code, text = run("plan", "mesh,3,3", "--engine", "updown,mine.py", "--compare")
    assert code == 0
    assert [line.split()[0] for line in text.splitlines()[3:5]] == ["updown", "mine.py"]
    assert run("flows", "mesh,3,3", "--engine", "mine.py", "--out", "rules")[0] == 0
    assert run("check", "rules")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py", "rules"]  # no byte code


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def route(:\n", "mine.py, line 1: invalid syntax"),
        ("x = 1\ny = x / 0\n", "mine.py, line 2: ZeroDivisionError: division by zero"),
        ("import no_such_module\n", "mine.py, line 1: ModuleNotFoundError: No module named"),
        (
            "from routing.engine import Engine\n",
            "mine.py, line 1: there is no module routing: import knotless.routing",
        ),
        ("import common\n", "mine.py, line 1: there is no module common: import knotless.base"),
        ("raise SystemExit(3)\n", "mine.py: it ends Python by itself"),
        ("x = 1\n", "mine.py: it defines 0 engines, and must define one: ENGINE = Engine("),
        (f"{ENGINE}OTHER = Engine('c', 'd', print)\n", "mine.py: it defines 2 engines"),
        (ENGINE.replace("{}", "task.nothing"), "mine.py, line 2: AttributeError: 'Task' object"),
    ],
)
def test_a_mistake_in_the_file_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "mine.py", text)
    with pytest.raises(PlanError) as caught:
        make_plan(load("ring,4"), loaded_engine(str(path)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    code, shown = run("plan", "ring,4", "--engine", str(path))
    assert (code, shown.count("\n")) == (2, 1)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    code, text = run("plan", "ring,4", "--engine", str(tmp_path / "none.py"))
    assert (code, text.count("\n")) == (2, 1)
    assert "none.py: cannot be read: No such file" in text


def test_a_name_alone_loads_no_file(tmp_path: Path) -> None:
    path = written(tmp_path / "secret.py", "raise AssertionError('it was run')\n")
    with pytest.raises(PlanError, match="is no loaded engine"):
        make_plan(load("ring,4"), str(path))


def test_the_controllers_configuration_may_name_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOLUTION.read_text())
    path = written(tmp_path / "knotless.yaml", "fabric: mesh,3,3\nengine: mine.py\n")
    settings = config.read(path)
    assert settings.engine == str(tmp_path / "mine.py")
    assert make_plan(config.load_fabric(settings, path), settings.plan_request).vcs == 1
    written(tmp_path / "mine.py", "x = ")
    with pytest.raises(config.ConfigError, match=r"knotless.yaml: engine: .*mine.py, line 1: "):
        config.read(path)


def test_paths_that_are_none_are_refused() -> None:
    task = task_of("ring,4")
    cases: list[tuple[list[int], str]] = [
        ([], "path from s1 to s2: it ends at s1"),
        ([99], "path from s1 to s2: there is no channel 99"),
        ([2], "does not begin at s1, where the path is"),
    ]
    for path, message in cases:
        with pytest.raises(PlanError, match=message):
            routes_of_paths(task, partial(same_path, path))


def test_paths_that_form_no_tree_need_trees() -> None:
    task = task_of("ring,4")
    there = {
        (int(a), int(b)): c
        for c, (a, b) in enumerate(zip(task.channels.tail, task.channels.head, strict=True))
    }

    def path(u: int, v: int) -> list[int]:
        step = 1 if v == (u + 3) % 4 else -1  # the long way round to both neighbours
        switch, path = u, []
        while switch != v:
            path.append(there[switch, (switch + step) % 4])
            switch = (switch + step) % 4
        return path

    with pytest.raises(PlanError, match="the paths from s1 form no tree: they enter s"):
        routes_of_paths(task, path)
    trees = task.channels.core.breadth_first_trees()
    assert (routes_of_paths(task, path, trees).tree_channels == trees).all()
