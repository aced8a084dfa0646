"""Ctrl-C while Python can pass no exception on, executes text, or cannot end by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import REPOSITORY

LIMIT_S = 60
COMMAND = f"""
import os
import signal
import time

import knotless.cli.main
from knotless.__main__ import start


class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)


def command():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Held()
    time.sleep({LIMIT_S})


knotless.cli.main.main = command
start()
"""


def test_ctrl_c_in_a_finalizer_ends_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * LIMIT_S,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "knotless: interrupted\n")


IN_EXEC = """
import sys

import knotless.cli.main
from knotless.__main__ import start


def command():
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        sys.exit({status})


knotless.cli.main.main = command
start()
"""


@pytest.mark.parametrize("status", [0, 130])
def test_ctrl_c_while_text_is_executed_gives_the_exit_status(tmp_path: Path, status: int) -> None:
    # As a module: only then does Python end by the signal.
    (tmp_path / "interrupted_exec.py").write_text(IN_EXEC.format(status=status))
    done = subprocess.run(
        [sys.executable, "-m", "interrupted_exec"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, REPOSITORY)))},
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == status


BESIDE_A_THREAD = """
import select
import sys
import threading
import time

import knotless.cli.main
from knotless.__main__ import start


def command():
    # It holds the lock of standard input, with which Python cannot end.
    threading.Thread(target=sys.stdin.buffer.read, daemon=True).start()
    while select.select([0], [], [], 0)[0]:
        time.sleep(0.01)
    sys.exit(130)


knotless.cli.main.main = command
start()
"""


def test_threads_that_still_run_after_ctrl_c_do_not_change_the_exit_status() -> None:
    command = [sys.executable, "-c", BESIDE_A_THREAD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"a")
        process.stdin.flush()
        assert process.wait(LIMIT_S) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
