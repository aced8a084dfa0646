"""Everything outside of the controller that it depends on: time, threads, sockets, files, signals.

No other file of this package reads a clock, starts a thread, opens a socket, handles a signal,
draws a random number, or reads and writes what a controller keeps on disk; what users write
(configuration, fabrics, engines, certificates, tokens) is read where it is defined. Only the
background process (:mod:`knotless.controller.updates.worker`) waits elsewhere.

Controllers run on Eventlet, as Ryu does: *green* threads, of which one runs until it waits. That
nothing else runs between two waits is guaranteed, and used everywhere: what is read and changed
between two waits needs no lock. Event handlers must not wait; what takes long runs in a thread of
the system (:func:`in_thread`) while green threads go on.

Tests run whole controllers in simulated time. They replace functions of this module, and give
Eventlet a hub whose clock is simulated (``tests/seeded``). A runtime on asyncio, for os-ken, would
replace the same functions: threads become tasks; ``Event``, ``Lock`` and ``Queue`` those of
asyncio; and since a task also runs until it waits, the guarantee above stays. But whatever waits
would have to become a coroutine, up to the event handlers.
"""

from __future__ import annotations

import _imp
import errno
import gc
import json
import logging
import os
import resource
import secrets
import signal
import ssl
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import eventlet
from eventlet import patcher, tpool
from eventlet.green import socket
from eventlet.green.ssl import GreenSSLContext
from eventlet.queue import Empty, Full, LightQueue
from ryu.lib import hub

from knotless.base import files
from knotless.base.errors import KnotlessError, fault
from knotless.base.ports import address_family, free_port

Item = TypeVar("Item")
Result = TypeVar("Result")

_LOG = logging.getLogger("knotless.controller")
_MAX_SOCKET_PATH = 107
"""Bytes of ``sun_path`` of unix(7), without the last one."""
_MAX_ANSWER = 1 << 20
"""Bytes of an answer of Open vSwitch; the longest that is asked for has a few."""
_SUBPROCESS = patcher.original("subprocess")
"""Imported at once: an import in a thread would hold up others, see :func:`in_thread`."""
Event = hub.Event
"""A condition that green threads wait for: ``wait(timeout=None)``, ``set()``, ``clear()``."""
Lock = hub.Semaphore
"""Held by one green thread at a time, in a ``with`` statement."""


class TimeLimitError(TimeoutError):
    """An operation did not end within its time limit."""


# --- clocks and waiting ----------------------------------------------------------------------


def now_s() -> float:
    """Return the time in seconds on a clock that never goes back, for differences."""
    return time.monotonic()


def unix_time_s() -> float:
    """Return the time of day, in seconds since 1970."""
    return time.time()


def sleep(seconds: float) -> None:
    """Let other green threads run for this time; 0: once around."""
    hub.sleep(seconds)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit what runs inside.

    Raises
    ------
    TimeLimitError
        It has not ended after so many seconds.

    """
    limit = eventlet.Timeout(seconds)
    try:
        yield
    except eventlet.Timeout as timeout:
        if timeout is not limit:
            raise
        raise TimeLimitError(f"not done within {seconds:g} s") from None
    finally:
        limit.cancel()
        del limit  # its traceback holds this frame: only the garbage collector would free both


# --- threads ---------------------------------------------------------------------------------


def spawn(function: Callable[..., object], *args: object) -> Any:
    """Call a function in a green thread of its own; return the thread.

    That is for what goes on as long as the process does, or ends by itself; :class:`Threads` is for
    what can be closed.

    An exception ends the thread and is logged; KeyboardInterrupt ends the process. The thread has
    ``kill()`` and ``link(function, *args)``, which calls a function when it has ended.
    """
    return eventlet.spawn(_run, function, *args)


class Threads:
    """Green threads that end together, such as those of one controller."""

    def __init__(self) -> None:
        self._threads: dict[Any, None] = {}

    def spawn(self, function: Callable[..., object], *args: object) -> Any:
        """Call a function in a green thread of its own, as :func:`spawn` does."""
        return self._added(spawn(function, *args))

    def spawn_after(self, seconds: float, function: Callable[..., object], *args: object) -> Any:
        """Call a function in a green thread after some time; the result has ``cancel()``."""
        return self._added(eventlet.spawn_after(seconds, _run, function, *args))

    def _added(self, thread: Any) -> Any:
        self._threads[thread] = None
        thread.link(self._threads.pop)
        return thread

    def close(self) -> None:
        """End all threads, the oldest first, also those that begin meanwhile.

        Called by none of them.
        """
        while self._threads:
            next(iter(self._threads)).kill()


def _run(function: Callable[..., object], *args: object) -> object:
    """Call a function; whoever joins its thread does not get its exception."""
    try:
        return function(*args)
    except hub.TaskExit:
        return None
    except Exception:  # noqa: BLE001 - others go on
        _LOG.exception("a green thread has ended")
        return None


def current_thread() -> Any:
    """Return the green thread that calls."""
    return eventlet.getcurrent()


def join(threads: Iterable[Any]) -> None:
    """Wait until all of these green threads have ended."""
    hub.joinall(list(threads))


def together(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return the results of a function, called for each item in a green thread of its own."""
    return list(eventlet.GreenPool().imap(function, items))


def in_thread(function: Callable[..., Result], *args: object) -> Result:
    """Return what a function returns, called in a thread of the system; green threads go on.

    While any thread looks for a module to import, Eventlet would call the function here instead,
    and all green threads would wait: so that is waited for.

    What the function raises is raised here; FaultError if it would end the thread, such as
    SystemExit from an engine of a user: Eventlet would wait for ever for the result.
    """
    while _imp.lock_held():
        sleep(0.001)
    result: Result = tpool.execute(_without_exit, function, *args)
    return result


def _without_exit(function: Callable[..., Result], *args: object) -> Result:
    try:
        return function(*args)
    except Exception:
        raise
    except BaseException as error:
        raise fault("a computation", error) from error


class Queue:
    """A queue of at most ``size`` items, or of any number, between green threads."""

    def __init__(self, size: int | None = None) -> None:
        self._items = LightQueue(size)

    def put(self, item: object) -> bool:
        """Add an item; False: the queue is full."""
        try:
            self._items.put_nowait(item)
        except Full:
            return False
        return True

    def get(self, seconds: float) -> Any:
        """Wait for the next item and return it; raises TimeLimitError if none has come in time."""
        try:
            return self._items.get(timeout=seconds)
        except Empty:
            raise TimeLimitError(f"nothing within {seconds:g} s") from None


# --- sockets ---------------------------------------------------------------------------------


def listen(address: tuple[str, int] | Path, backlog: int) -> Any:
    """Return a listening socket; ``backlog`` connections may wait to be accepted.

    A path is that of a Unix socket, to which no other user can connect.
    """
    if isinstance(address, Path):
        server = socket.socket(socket.AF_UNIX)
        address.unlink(missing_ok=True)
        server.bind(str(address))
        address.chmod(0o600)  # nobody can connect before it listens
        server.listen(backlog)
        return server
    family = address_family(address[0])
    return eventlet.listen(address, family=family, backlog=backlog, reuse_port=False)


def ask_line(path: Path, request: bytes, timeout_s: float, limit: int) -> bytes:
    """Return the line that a socket of the file system answers to a line; both end with a newline.

    Raises OSError, also if nothing can be sent or read for ``timeout_s``.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(request)
        with connection.makefile("rb") as reader:
            answer: bytes = reader.readline(limit)
    return answer


def command_open_vswitch(path: Path, commands: Iterable[str]) -> int | None:
    """Have a process of Open vSwitch perform commands, as ``ovs-appctl`` does (JSON-RPC 1.0).

    ``path`` is its control socket. Returns 0, the number of the error for which there is no
    connection, or None if it has refused a command or answered something else.
    """
    with socket.socket(socket.AF_UNIX) as connection:
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
    connection.shutdown(socket.SHUT_WR)


def tls_server() -> ssl.SSLContext:
    """Return a context for TLS connections that are accepted, without certificates yet."""
    context: ssl.SSLContext = GreenSSLContext(ssl.PROTOCOL_TLS_SERVER)
    return context


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
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
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


def signals(number: int) -> Generator[None]:
    """Yield each time after a signal has come, once for several that come meanwhile.

    A handler of a signal may do nothing but wake up the green thread that waits here. When it does
    so no longer, the signal is ignored.
    """
    sleeper, waker = socket.socketpair()
    descriptor = waker.fileno()
    # Eventlet's own would switch to another green thread first.
    write = patcher.original("os").write

    def wake(_signal: int, _frame: object) -> None:
        # What is not read yet, and fills the buffer, is enough to wake it up.
        with suppress(BlockingIOError):
            write(descriptor, b"!")

    handle_signal(number, wake)
    try:
        while sleeper.recv(1024):
            yield
    finally:  # nobody waits any more
        handle_signal(number, signal.SIG_IGN)
        sleeper.close()
        waker.close()


def blocking_subprocess() -> Any:
    """Return the module ``subprocess`` without Eventlet's changes, whose pipes block no thread."""
    return _SUBPROCESS
