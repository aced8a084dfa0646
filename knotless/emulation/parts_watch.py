"""Looks after the parts of a running fabric: the length of their logs, and how each has ended.

It also answers for the process that owns the fabric.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from knotless.emulation import processes, state
from knotless.emulation.names import Names
from knotless.emulation.runtime import Runtime

MAX_LOG_BYTES = 5_000_000
"""A longer log becomes ``ROLE.log.1``, in place of an older one, and begins anew."""
_INTERVAL_S = 1.0


class PartsWatch:
    """A thread in the process that owns a fabric; it looks once a second.

    It writes to the log of the supervisor. To whoever connects to the supervisor's socket it tells
    in one line of JSON which parts run.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._ended: set[processes.Process] = set()
        self._is_over = threading.Event()
        self._listener: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="parts", daemon=True)

    def start(self) -> None:
        """Begin to look, and to answer; raises OSError if the socket cannot be made."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._runtime.names.supervisor_socket))
        self._listener.listen()
        self._listener.settimeout(_INTERVAL_S)
        self._thread.start()

    def stop(self) -> None:
        """Look no more: the fabric is taken down."""
        self._is_over.set()
        if self._listener is None:
            return
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends the wait for whoever asks
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        while self._listener is not None and not self._is_over.is_set():
            with suppress(OSError):  # nobody asks, or does not wait for the answer
                connection, _ = self._listener.accept()
                with connection:
                    connection.sendall(json.dumps(self._running()).encode() + b"\n")
            with suppress(OSError):  # a full disk, or files that have just gone
                self.look()

    def _running(self) -> dict[str, bool]:
        current = state.read(self._runtime.names) or self._runtime.state
        return {role: processes.alive(part) for role, part in current.processes.items()}

    def look(self) -> None:
        """Write which parts have ended since the last time and how, and limit all logs."""
        lines = list(self._newly_ended())
        if lines:
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            with self._runtime.names.log_file("supervisor").open("a", encoding="utf-8") as log:
                log.writelines(f"{now} {line}\n" for line in lines)
        limit_logs(self._runtime.names)

    def _newly_ended(self) -> Iterator[str]:
        records = state.read(self._runtime.names)
        parts = set(self._runtime.state.processes.items())
        parts |= set(records.processes.items() if records else ())
        children = {child.pid: child for child in list(self._runtime.children.values())}
        for role, process in sorted(parts):
            child = children.get(process.pid)
            status = None if child is None else child.poll()
            # A child that dies between two questions has a status the next time.
            goes_on = processes.alive(process) if child is None else status is None
            if process in self._ended or goes_on:
                continue
            self._ended.add(process)
            yield f"the {role} (pid {process.pid}) has ended: {how_ended(status)}"


def how_ended(status: int | None) -> str:
    """Describe an exit status, negative for a signal; None: another process had started it."""
    if status is None:
        return "another process had started it, which alone knows how"
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return f"ended by {signal.Signals(-status).name}"
    return f"ended by signal {-status}"


def limit_logs(names: Names, limit: int = MAX_LOG_BYTES) -> None:
    """Have each log that is longer begin anew; what it had is kept, and what was kept before not.

    Whoever writes has opened it to append, and goes on at its beginning. Of a log that has grown
    by more than the limit since the last time, the end is kept.
    """
    for log in names.directory.glob("*.log"):
        if log.stat().st_size > limit:
            _begin_anew(log, limit)


def _begin_anew(log: Path, limit: int) -> None:
    with log.open("r+b") as now, log.with_name(f"{log.name}.1").open("wb") as kept:
        now.seek(-limit, 2)
        shutil.copyfileobj(now, kept)
        now.truncate(0)
