"""The state file of a running fabric, and which of its processes count as alive."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from knotless.emulation import names as naming
from knotless.emulation import processes, runtime, state
from knotless.emulation.names import Names, names_of
from knotless.emulation.processes import Process
from knotless.emulation.state import State


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    monkeypatch.setattr(naming, "RUN_DIRECTORY", tmp_path)
    mine = names_of("mine")
    mine.directory.mkdir()
    return mine


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child
        child.kill()


def test_written_files_can_be_read(names: Names) -> None:
    written = State(
        "mine",
        "ring,4",
        processes.ourselves(),
        processes={"emulator": Process(12, 34)},
        namespaces=["kn-mine"],
        settings={"vcs": None},
    )
    state.write(names, written)
    assert state.read(names) == written
    assert [path.name for path in names.directory.iterdir()] == ["state.json"]


def test_no_directory_is_no_fabric(names: Names) -> None:
    names.directory.rmdir()
    assert state.read(names) is None
    assert naming.running_names() == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"owner": 3}', '{"name": "mine", "owner": {"pid": 1}}']
)
def test_a_damaged_state_is_a_dead_fabric(names: Names, text: str) -> None:
    names.state_file.write_text(text)
    stored = state.read(names)
    assert stored is not None
    assert not stored.running
    assert naming.running_names() == ["mine"]


def test_a_reused_pid_is_not_the_process_that_was(sleeper: subprocess.Popen[bytes]) -> None:
    now = processes.identify(sleeper.pid)
    assert now is not None
    stranger = Process(now.pid, now.start - 1)
    assert processes.alive(now)
    assert not processes.alive(stranger)
    processes.end([stranger], patience_s=0.1)
    assert sleeper.poll() is None
    processes.end([now])
    assert sleeper.wait(5) != 0


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    identity = processes.identify(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.identify(child.pid) is None
    if identity is not None:
        assert not processes.alive(identity)
    child.wait()


def test_a_process_that_ignores_being_asked_is_ended() -> None:
    code = (
        "import signal; [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGHUP)]"
        "; print('deaf', flush=True); signal.pause()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout as pipe:
        assert pipe.readline() == b"deaf\n"
    identity = processes.identify(child.pid)
    assert identity is not None
    processes.end([identity], patience_s=0.05)
    assert child.wait(5) == -9


def test_a_part_is_found_by_its_mark_alone() -> None:
    name = f"test-{os.getpid()}"
    environment = {**os.environ, naming.MARK: name}
    with (
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=environment) as marked,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other,
    ):
        pids = {process.pid for process in processes.marked(name)}
        assert marked.pid in pids
        assert other.pid not in pids
        assert processes.marked(name[:-1]) == set()


SUCCESSOR = """
import signal, subprocess, sys
def end(*_):
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    sys.exit()
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGTERM, end)
print(flush=True)
signal.pause()
"""


@pytest.mark.usefixtures("names")
def test_what_a_part_starts_while_it_is_ended_is_ended_too() -> None:
    name = f"test-{os.getpid()}"
    names = names_of(name)
    names.directory.mkdir()
    command = [sys.executable, "-c", SUCCESSOR]
    environment = {**os.environ, naming.MARK: name}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as part:
        assert part.stdout is not None
        part.stdout.readline()
        runtime.sweep(names, State(name, "ring,4", processes.ourselves()))
        assert part.wait(5) == 0
    assert processes.marked(name) == set()
    assert not names.directory.exists()


def test_our_family_is_us_and_our_parents() -> None:
    assert {os.getpid(), os.getppid()} <= processes.family()


def test_a_missing_namespace_has_no_processes() -> None:
    assert processes.living_in(["kn-there-is-none"]) == set()


def test_a_proof_that_was_asked_for_and_is_not_accepted_is_a_problem(names: Names) -> None:
    assert state.proof_problems(names) == []
    state.write_proof_verdict(names, "")
    assert state.proof_problems(names) == []
    state.write_proof_verdict(names, "s1 has none")
    begin = "--proven was given, and its rules are not proven: "
    assert state.proof_problems(names) == [f"{begin}s1 has none"]
    names.proof_verdict_file.write_text("{}")
    [line] = state.proof_problems(names)
    assert line.startswith(f"{begin}{names.proof_verdict_file}: ")
