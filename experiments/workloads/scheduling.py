"""Scheduling of programs on hosts: none keeps the fabric waiting.

Switches and emulator have real-time priority 2.
"""

from __future__ import annotations

import os
from contextlib import suppress

WHEN_IDLE = ("chrt", "--idle", "0")
"""Prefix of a command that may run only on otherwise idle cores. Computing, and waiting by
spinning, must not keep switches and emulator waiting, as even a process of the lowest niceness does
for milliseconds."""


def prioritise(pid: int = 0) -> None:
    """Give a process (0: this one) real-time priority 1, if that is permitted.

    Virtual time goes on while a program waits for a processor. So a program that measures times,
    next to other programs, would measure the machine.
    """
    with suppress(PermissionError, ProcessLookupError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))
