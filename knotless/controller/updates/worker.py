"""Work that can wait, in a background process with the lowest priority.

In a thread it would take the interpreter's lock from what switches wait for. The process is started
by the first call, and ends with the controller. It runs ``python -m
knotless.controller.updates.worker``, reads calls from its standard input and writes results to its
standard output.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import posix
import select
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.base.memory import collector_paused
from knotless.base.nice import set_nice

MAX_STARTS = 3
"""Starts of the process: one that ends by itself has too little memory, or a fault."""
_LOG = logging.getLogger("knotless.background")
_LENGTH = struct.Struct("<Q")
LOWEST_NICE = 19


# --- objects as bytes -------------------------------------------------------------------------


class Packing:
    """Packs objects that refer to ``shared``; the other process has these in the same order.

    An update refers to most of what switches hold. What both processes know is sent as its number,
    so an update is small, and what is read from its bytes refers to the reader's own objects.
    """

    def __init__(self, shared: Sequence[object] = ()) -> None:
        self.shared = tuple(shared)
        self._numbers = {id(one): number for number, one in enumerate(self.shared)}

    def pack(self, what: object) -> bytes:
        """Return an object as bytes, without the values of cached properties."""
        packed = io.BytesIO()
        _Pickler(packed, self._numbers).dump(what)
        return zlib.compress(packed.getvalue(), 1)

    def unpack(self, packed: bytes) -> Any:
        """Return the object that these bytes of our own describe."""
        with collector_paused():
            return _Unpickler(io.BytesIO(zlib.decompress(packed)), self.shared).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, numbers: dict[int, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers = numbers

    def persistent_id(self, what: object) -> int | None:
        return self._numbers.get(id(what))

    def reducer_override(self, what: Any) -> Any:
        computed = frozenset() if isinstance(what, type) else _cached(type(what))
        if not computed:
            return NotImplemented
        make, how, _, *rest = what.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        # A copy first: another thread may compute a property at this moment.
        state = dict(vars(what))
        return (
            make,
            how,
            {name: value for name, value in state.items() if name not in computed},
            *rest,
        )


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, number: int) -> object:
        return self._shared[number]


_CACHED: dict[type, frozenset[str]] = {}


def _cached(kind: type) -> frozenset[str]:
    """Return the names of the cached properties of a class."""
    if kind not in _CACHED:
        values = [item for base in kind.__mro__ for item in vars(base).items()]
        names = (name for name, value in values if isinstance(value, cached_property))
        _CACHED[kind] = frozenset(names)
    return _CACHED[kind]


NOTHING = Packing()
"""The packing of what refers to nothing that both processes have."""


# --- the process -----------------------------------------------------------------------------


class WorkerError(KnotlessError):
    """The process has ended too often."""


class Worker:
    """Calls functions in the other process, one after the other.

    A call blocks its thread: a green one must not make it, nor may two threads at the same time.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._shared: Packing | None = None

    def call(self, packing: Packing, function: Callable[..., object], *args: object) -> bytes:
        """Return what a function returns, packed by ``packing``, as its arguments are.

        If the process ends, another one is started, at most :data:`MAX_STARTS` in all; then
        WorkerError is raised.
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
            if self._starts >= MAX_STARTS:
                raise WorkerError(f"the process that plans ahead has ended {MAX_STARTS} times")
            self._starts += 1
            from knotless.controller import runtime  # the other process does without Eventlet

            self._process = runtime.blocking_subprocess().Popen(
                [sys.executable, "-m", "knotless.controller.updates.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,
                bufsize=0,
            )
        return self._process


# Functions of posix: Eventlet's of os would wait for a pipe of which the other end is closed.


def _write(stream: Any, message: bytes) -> None:
    left = memoryview(_LENGTH.pack(len(message)) + message)
    while left:
        left = left[posix.write(stream.fileno(), left) :]


def _read(stream: Any) -> bytes:
    (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    return _read_exactly(stream, length)


def _read_exactly(stream: Any, length: int) -> bytes:
    received = bytearray()
    while len(received) < length:
        part = posix.read(stream.fileno(), length - len(received))
        if not part:
            raise EOFError
        received += part
    return bytes(received)


def _end_with(stream: Any) -> None:
    """End this process when nobody can write to the stream any more: the controller has ended.

    The kernel's signal at a parent's death would come already when the *thread* ends that has
    started this process.
    """
    poll = select.poll()
    poll.register(stream.fileno(), 0)  # hanging up is always told
    poll.poll()
    os._exit(1)


def _serve() -> None:
    """Answer calls until the controller ends."""
    threading.Thread(target=_end_with, args=(sys.stdin,), daemon=True).start()
    set_nice(0, LOWEST_NICE)  # the controller's priority may be real-time
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
    _serve()
