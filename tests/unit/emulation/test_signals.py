"""Signals that end a fabric are neither lost nor handled twice."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys

import pytest

from knotless.emulation.signals import WAKE_S, uninterrupted
from tests.support.waiting import HANG_S

MOMENT_BEFORE = """
import ctypes, functools, operator, readline, signal
from knotless.emulation.signals import end_at_signal
end_at_signal()
flag = functools.partial(getattr(ctypes.CDLL(None), "raise"), signal.{name})
# All in C: Python has no instruction between the signal and the call at which to run the handler.
list(map(operator.call, [flag, {call}]))
"""
TWICE = """
import os, signal
from knotless.emulation.signals import end_at_signal
end_at_signal()
try:
    os.kill(os.getpid(), signal.SIGTERM)
finally:
    os.kill(os.getpid(), signal.SIGHUP)
    print("cleaned up")
"""
SLOW_END = f"""
import time
from knotless.emulation.signals import end_at_signal
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep({3 * WAKE_S})
slow = Slow()
end_at_signal()
"""
PROMPT = "mininet> "
PROMPTS = 3000
PROMPTING = f"""
import readline, signal
from knotless.emulation.signals import end_at_signal
end_at_signal()
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
for _ in range({PROMPTS}):
    input("{PROMPT}")
"""


@pytest.mark.parametrize("call", ["input", "signal.pause"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_a_moment_before_a_call_that_blocks_is_seen(
    call: str, number: signal.Signals
) -> None:
    terminal, program_side = pty.openpty()
    try:
        code = MOMENT_BEFORE.format(name=number.name, call=call)
        words = [sys.executable, "-c", code]
        done = subprocess.run(
            words, stdin=program_side, stdout=program_side, timeout=HANG_S, check=False
        )
    finally:
        os.close(terminal)
        os.close(program_side)
    assert done.returncode == 128 + number


def test_a_second_signal_does_not_interrupt_what_the_first_began() -> None:
    words = [sys.executable, "-c", TWICE]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "cleaned up\n")


def test_signals_wait_for_the_end_of_an_uninterrupted_block() -> None:
    done = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012 - its end raises
        signal.raise_signal(signal.SIGINT)
        done.append("whole")
    assert done == ["whole"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_process_that_takes_long_to_end_is_not_killed_by_the_timer() -> None:
    words = [sys.executable, "-c", SLOW_END]
    assert subprocess.run(words, timeout=HANG_S, check=False).returncode == 0


def test_the_timer_takes_no_character_from_a_prompt() -> None:
    terminal, program_side = pty.openpty()
    words = [sys.executable, "-c", PROMPTING]
    with subprocess.Popen(
        words, stdin=program_side, stdout=program_side, env={**os.environ, "TERM": "dumb"}
    ) as one:
        os.close(program_side)
        try:
            seen = ""
            while seen.count(PROMPT) < PROMPTS:
                assert select.select([terminal], [], [], HANG_S)[0], seen[-100:]
                seen += os.read(terminal, 4096).decode()
                if seen.endswith("> "):
                    assert seen.endswith(PROMPT), seen[-100:]
                    os.write(terminal, b"\n")
            assert one.wait(HANG_S) == 0
        finally:
            os.close(terminal)
