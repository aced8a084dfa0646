"""Everything outside of the controller that it depends on: time, threads, sockets, files, signals.

No other file of this package reads a clock, starts a thread, opens a socket, handles a signal,
draws a random number, or reads and writes what a controller keeps on disk; what users write
(configuration, fabrics, engines, certificates, tokens) is read where it is defined. Only the
background process (:mod:`knotless.controller.updates.worker`) waits elsewhere.

Controllers run in *green* threads (:mod:`knotless.controller.green`), of which one runs until it
waits. That nothing else runs between two waits is guaranteed, and used everywhere: what is read and
changed between two waits needs no lock. Event handlers must not wait; what takes long runs in a
thread of the system (:func:`in_thread`) while green threads go on.

Tests run whole controllers in simulated time. They replace functions of this module, and the hub by
one whose clock is simulated (``tests/seeded``).
"""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
import secrets
import signal
import ssl
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from greenlet import getcurrent

from knotless.base import files
from knotless.base.errors import KnotlessError
from knotless.base.ports import address_family, free_port
from knotless.controller.green.hub import unpatched
from knotless.controller.green.sockets import Socket, TlsContext
from knotless.controller.green.system import in_thread as in_thread
from knotless.controller.green.system import signals as signals
from knotless.controller.green.threads import Event as Event
from knotless.controller.green.threads import Lock as Lock
from knotless.controller.green.threads import Queue as Queue
from knotless.controller.green.threads import Thread
from knotless.controller.green.threads import TimeLimitError as TimeLimitError
from knotless.controller.green.threads import join as join
from knotless.controller.green.threads import sleep as sleep
from knotless.controller.green.threads import time_limit as time_limit
from knotless.controller.green.threads import together as together

_MAX_SOCKET_PATH = 107
"""Bytes of ``sun_path`` of unix(7), without the last one."""
_MAX_ANSWER = 1 << 20
"""Bytes of an answer of Open vSwitch; the longest that is asked for has a few."""
_socket, _subprocess = map(unpatched, ("socket", "subprocess"))

if sys.modules.get("eventlet"):  # by ryu-manager
    from knotless.controller.green.eventlet_hub import use_if_patched

    use_if_patched()


# --- clocks and waiting ----------------------------------------------------------------------


def now_s() -> float:
    """Return the time in seconds on a clock that never goes back, for differences."""
    return time.monotonic()


def unix_time_s() -> float:
    """Return the time of day, in seconds since 1970."""
    return time.time()


# --- threads ---------------------------------------------------------------------------------


def spawn(function: Callable[..., object], *args: object) -> Thread:
    """Call a function in a green thread of its own; return the thread.

    That is for what goes on as long as the process does, or ends by itself; :class:`Threads` is for
    what can be closed.
    """
    return Thread(function, args)


class Threads:
    """Green threads that end together, such as those of one controller."""

    def __init__(self) -> None:
        self._threads: dict[Thread, None] = {}

    def spawn(self, function: Callable[..., object], *args: object) -> Thread:
        """Call a function in a green thread of its own, as :func:`spawn` does."""
        return self._added(Thread(function, args))

    def spawn_after(self, seconds: float, function: Callable[..., object], *args: object) -> Thread:
        """Call a function in a green thread after some time, unless that is canceled."""
        return self._added(Thread(function, args, seconds))

    def _added(self, thread: Thread) -> Thread:
        self._threads[thread] = None
        thread.link(self._threads.pop)
        return thread

    def close(self) -> None:
        """End all threads, the oldest first, also those that begin meanwhile.

        Called by none of them.
        """
        while self._threads:
            next(iter(self._threads)).kill()


def current_thread() -> Any:
    """Return the green thread that calls."""
    return getcurrent()


# --- sockets ---------------------------------------------------------------------------------


def listen(address: tuple[str, int] | Path, backlog: int) -> Any:
    """Return a listening socket; ``backlog`` connections may wait to be accepted.

    A path is that of a Unix socket, to which no other user can connect.
    """
    if isinstance(address, Path):
        server = _socket.socket(_socket.AF_UNIX)
        address.unlink(missing_ok=True)
        server.bind(str(address))
        address.chmod(0o600)  # nobody can connect before it listens
    else:
        server = _socket.socket(address_family(address[0]))
        server.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        server.bind(address)
    server.listen(backlog)
    return Socket(server)


def ask_line(path: Path, request: bytes, timeout_s: float, limit: int) -> bytes:
    """Return the line that a socket of the file system answers to a line; both end with a newline.

    Raises OSError, also if nothing can be sent or read for ``timeout_s``.
    """
    with Socket(_socket.socket(_socket.AF_UNIX)) as connection:
        connection.settimeout(timeout_s)
        with time_limit(timeout_s):
            connection.connect(str(path))
        connection.sendall(request)
        answer = b""
        while len(answer) < limit and (part := connection.recv(limit - len(answer))):
            answer += part
            if part.endswith(b"\n"):
                break
    return answer


def command_open_vswitch(path: Path, commands: Iterable[str]) -> int | None:
    """Have a process of Open vSwitch perform commands, as ``ovs-appctl`` does (JSON-RPC 1.0).

    ``path`` is its control socket. Returns 0, the number of the error for which there is no
    connection, or None if it has refused a command or answered something else.
    """
    with Socket(_socket.socket(_socket.AF_UNIX)) as connection:
        try:
            _connect(connection, path)
        except TimeLimitError:
            raise
        except OSError as error:
            return error.errno or errno.EIO
        try:
            for number, command in enumerate(commands):
                request = {"id": number, "method": command, "params": []}
                connection.sendall(json.dumps(request).encode())
                answer = _answer(connection)
                if answer.get("id") != number or answer.get("error") is not None:
                    return None
        except TimeLimitError:
            raise
        except (OSError, ValueError):
            return None
    return 0


def _connect(connection: Any, path: Path) -> None:
    """Connect to a socket of the file system, whose path may be longer than addresses are."""
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH:
        connection.connect(str(path))
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _answer(connection: Any) -> dict[str, Any]:
    """Return the next JSON object of a connection; raises ValueError if something else comes."""
    text = b""
    while len(text) < _MAX_ANSWER:
        part = connection.recv(1 << 16)
        if not part:
            break
        text += part
        try:
            answer = json.loads(text)
        except ValueError:
            continue  # the rest is on the way
        except RecursionError:
            break
        if isinstance(answer, dict):
            return answer
        break
    raise ValueError("no answer")


def control_sockets(directory: Path, pattern: str) -> list[Path]:
    """Return the control sockets in a directory whose names fit a pattern, sorted."""
    return sorted(directory.glob(pattern))


def end_sending(connection: Any) -> None:
    """Tell the other side of a connection that nothing more is sent; it can still be read."""
    connection.shutdown(_socket.SHUT_WR)


def tls_server() -> ssl.SSLContext:
    """Return a context for TLS connections that are accepted, without certificates yet."""
    return TlsContext(ssl.PROTOCOL_TLS_SERVER)


def refuse_taken_port(host: str, port: int, what: str) -> None:
    """Raise KnotlessError if a port is in use, before anything else is begun."""
    try:
        free_port(port, host)
    except OSError as error:
        raise KnotlessError(
            f"cannot listen for {what} on {host} port {port}: {error.strerror};"
            " stop what listens there, or choose another port"
        ) from error


def refuse_taken_socket(path: Path, what: str) -> None:
    """Raise KnotlessError if a Unix socket cannot be made, or another process listens on it."""
    where = f"cannot listen for {what} on {path}"
    if len(os.fsencode(path)) > _MAX_SOCKET_PATH:
        raise KnotlessError(f"{where}: a path of at most {_MAX_SOCKET_PATH} bytes is possible")
    if not path.parent.is_dir():
        raise KnotlessError(f"{where}: there is no folder {path.parent}")
    if path.exists() and not path.is_socket():
        raise KnotlessError(f"{where}: it is not a socket; choose another path")
    with _socket.socket(_socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            pass  # many wait there already
        except OSError:
            return  # nobody listens there any more
    raise KnotlessError(f"{where}: another process does; stop that, or choose another path")


def allow_open_files() -> None:
    """Use as many open files as this process may: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# --- files that a controller keeps -----------------------------------------------------------


def is_kept(path: Path) -> bool:
    """Return whether there is such a file."""
    return path.exists()


def read_kept(
    path: Path, error: type[KnotlessError] = KnotlessError, limit: int = files.MAX_BYTES
) -> str | None:
    """Return the text of a file; None: there is none. Raises ``error`` if it cannot be read."""
    return files.read_text(path, error, limit) if is_kept(path) else None


def keep(
    path: Path, text: str, error: type[KnotlessError] = KnotlessError, aside: Path | None = None
) -> None:
    """Write a file, whole or not at all; raises ``error`` if that fails.

    ``aside`` is where the file that it replaces is copied to, if there is one.
    """
    if aside is not None and is_kept(path):
        files.write_whole(aside, files.read_bytes(path, error), error)
    files.write_whole(path, text, error)


def remove_kept(path: Path, error: type[KnotlessError] = KnotlessError) -> None:
    """Remove a file, if there is one; raises ``error`` if that fails."""
    try:
        path.unlink(missing_ok=True)
    except OSError as problem:
        raise error(f"{path}: cannot be removed: {files.reason(problem)}") from problem


# --- the process -----------------------------------------------------------------------------


def environment() -> Mapping[str, str]:
    """Return the environment variables."""
    return os.environ


def exit_process(status: int) -> NoReturn:
    """End the process at once: no clean-up, no waiting for threads."""
    os._exit(status)


def keep_heap() -> None:
    """Have the garbage collector look no more at what there is now."""
    gc.collect()
    gc.freeze()


def collect_garbage(*, enabled: bool) -> None:
    """Have the garbage collector run when it is due, or not at all."""
    if enabled:
        gc.enable()
    else:
        gc.disable()


def random_bytes(count: int) -> bytes:
    """Return bytes that nobody can guess."""
    return secrets.token_bytes(count)


def handle_signal(number: int, handler: Callable[[int, Any], None] | signal.Handlers) -> None:
    """Have a signal handled; a function may do nothing that waits."""
    signal.signal(number, handler)


def blocking_subprocess() -> Any:
    """Return the module ``subprocess`` without Eventlet's changes, whose pipes block no thread."""
    return _subprocess
