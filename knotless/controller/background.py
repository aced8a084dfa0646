"""Work that can wait, in a background process with the lowest priority.

In a thread it would take the interpreter's lock from what switches wait for. The process is started
by the first call, and ends with the controller. It runs ``python -m
knotless.controller.background``, reads calls from its standard input and writes results to its
standard output.
"""

from __future__ import annotations

import ctypes
import logging
import os
import posix
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.controller.packing import Packing

NOTHING = Packing()
"""The packing of what refers to nothing that both processes have."""
MOST_STARTS = 3
"""How often the process is started: one that ends by itself has too little memory, or a fault."""
_LOG = logging.getLogger("knotless.background")
_LENGTH = struct.Struct("<Q")
_PR_SET_PDEATHSIG = 1
_AUTOGROUP = Path("/proc/self/autogroup")


class BackgroundError(KnotlessError):
    """The process has ended too often."""


class Background:
    """Calls functions in the other process, one after the other.

    A call blocks its thread: a green one must not make it, nor may two threads at the same time.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._shared: Packing | None = None

    def call(self, packing: Packing, function: Callable[..., object], *args: object) -> bytes:
        """Return what a function returns, packed by ``packing``, as its arguments are.

        If the process ends, another one is started, at most :data:`MOST_STARTS` in all; then
        BackgroundError is raised.
        """
        while True:
            process = self._running()
            shared = b"" if packing is self._shared else NOTHING.pack(packing.shared)
            self._shared = packing
            try:
                _write(process.stdin, shared)
                _write(process.stdin, packing.pack((function, args)))
                return _read(process.stdout)
            except (OSError, EOFError):
                _LOG.warning("the process that plans ahead has ended")
                self.close()

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process, self._shared = self._process, None, None
        if process is None:
            return
        process.kill()
        if process.returncode is None:
            _, status = posix.waitpid(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            if self._starts >= MOST_STARTS:
                raise BackgroundError(f"the process that plans ahead has ended {MOST_STARTS} times")
            self._starts += 1
            self._process = _unpatched_subprocess().Popen(
                [sys.executable, "-m", "knotless.controller.background", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,
                bufsize=0,
            )
        return self._process


def _unpatched_subprocess() -> Any:
    """Return the module without Eventlet's changes: its pipes would not block a thread."""
    from eventlet import patcher  # the other process does not need it

    return patcher.original("subprocess")


# Functions of posix: Eventlet's of os would wait for a pipe of which the other end is closed.


def _write(stream: Any, message: bytes) -> None:
    left = memoryview(_LENGTH.pack(len(message)) + message)
    while left:
        left = left[posix.write(stream.fileno(), left) :]


def _read(stream: Any) -> bytes:
    (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    return _read_exactly(stream, length)


def _read_exactly(stream: Any, length: int) -> bytes:
    found = bytearray()
    while len(found) < length:
        part = posix.read(stream.fileno(), length - len(found))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def _serve(parent: int) -> None:
    """Answer calls until the controller ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # the controller's may be real-time
    os.nice(19)
    with suppress(OSError):  # the kernel may not group processes by session
        _AUTOGROUP.write_text("19")
    # What is printed by mistake must not become part of a result.
    results, sys.stdout = sys.stdout, sys.stderr
    packing = NOTHING
    with suppress(EOFError):
        while True:
            shared, call = _read(sys.stdin), _read(sys.stdin)
            if shared:
                packing = Packing(NOTHING.unpack(shared))
            function, args = packing.unpack(call)
            _write(results, packing.pack(function(*args)))


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
