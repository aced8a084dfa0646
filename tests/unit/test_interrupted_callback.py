"""Ctrl-C while Python calls a function that lets no exception pass, such as a finalizer."""

from __future__ import annotations

import subprocess
import sys

LIMIT_S = 60
COMMAND = f"""
import os
import signal
import time

import knotless.main
from knotless.__main__ import start


class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)


def command():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Held()
    time.sleep({LIMIT_S})


knotless.main.main = command
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
