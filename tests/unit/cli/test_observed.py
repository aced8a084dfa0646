"""Which running fabric a command looks at or changes, and what it says where there is none."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.cli.commands import status
from knotless.cli.commands._observed import observed
from knotless.cli.main import main
from knotless.emulation import names as naming
from knotless.emulation import processes, requirements, state
from knotless.emulation.names import names_of
from knotless.emulation.processes import Process
from knotless.emulation.state import State

OBSERVING = (
    *(("exec", "h1", "true"), ("attach",), ("attach", "h1"), ("web",), ("top",), ("top", "--once")),
    *(("capture", "s1-s2", "f.pcap"), ("record", "f.knots"), ("check", "--live")),
)
CHANGING = (
    *(("cut", "s1-s2"), ("mend", "s1-s2"), ("link", "s1-s2"), ("drain", "s1"), ("undrain", "s1")),
    *(("freeze",), ("release",), ("change",), ("switch", "stop", "s1"), ("traffic", "stop")),
    *(("controller", "restart"), ("probe",), ("traffic", "status")),
)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no fabric on this machine, on which fabrics can run."""
    monkeypatch.setattr(naming, "RUN_DIRECTORY", tmp_path)
    monkeypatch.setattr(requirements, "why_not", lambda: None)


def runs(name: str, *, alive: bool = True) -> None:
    """Have the state of a fabric, which this process owns if it is ``alive``."""
    names_of(name).directory.mkdir()
    owner = processes.ourselves() if alive else Process(0, 0)
    state.write(names_of(name), State(name, "ring,4", owner, phase="ready"))


def call(*words: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")


@pytest.mark.parametrize("words", [*OBSERVING, *CHANGING], ids=" ".join)
def test_what_does_not_run_is_said_first(words: tuple[str, ...]) -> None:
    runs("dead", alive=False)
    done = call(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    said = "knotless: no fabric 'default' is running"
    assert done.stderr == f"{said}; 'knotless up' starts one\n"
    runs("lab2")
    runs("lab3")
    done = call(*words)
    assert done.exit_code == 2
    assert done.stderr == f"{said}; running: lab2, lab3; add --name lab2\n"


@pytest.mark.parametrize("words", CHANGING, ids=" ".join)
def test_what_changes_a_fabric_never_takes_one_by_itself(words: tuple[str, ...]) -> None:
    runs("lab2")
    done = call(*words)
    assert done.exit_code == 2
    assert done.stderr.endswith("is running; running: lab2; add --name lab2\n")


def test_what_looks_takes_the_only_fabric_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    runs("lab2")
    assert observed(None).name == "lab2"
    assert capsys.readouterr().err == "fabric lab2\n"
    runs("default")
    assert observed(None).name == "default"
    assert observed("lab2").name == "lab2"
    assert capsys.readouterr().err == ""


def test_status_and_down_of_an_absent_fabric() -> None:
    runs("lab2")
    done = call("status", "--name", "lab1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "knotless: no fabric 'lab1' is running; running: lab2; add --name lab2\n"
    )
    done = call("status", "--name", "lab1", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (2, {"fabrics": []})
    assert call("down", "--name", "lab1").exit_code == 0


def test_rights_come_before_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "why_not", lambda: "needs root")
    for words in (*OBSERVING, *CHANGING):
        done = call(*words)
        assert (done.exit_code, done.stderr[:38]) == (2, "knotless: running fabrics needs root; ")


def test_what_looks_at_a_running_fabric_tries_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def tries() -> None:
        raise AssertionError("it was tried whether fabrics can run")

    monkeypatch.setattr(requirements, "why_not", tries)
    runs("lab2")
    assert observed(None).name == "lab2"
    done = call("status", "--json")
    assert [one["name"] for one in json.loads(done.stdout)["fabrics"]] == ["lab2"]


def test_status_of_who_may_not_look_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> list[str]:
        raise PermissionError(tmp_path)

    monkeypatch.setattr(status, "running_names", refuse)
    monkeypatch.setattr(requirements, "why_not", lambda: "needs root")
    done = call("status")
    assert (done.exit_code, done.stderr[:38]) == (2, "knotless: running fabrics needs root; ")
