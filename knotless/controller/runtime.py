"""Time, waiting, threads and sockets of the controller.

No other file of this package reads a clock, starts a thread, opens a socket or handles a signal,
and only the background process (:mod:`knotless.controller.updates.worker`) waits elsewhere. They
run on Eventlet here, as Ryu does: *green* threads, of which one runs until it waits. Event handlers
must not wait; what takes long runs in a thread of the system (:func:`in_thread`) while green
threads go on.
"""

from __future__ import annotations

import _imp
import logging
import resource
import secrets
import signal
import ssl
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import eventlet
from eventlet import patcher, tpool
from eventlet.green import socket
from eventlet.green.ssl import GreenSSLContext
from eventlet.queue import Empty, Full, LightQueue
from ryu.lib import hub

from knotless.base.errors import KnotlessError
from knotless.base.ports import address_family, free_port

Item = TypeVar("Item")
Result = TypeVar("Result")

_LOG = logging.getLogger("knotless.controller")
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

    An exception ends the thread and is logged; KeyboardInterrupt ends the process. The thread has
    ``kill()`` and ``link(function, *args)``, which calls a function when it has ended.
    """
    return eventlet.spawn(_run, function, *args)


def spawn_after(seconds: float, function: Callable[..., object], *args: object) -> Any:
    """Call a function in a green thread after some time; the result has ``cancel()``."""
    return eventlet.spawn_after(seconds, _run, function, *args)


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
    """
    while _imp.lock_held():
        sleep(0.001)
    result: Result = tpool.execute(function, *args)
    return result


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


def listen(address: tuple[str, int], backlog: int) -> Any:
    """Return a listening socket; ``backlog`` connections may wait to be accepted."""
    family = address_family(address[0])
    return eventlet.listen(address, family=family, backlog=backlog, reuse_port=False)


def connect_unix(path: Path, timeout_s: float) -> Any:
    """Return a connection to a socket of the file system, whose operations end after a time.

    Raises OSError.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
    except BaseException:
        connection.close()
        raise
    return connection


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


def allow_open_files() -> None:
    """Use as many open files as this process may: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# --- the process -----------------------------------------------------------------------------


def random_bytes(count: int) -> bytes:
    """Return bytes that nobody can guess."""
    return secrets.token_bytes(count)


def handle_signal(number: int, handler: Callable[[int, Any], None] | signal.Handlers) -> None:
    """Have a signal handled; a function may do nothing that waits."""
    signal.signal(number, handler)


def signals(number: int) -> Generator[None]:
    """Yield each time after a signal has come, once for several that come meanwhile.

    A handler of a signal may do nothing but wake up the green thread that waits here.
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
    while sleeper.recv(1024):
        yield


def blocking_subprocess() -> Any:
    """Return the module ``subprocess`` without Eventlet's changes, whose pipes block no thread."""
    return _SUBPROCESS
