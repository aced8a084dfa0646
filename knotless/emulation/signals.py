"""Signals that end a running fabric: seen at once, acted on once, and never during clean-up."""

from __future__ import annotations

import atexit
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)
SAME_REQUEST_S = 1.0
"""Signals that follow within this time are the same request: ``knotless down`` sends TERM and
HUP, a terminal that closes often two HUPs, and each would interrupt what the one before began."""
WAKE_S = 0.5


def end_at_signal() -> None:
    """From now on TERM and HUP raise SystemExit, so that a fabric ends in good order.

    Python runs a handler only between its own instructions. A signal that arrives just before a
    system call that blocks (the prompt's select(2), pause(2)) would therefore not be seen until
    that returns. A timer interrupts such calls every :data:`WAKE_S` seconds. Calls that can be
    restarted go on: the prompt would lose a character of which the write(2) is interrupted.
    """
    last = float("-inf")

    def leave(number: int, _frame: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() - last > SAME_REQUEST_S:
            last = time.monotonic()
            raise SystemExit(128 + number)

    for number in ENDING:
        signal.signal(number, leave)
    signal.signal(signal.SIGALRM, lambda _number, _frame: None)
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, WAKE_S, WAKE_S)
    # Python resets the handlers before it has ended: the timer would then kill it.
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C, TERM and HUP to the end of the block: cut short, it would leave remains."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
    try:
        for number in former:
            signal.signal(number, lambda number, _frame: came.append(number))
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
