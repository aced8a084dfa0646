"""Real-time priority of the parts of a fabric that others wait for."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

PRIORITY = 2
"""Real-time priority of switches, our controllers, and programs that measure; the emulator has 3.

Virtual time waits for switches, so it must not matter what else the machine does. The kernel also
finds a processor for a real-time thread at once; it wakes others on the processor of the emulator,
which goes on to send (docs/decisions/real-time-switches.md). And virtual time goes on while a
program waits for a processor: one that measures times would measure the machine.
"""
REVALIDATOR = "revalidator"
"""First letters of the names of those threads of Open vSwitch that check its cached entries. Each
change of rules makes them check all, while others wait for the switches: they have one priority
less."""


def has_revalidator(pid: int) -> bool:
    """Return whether a process has a thread that is a :data:`REVALIDATOR`."""
    tasks = Path(f"/proc/{pid}/task").glob("*/comm")
    with suppress(OSError):
        return any(task.read_text().startswith(REVALIDATOR) for task in tasks)
    return False


def prioritise(pid: int = 0, priority: int = PRIORITY) -> None:
    """Give all threads of a process (0: this one) real-time priority, if that is permitted.

    What they start later inherits it. Threads that are a :data:`REVALIDATOR` have one less.
    """
    with suppress(PermissionError, ProcessLookupError, FileNotFoundError):
        for task in Path(f"/proc/{pid or 'self'}/task").iterdir():
            is_revalidator = (task / "comm").read_text().startswith(REVALIDATOR)
            own = os.sched_param(priority - is_revalidator)
            os.sched_setscheduler(int(task.name), os.SCHED_RR, own)
