"""Says where the code of a user computes, if it does so for long: it may never end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType

from knotless.cli.output import say

LONG_S = 5
"""Time for which the code is seen to run until it is said, in looks."""
LOOK_EVERY_S = 1.0


def watch(file: str) -> Callable[[], None]:
    """Look from another thread whether this one runs a file's code, and say once where.

    Returns the function that ends the looks.
    """
    ended = threading.Event()
    looks = (threading.get_ident(), file, ended)
    threading.Thread(target=_watch, args=looks, daemon=True).start()
    return ended.set


def _watch(thread: int, file: str, ended: threading.Event) -> None:
    looks, frame = 0, None
    while looks < LONG_S:
        if ended.wait(LOOK_EVERY_S):
            return
        frame = _frame_in(file, sys._current_frames().get(thread))
        looks = 0 if frame is None else looks + 1
    if frame is not None:
        code = frame.f_code
        where = f"{file}, line {frame.f_lineno}: {code.co_name}"
        say(f"knotless: {where} has not ended after {LONG_S} s; Ctrl-C ends it", err=True)


def _frame_in(file: str, frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of a file's code; None if none is on the stack."""
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame
