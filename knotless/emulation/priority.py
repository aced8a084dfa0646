"""The priority of the parts of a fabric: the only place that decides it.

Virtual time never passes the arrival of a frame that is still inside Open vSwitch, so a fabric is
as correct at ordinary priority as at any other: it only takes longer. So all parts have ordinary
priority and are nice to the other programs of the machine, unless times are to be measured that
depend on it (docs/decisions/priority.md).
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import AnyStr

from knotless.base.nice import set_nice, set_thread_nice

NICE = 5
"""Niceness of all parts of a fabric and of its hosts: a third of the weight of other programs."""
SLICE_US = 100
"""How long a thread of a part runs at a time. Frames go from the emulator to Open vSwitch and back,
so the fabric is as fast as they wake up; its share of the processors stays the same."""
NICE_TRAFFIC = 10
"""Niceness of traffic in the background, which nobody measures."""
VARIABLE = "KNOTLESS_PRIORITY"
"""Environment variable that tells programs on hosts the priority of their fabric."""
REVALIDATOR = "revalidator"
"""First letters of the names of those threads of Open vSwitch that check its cached entries. Each
change of rules makes them check all, while others wait for the switches: they have one real-time
priority less."""


class Priority(StrEnum):
    """The scheduling of the parts of a fabric."""

    NORMAL = "normal"
    """As other programs, and nice to them."""
    REALTIME = "realtime"
    """Before all other programs, to measure how long repairs and takeovers take."""


class Part(StrEnum):
    """A kind of part; the values of those that a fabric starts begin the names of their roles."""

    EMULATOR = "emulator"
    SWITCHES = "ovs-vswitchd"
    DATABASE = "ovsdb-server"
    CONTROLLER = "controller"
    FORWARDER = "forwarder"
    HOST = "host"
    PROGRAM = "program"
    """A program on hosts that measures times."""

    @classmethod
    def of_role(cls, role: str) -> Part:
        """Return the kind of a part by its role, such as ``controller-2``; else ``HOST``."""
        return next((part for part in cls if role.startswith(part)), cls.HOST)


REALTIME_PRIORITIES: Mapping[Part, int] = {
    Part.EMULATOR: 3,
    Part.SWITCHES: 2,
    Part.CONTROLLER: 2,
    Part.FORWARDER: 2,
    Part.PROGRAM: 2,
}
"""Real-time priority of parts; others have ordinary priority even then.

The kernel finds a processor for a real-time thread at once; it wakes others on the processor of the
emulator, which goes on to send (docs/decisions/real-time-switches.md).
"""
default_priority: ContextVar[Priority] = ContextVar("priority", default=Priority.NORMAL)
"""The priority of fabrics for which nothing else is asked."""


def prioritise(part: Part, priority: Priority, pid: int = 0) -> None:
    """Give all threads of a process (0: this one) the priority of a part, as far as permitted.

    What they start later inherits it, but for the emulator's threads, which write captures.
    """
    if priority == Priority.NORMAL:
        set_nice(pid, NICE, SLICE_US)
    elif part in REALTIME_PRIORITIES:
        _set_realtime(pid, REALTIME_PRIORITIES[part], is_emulator=part == Part.EMULATOR)


def start_program(
    part: Part, priority: Priority, begin: Callable[[], subprocess.Popen[AnyStr]]
) -> subprocess.Popen[AnyStr]:
    """Start a program, as ``begin`` does, that is nice from its first instruction on.

    It inherits niceness from the thread that starts it: one of its own, as only root could take
    back the niceness of ours. Raises what ``begin`` raises.
    """
    if priority == Priority.NORMAL:
        with ThreadPoolExecutor(1, initializer=_be_nice) as thread:
            program = thread.submit(begin).result()
    else:
        program = begin()
    prioritise(part, priority, program.pid)
    return program


def _be_nice() -> None:
    set_thread_nice(threading.get_native_id(), NICE, SLICE_US)


def prioritise_program(pid: int = 0, environment: Mapping[str, str] = os.environ) -> None:
    """Give a program that measures times on hosts the priority that its environment asks for."""
    asked = environment.get(VARIABLE)
    prioritise(Part.PROGRAM, Priority(asked) if asked in list(Priority) else Priority.NORMAL, pid)


def _set_realtime(pid: int, priority: int, *, is_emulator: bool) -> None:
    policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK if is_emulator else os.SCHED_RR
    with suppress(PermissionError, ProcessLookupError, FileNotFoundError):
        for task in Path(f"/proc/{pid or 'self'}/task").iterdir():
            is_revalidator = (task / "comm").read_text().startswith(REVALIDATOR)
            own = os.sched_param(priority - is_revalidator)
            os.sched_setscheduler(int(task.name), policy, own)


def has_revalidator(pid: int) -> bool:
    """Return whether a process has a thread that is a :data:`REVALIDATOR`."""
    tasks = Path(f"/proc/{pid}/task").glob("*/comm")
    with suppress(OSError):
        return any(task.read_text().startswith(REVALIDATOR) for task in tasks)
    return False
