"""Ctrl-C while Python calls a function that lets no exception pass, such as a finalizer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
        sys.exit(130)


knotless.cli.main.main = command
start()
"""


def test_ctrl_c_while_text_is_executed_gives_the_exit_status(tmp_path: Path) -> None:
    # As a module: only then does Python end by the signal.
    (tmp_path / "interrupted_exec.py").write_text(IN_EXEC)
    done = subprocess.run(
        [sys.executable, "-m", "interrupted_exec"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, REPOSITORY)))},
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 130
