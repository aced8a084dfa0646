"""Work that switches wait for, in a thread with the priority of the main one.

A fabric of ours gives its controller real-time priority, but not the threads that this starts
(``SCHED_RESET_ON_FORK``): such a thread runs while switches are idle. The new routes that it
computes, and the lock of the interpreter that it holds, must not wait for that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def with_own_priority(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function returns; meanwhile this thread has the priority of the main one.

    If that is not permitted, the function is called all the same.
    """
    thread, main = 0, os.getpid()
    before = os.sched_getscheduler(thread), os.sched_getparam(thread)
    with suppress(PermissionError):
        os.sched_setscheduler(thread, os.sched_getscheduler(main), os.sched_getparam(main))
    try:
        return function(*args)
    finally:
        os.sched_setscheduler(thread, *before)
