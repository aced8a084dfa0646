"""Processes, identified by pid and start time.

A pid can be reused by another process. Signals are sent through a pidfd that is opened before the
start time is compared, so they never reach another process. psutil lists processes, but does not
identify them: its start times move when the clock is set (docs/decisions/libraries.md).
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from knotless.emulation.names import MARK, NETNS_DIRECTORY

_PROC = Path("/proc")


@dataclass(frozen=True, order=True)
class Process:
    """A process: ``start`` is its start time in clock ticks since boot (proc(5), field 22)."""

    pid: int
    start: int


def identify(pid: int) -> Process | None:
    """Return the process that now has this ``pid``, or None if there is none or only a zombie."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command may contain spaces and parentheses: split after the last parenthesis.
    fields = text[text.rindex(")") + 2 :].split()
    if fields[0] in "ZX":
        return None
    return Process(pid, int(fields[19]))


def alive(process: Process) -> bool:
    """Tell whether this same process is still running."""
    return identify(process.pid) == process


def is_stopped(pid: int) -> bool:
    """Tell whether a process exists and a signal, or a debugger, has stopped it."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text[text.rindex(")") + 2 :][:1] in "Tt"


def ourselves() -> Process:
    """Return this process."""
    process = identify(os.getpid())
    if process is None:  # pragma: no cover - this process is not a zombie
        raise ProcessLookupError(os.getpid())
    return process


def marked(name: str) -> set[Process]:
    """Processes that were started with the mark of the fabric called ``name``."""
    members = {
        identify(process.pid)
        for process in psutil.process_iter(["environ"])
        if (process.info["environ"] or {}).get(MARK) == name
    }
    return {process for process in members if process is not None}


def living_in(namespaces: Iterable[str]) -> set[Process]:
    """Return the processes in any of the named network namespaces; missing ones have none."""
    inodes = set()
    for namespace in namespaces:
        try:
            status = (NETNS_DIRECTORY / namespace).stat()
        except OSError:
            continue
        inodes.add((status.st_dev, status.st_ino))
    # A name whose namespace is gone is a plain file, without processes.
    members = set()
    for pid in psutil.pids() if inodes else ():
        try:
            status = (_PROC / str(pid) / "ns" / "net").stat()
        except OSError:
            continue
        if (status.st_dev, status.st_ino) in inodes:
            members.add(identify(pid))
    return {process for process in members if process is not None}


def family() -> set[int]:
    """Pids of this process and its ancestors, whom it must never end."""
    return {os.getpid(), *(process.pid for process in psutil.Process().parents())}


def end(processes: Iterable[Process], *, patience_s: float = 3.0) -> None:
    """End processes: TERM (and HUP for shells), then KILL after ``patience_s``.

    Returns when all have ended, or two seconds after KILL.
    """
    open_fds: dict[int, int] = {}
    for process in processes:
        try:
            fd = os.pidfd_open(process.pid)
        except ProcessLookupError:
            continue
        if alive(process):
            open_fds[fd] = process.pid
        else:
            os.close(fd)
    for wanted, wait_s in (
        ((signal.SIGTERM, signal.SIGHUP), patience_s),
        ((signal.SIGKILL,), 2.0),
    ):
        for fd in open_fds:
            for number in wanted:
                try:
                    signal.pidfd_send_signal(fd, number)
                except ProcessLookupError:
                    break
        _await_exits(open_fds, wait_s)
    for fd in open_fds:
        os.close(fd)


def await_exit(process: Process, wait_s: float) -> bool:
    """Wait for a process to end; return whether it has."""
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    open_fds = {fd: process.pid} if alive(process) else {}
    if not open_fds:
        os.close(fd)
    _await_exits(open_fds, wait_s)
    for left in open_fds:
        os.close(left)
    return not open_fds


def _await_exits(open_fds: dict[int, int], wait_s: float) -> None:
    """Wait until the pidfds in ``open_fds`` report their exits; close and remove those."""
    poll = select.poll()
    for fd in open_fds:
        poll.register(fd, select.POLLIN)
    deadline = time.monotonic() + wait_s
    while open_fds and (left_s := deadline - time.monotonic()) > 0:
        for fd, _ in poll.poll(left_s * 1000):
            poll.unregister(fd)
            del open_fds[fd]
            os.close(fd)
