"""The wheel with its extras, Debian's Open vSwitch and Mininet: fabrics run without a checkout."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.wheel import Environment, build, installed

pytestmark = pytest.mark.long
NAME = f"test-wheel-{os.getpid()}"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    wheel = build(tmp_path_factory.mktemp("wheel"))
    folder = tmp_path_factory.mktemp("installed")
    with installed(folder, wheel, "[controller,results,web]", system=True) as venv:
        yield venv
        venv.knotless("down", "--name", NAME)


def test_a_fabric_runs_and_ends(environment: Environment) -> None:
    options = ("--name", NAME, "--port", "0", "--rest-port", "0")
    done = environment.knotless("up", "ring,4", "--engine", "updown", *options)
    assert done.returncode == 0, done.stderr
    shown = environment.knotless("status", "--name", NAME, "--json")
    assert shown.returncode == 0, shown.stderr
    (fabric,) = json.loads(shown.stdout)["fabrics"]
    assert fabric["controller"]["ready"] is True
    checked = environment.knotless("check", "--live", "--name", NAME, "--json")
    assert (checked.returncode, json.loads(checked.stdout)["acyclic"]) == (0, True)
    assert environment.knotless("down", "--name", NAME).returncode == 0
    assert not Path("/run/knotless", NAME).exists()


def test_the_prompt_opens(environment: Environment, tmp_path: Path) -> None:
    commands = tmp_path / "commands"
    commands.write_text("pingall\ndeadlock\n")
    options = f"--name {NAME} --port 0 --rest-port 0"
    script = f"knotless lab ring,4 --engine updown {options} <{commands}"
    done = environment.run(["sh", "-c", script])
    assert done.returncode == 0, done.stderr
    assert "0% dropped (12/12 received)" in done.stdout + done.stderr


def test_an_experiment_runs(environment: Environment, tmp_path: Path) -> None:
    done = environment.knotless("run", "deadlock", "--quick", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {row["deadlock"] for row in rows} == {True, False}
    (report,) = tmp_path.glob("results/deadlock-*/report.html")
    assert report.stat().st_size > 10_000
