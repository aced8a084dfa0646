"""``knotless exec`` and its program: signals, the terminal, exit statuses and output."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.terminal import Terminal
from tests.support.waiting import HANG_S, until

RUN = """
import sys
from knotless.cli.commands.exec import run_on

class Here:
    environment = {}
    def program_on(self, host, argv):
        return list(argv)
    def prioritise(self):
        pass

sys.exit(run_on(Here(), "h1", sys.argv[1:], lambda: None))
"""
"""The command's own part of ``knotless exec h1 PROGRAM``, without a fabric.

Signals that the tests' own process ignores, as under nohup(1), are not ignored here.
"""
EXEC = ("env", "--default-signal", sys.executable, "-c", RUN)
LISTENER = """
import os, signal, sys
numbers = {getattr(signal, f"SIG{name}") for name in sys.argv[1:]}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
print("pid", os.getpid(), flush=True)
while True:
    number = signal.sigwait(numbers)
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(7)
"""
"""A program that says which signals it gets, and ends at SIGTERM."""
NUMBERS = [
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM),
]
LISTENS = (sys.executable, "-c", LISTENER, *(one.name.removeprefix("SIG") for one in NUMBERS))


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([*EXEC, *words], stdout=subprocess.PIPE, text=True) as program:
        try:
            yield program
        finally:
            program.kill()


@pytest.mark.parametrize(
    ("line", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
)
def test_the_exit_status_is_that_of_a_shell(line: str, status: int) -> None:
    done = subprocess.run([*EXEC, "sh", "-c", line], timeout=HANG_S, check=False)
    assert done.returncode == status


def test_its_end_is_seen_where_that_of_children_is_ignored() -> None:
    words = ["env", "--ignore-signal=CHLD", *EXEC, "sh", "-c", "exit 7"]
    assert subprocess.run(words, timeout=HANG_S, check=False).returncode == 7


def test_a_program_whose_reader_has_gone_ends_by_its_signal() -> None:
    with started("yes") as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "y\n"
        program.stdout.close()
        assert program.wait(HANG_S) == 128 + signal.SIGPIPE


def test_a_program_gets_each_signal_that_a_process_sends() -> None:
    with started(*LISTENS) as program:
        assert program.stdout is not None
        assert program.stdout.readline().startswith("pid ")
        for number in NUMBERS:
            program.send_signal(number)
            assert program.stdout.readline() == f"{number.name}\n"
        assert program.wait(HANG_S) == 7


def test_a_program_ends_with_the_command() -> None:
    with started(*LISTENS) as program:
        assert program.stdout is not None
        pid = int(program.stdout.readline().split()[1])
        program.kill()
        until("its end", lambda: not Path(f"/proc/{pid}/cmdline").exists())


def test_a_program_gets_the_signals_of_keys_once() -> None:
    terminal = Terminal(*EXEC, *LISTENS)
    try:
        terminal.expect("pid ")
        terminal.type("\x03")
        terminal.expect("SIGINT")
        terminal.type("\x1c")
        assert "SIGINT" not in terminal.expect("SIGQUIT")
        terminal.process.terminate()
        assert "SIGQUIT" not in terminal.expect("SIGTERM")
        assert terminal.wait() == 7
    finally:
        terminal.close()


def test_a_program_that_stops_is_a_stopped_job_and_goes_on() -> None:
    jobs = '"$@"; echo "stopped $?"; fg >/dev/null; echo "ended $?"'
    program = ("sh", "-c", "kill -STOP $$; exit 5")
    terminal = Terminal("sh", "-mc", jobs, "sh", *EXEC, *program)
    try:
        terminal.expect(f"stopped {128 + signal.SIGSTOP}")
        terminal.expect("ended 5")
        assert terminal.wait() == 0
    finally:
        terminal.close()
