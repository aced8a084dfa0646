"""The watch over the parts of a running fabric: lengths of logs, and how parts have ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation import names as naming
from knotless.emulation import processes, state
from knotless.emulation.health import ask_supervisor
from knotless.emulation.names import Names, names_of
from knotless.emulation.parts_watch import PartsWatch, how_ended, limit_logs
from knotless.emulation.runtime import Runtime
from knotless.emulation.state import State
from tests.support.waiting import HANG_S


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    monkeypatch.setattr(naming, "RUN_DIRECTORY", tmp_path)
    own = names_of("watched")
    own.directory.mkdir()
    return own


@pytest.fixture
def runtime(names: Names) -> Runtime:
    return Runtime(names, State(names.name, "ring,4", processes.ourselves()))


def supervisor_lines(names: Names) -> list[str]:
    log = names.log_file("supervisor")
    return [line.split(" ", 2)[2] for line in log.read_text().splitlines()] if log.exists() else []


def spawn(runtime: Runtime, role: str, code: str) -> subprocess.Popen[bytes]:
    return runtime.spawn(role, [sys.executable, "-c", code])


def test_how_each_part_has_ended_is_written_once(runtime: Runtime, names: Names) -> None:
    watch = PartsWatch(runtime)
    lives = spawn(runtime, "lives", "input = __import__('signal').pause()")
    killed = spawn(runtime, "killed", "__import__('signal').pause()")
    failed = spawn(runtime, "failed", "raise SystemExit(3)")
    killed.send_signal(signal.SIGKILL)
    killed.wait(HANG_S)
    failed.wait(HANG_S)
    for _ in range(2):
        watch.look()
        assert supervisor_lines(names) == [
            f"the failed (pid {failed.pid}) has ended: exit status 3",
            f"the killed (pid {killed.pid}) has ended: ended by SIGKILL",
        ]
    lives.kill()
    lives.wait(HANG_S)
    watch.look()
    assert supervisor_lines(names)[2:] == [
        f"the lives (pid {lives.pid}) has ended: ended by SIGKILL"
    ]


def test_a_part_that_ends_while_it_is_looked_at_has_a_status_the_next_time(
    runtime: Runtime, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = PartsWatch(runtime)
    part = spawn(runtime, "part", "__import__('signal').pause()")
    monkeypatch.setattr(processes, "alive", lambda _: False)
    watch.look()
    assert supervisor_lines(names) == []
    part.kill()
    part.wait(HANG_S)
    watch.look()
    assert supervisor_lines(names) == [f"the part (pid {part.pid}) has ended: ended by SIGKILL"]


def test_the_end_of_a_part_that_another_process_has_started(runtime: Runtime, names: Names) -> None:
    """A restarted controller is no child of the owner; the one before it still is."""
    watch = PartsWatch(runtime)
    before = spawn(runtime, "controller", "__import__('signal').pause()")
    before.terminate()
    before.wait(HANG_S)
    with subprocess.Popen([sys.executable, "-c", "__import__('signal').pause()"]) as other:
        identity = processes.identify(other.pid)
        assert identity is not None
        later = State(
            names.name, "ring,4", processes.ourselves(), processes={"controller": identity}
        )
        state.write(names, later)
        watch.look()
        assert supervisor_lines(names) == [
            f"the controller (pid {before.pid}) has ended: ended by SIGTERM"
        ]
        other.kill()
        other.wait(HANG_S)
    watch.look()
    assert supervisor_lines(names)[1:] == [
        f"the controller (pid {other.pid}) has ended: another process had started it, which alone"
        " knows how"
    ]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0, "exit status 0"),
        (-15, "ended by SIGTERM"),
        (-64, "ended by SIGRTMAX"),
        (-99, "ended by signal 99"),
    ],
)
def test_exit_statuses_in_words(status: int, text: str) -> None:
    assert how_ended(status) == text


def test_a_long_log_begins_anew_and_its_writer_goes_on(names: Names) -> None:
    log = names.log_file("ovs-vswitchd")
    kept = log.with_name("ovs-vswitchd.log.1")
    with log.open("ab", buffering=0) as writer:
        for number in range(5):
            writer.write(b"%d" % number * 60)
            limit_logs(names, 100)
            assert log.stat().st_size <= 100
        assert (kept.read_bytes(), log.read_bytes()) == (b"2" * 40 + b"3" * 60, b"4" * 60)
        writer.write(b"x" * 1000)
        limit_logs(names, 100)
        assert (log.stat().st_size, kept.read_bytes()) == (0, b"x" * 100)
        writer.write(b"y")
        assert log.read_bytes() == b"y"
    assert {file.name for file in names.directory.iterdir()} == {log.name, kept.name}


def test_the_owner_tells_which_parts_run_until_it_stops(runtime: Runtime, names: Names) -> None:
    watch = PartsWatch(runtime)
    lives = spawn(runtime, "lives", "__import__('signal').pause()")
    ended = spawn(runtime, "ended", "pass")
    ended.wait(HANG_S)
    watch.start()
    try:
        for _ in range(2):
            assert ask_supervisor(names) == {"ended": False, "lives": True}
    finally:
        watch.stop()
        lives.kill()
        lives.wait(HANG_S)
    with pytest.raises(EmulationError, match="the supervisor does not answer"):
        ask_supervisor(names)
