"""A controller that is told to end does so whatever it does at that moment."""

from __future__ import annotations

import subprocess
import sys

from tests.support.waiting import HANG_S

# The log is told to end the process in the middle of a write, when no other may begin.
INTERRUPTED = """
import io, logging, os, signal
from knotless.controller.process import leave

class Log(io.RawIOBase):
    def writable(self):
        return True

    def write(self, data):
        os.kill(os.getpid(), signal.SIGTERM)
        return len(data)

signal.signal(signal.SIGTERM, leave)
logging.basicConfig(stream=io.TextIOWrapper(io.BufferedWriter(Log()), write_through=True))
logging.warning("s1 has disconnected")
raise SystemExit(7)
"""


def test_a_signal_during_a_write_to_the_log_ends_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
