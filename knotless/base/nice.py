"""Niceness: the share of the processors that a process leaves to others."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_SYSCALLS: Mapping[str, int] = {"x86_64": 314, "aarch64": 274}
"""The number of sched_setattr(2)."""
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""``struct sched_attr`` of Linux, first version: size, policy, flags, nice, priority, runtime,
deadline, period."""


def set_nice(pid: int, nice: int, slice_us: int = 0) -> None:
    """Give all threads of a process (0: this one) ordinary priority and at least this niceness.

    What they start later inherits it. A ``slice_us`` is how long each runs at a time, in
    microseconds, instead of what the kernel chooses: who asks for less waits for less time, for the
    same share (EEVDF, since Linux 6.12; older kernels ignore it). Where the kernel shares
    processors among sessions first (autogroups, sched(7)), niceness counts only inside a session,
    so the session of the process gets it as well, if the process leads it. Whatever is not
    permitted stays as it is.
    """
    process = pid or os.getpid()
    for task in _numbers(Path(f"/proc/{process}/task")):
        set_thread_nice(task, nice, slice_us)
    with suppress(OSError):
        if os.getsid(process) == process:
            Path(f"/proc/{process}/autogroup").write_text(str(nice), encoding="ascii")


def set_thread_nice(task: int, nice: int, slice_us: int = 0) -> None:
    """Do what :func:`set_nice` does for one thread; programs that it starts inherit it."""
    with suppress(OSError):
        own = max(nice, os.getpriority(os.PRIO_PROCESS, task))
        if os.sched_getscheduler(task) != os.SCHED_OTHER:
            os.sched_setscheduler(task, os.SCHED_OTHER, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, task, own)
        if slice_us:
            _set_slice(task, own, slice_us)


def _set_slice(task: int, nice: int, slice_us: int) -> None:
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        return
    size = _ATTRIBUTES.size
    values = _ATTRIBUTES.pack(size, os.SCHED_OTHER, 0, nice, 0, 1000 * slice_us, 0, 0)
    ctypes.CDLL(None).syscall(number, task, values, 0)


def _numbers(folder: Path) -> list[int]:
    with suppress(OSError):
        return [int(entry.name) for entry in folder.iterdir()]
    return []
