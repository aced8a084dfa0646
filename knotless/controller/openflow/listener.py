"""The OpenFlow listener: accepts connections, in TLS if that is wanted, each behind a guard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from knotless.controller import runtime
from knotless.controller.openflow.stream import Counts, GuardedStream, LimitedLog
from knotless.controller.openflow.tls import HandshakeError, handshake

MAX_CONNECTIONS = 4096
"""Connections at once: 1,000 switches, each twice while it reconnects, and some more."""
BACKLOG = 1024
"""Connections that the kernel holds until they are accepted: all switches may come at once."""
ACCEPT_PAUSE_S = 0.1
ACCEPT_GAP_S = 0.001
"""Between two connections others are served. Those that came one after the other also time out one
after the other."""
Serve = Callable[[GuardedStream, list[bytes]], object]
"""Serves a connection until it ends, on which a switch has sent these messages."""


class GuardedConnections:
    """Serves each connection behind a guard, by ``serve``.

    With ``context`` only connections in TLS whose certificate it accepts are served.
    """

    def __init__(self, counts: Counts, serve: Serve, context: Any = None) -> None:
        self._counts, self._serve, self._context = counts, serve, context
        self._log = LimitedLog()
        self._open = 0

    def __call__(self, connection: Any, address: object) -> None:
        """Serve one connection until it ends."""
        if self._open >= MAX_CONNECTIONS:
            self._counts.closed.inc()
            self._log.warn(address, f"is closed: there are {self._open} connections already")
            connection.close()
            return
        self._open += 1
        try:
            if self._context is not None:
                connection = handshake(connection, self._context)
            stream = GuardedStream(connection, address, self._log, self._counts)
            try:
                # Both sides greet at once: who says nothing gets no objects and threads.
                if (greeting := stream.greeting()) is not None:
                    self._serve(stream, greeting)
            finally:
                stream.close()
        except HandshakeError as reason:
            self._counts.closed.inc()
            self._log.warn(address, f"is refused: {reason}")
        except OSError:
            # It was gone before it could be used.
            connection.close()
        finally:
            self._open -= 1


class Listener:
    """Listens on an address, and goes on when the system refuses a connection."""

    def __init__(
        self, address: tuple[str, int] | Path, serve: Callable[[Any, object], object]
    ) -> None:
        self._server = runtime.listen(address, BACKLOG)
        self._address = address
        self._serve = serve
        self._log = LimitedLog()

    def close(self) -> None:
        """Accept no more connections, once nobody serves them; those that are open go on."""
        self._server.close()

    def serve_forever(self) -> None:
        """Serve each connection in a green thread of its own."""
        while True:
            try:
                connection, address = self._server.accept()
            except OSError as error:
                # Too many open files, or the connection is gone already.
                self._log.warn("a switch", f"cannot be accepted: {error.strerror or error}")
                runtime.sleep(ACCEPT_PAUSE_S)
                continue
            # The other end of a Unix socket has no address.
            runtime.spawn(self._serve, connection, address or self._address)
            runtime.sleep(ACCEPT_GAP_S)
