"""Stream sockets whose calls let other green threads run while they wait."""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

from knotless.controller.green import hub as hubs
from knotless.controller.green.threads import Lock, Wait, sleep

Result = TypeVar("Result")
_CHUNK_BYTES = 1 << 16
_RETRY_S = 0.01
_socket = hubs.unpatched("socket")


class Socket(AbstractContextManager["Socket"]):
    """A socket that is connected, or listens.

    A call that cannot be done at once waits, up to the time that :meth:`settimeout` has set, and
    then raises TimeoutError. One thread may receive, and one send. :meth:`close` ends their waiting
    by OSError.
    """

    def __init__(self, raw: Any) -> None:
        raw.setblocking(False)
        self._raw = raw
        self._timeout_s: float | None = None
        self._waits: dict[Wait, hubs.Call] = {}
        self.fileno = raw.fileno
        self.getsockname = raw.getsockname
        self.setsockopt = raw.setsockopt
        self.shutdown = raw.shutdown

    def __exit__(self, *_: object) -> None:
        self.close()

    def settimeout(self, seconds: float | None) -> None:
        """Set how long each call may wait; None: for ever."""
        self._timeout_s = seconds

    def accept(self) -> tuple[Socket, Any]:
        """Return the next connection and its other end's address."""
        raw, address = self._retry(self._raw.accept)
        return Socket(raw), address

    def connect(self, path: str) -> None:
        """Connect to a Unix socket; of one whose backlog is full nothing tells when it has room."""
        while (error := self._raw.connect_ex(path)) == errno.EAGAIN:
            sleep(_RETRY_S)
        if error:
            raise OSError(error, os.strerror(error))

    def recv(self, size: int) -> bytes:
        """Return what has arrived, at most ``size`` bytes; none at the end."""
        data: bytes = self._retry(self._raw.recv, size)
        return data

    def sendall(self, data: bytes | memoryview) -> None:
        """Send all of ``data``."""
        left = memoryview(data)
        while left:
            left = left[self._retry(self._raw.send, left, writing=True) :]

    def close(self) -> None:
        """Close the socket; whoever waits for it gets an error."""
        waits, self._waits = self._waits, {}
        for wait, watch in waits.items():
            watch.cancel()
            wait.end()
        self._raw.close()

    def _retry(self, call: Callable[..., Result], *args: object, writing: bool = False) -> Result:
        while True:
            try:
                return call(*args)
            except BlockingIOError:
                self._wait(writing=writing)

    def _wait(self, *, writing: bool) -> None:
        wait = Wait()
        watch = hubs.current().watch(self._raw.fileno(), wait.resume, writing=writing)
        self._waits[wait] = watch
        try:
            if not wait.until_end(self._timeout_s):
                raise TimeoutError("timed out")
        finally:
            watch.cancel()
            self._waits.pop(wait, None)


# --- TLS ---------------------------------------------------------------------------------------


class TlsContext(ssl.SSLContext):
    """A context whose connections are :class:`TlsSocket`."""

    def wrap_socket(self, sock: Any, *_: Any, server_side: bool = False, **__: Any) -> Any:
        """Return a connection in TLS; its handshake is not done yet."""
        return TlsSocket(sock, self, server_side=server_side)


class TlsSocket:
    """A connection in TLS, over a :class:`Socket`: OpenSSL sees buffers only."""

    def __init__(self, connection: Socket, context: ssl.SSLContext, *, server_side: bool) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)
        self._sending = Lock()
        self.fileno = connection.fileno
        self.getsockname = connection.getsockname
        self.setsockopt = connection.setsockopt
        self.settimeout = connection.settimeout
        self.shutdown = connection.shutdown
        self.close = connection.close

    def do_handshake(self) -> None:
        """Agree on keys, and check certificates; raises ssl.SSLError or OSError."""
        self._exchange(self._tls.do_handshake)

    def recv(self, size: int) -> bytes:
        """Return what has arrived, at most ``size`` bytes; none at the end of the connection."""
        try:
            return self._exchange(self._tls.read, size)
        except ConnectionAbortedError:
            return b""  # it has not said that it ends

    def sendall(self, data: bytes) -> None:
        """Send all of ``data``."""
        left = memoryview(data)
        while left:
            left = left[self._exchange(self._tls.write, left[:_CHUNK_BYTES]) :]

    def _exchange(self, call: Callable[..., Result], *args: object) -> Result:
        """Call OpenSSL, which may have to receive something first, and send what it wants sent."""
        while True:
            try:
                result = call(*args)
            except ssl.SSLWantReadError:
                self._send()
                data = self._connection.recv(_CHUNK_BYTES)
                if not data:
                    raise ConnectionAbortedError("the connection ended") from None
                self._incoming.write(data)
            except ssl.SSLError:
                with suppress(OSError):
                    self._send()  # why the other side is refused
                raise
            else:
                self._send()
                return result

    def _send(self) -> None:
        if self._outgoing.pending:
            with self._sending:
                self._connection.sendall(self._outgoing.read())
