"""Ryu's OpenFlow listener with a guard on each connection.

:func:`install` has Ryu's own OpenFlow handler start this listener. Ryu itself is not changed: its
datapath reads from a socket that hands on only what the guard lets pass.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from ryu.controller import controller as ryu_controller
from ryu.lib import hub

from controller.southbound.guard import Guard, Limits
from controller.southbound.wire import WireError

MAX_CONNECTIONS = 4096
"""Connections at once: 1,000 switches, each twice while it reconnects, and some more."""
LOG_INTERVAL_S = 10.0
"""One line at most in this time about connections that were refused."""
_CHUNK_BYTES = 1 << 16
_LOG = logging.getLogger("knotless.southbound")


class RefusalLog:
    """Log lines about refused connections, few enough that nobody can fill a disk with them."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self._unsaid = 0

    def refuse(self, address: object, reason: object) -> None:
        """Log why a connection was closed, or count it where a line was logged just before."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            self._unsaid += 1
            return
        more = f" (and {self._unsaid} more connections before)" if self._unsaid else ""
        _LOG.warning("closed the connection from %s: %s%s", address, reason, more)
        self._next_s, self._unsaid = now_s + LOG_INTERVAL_S, 0


class GuardedSocket:
    """A connected socket as Ryu's datapath uses it; it ends where the guard refuses something."""

    def __init__(self, connection: Any, address: object, limits: Limits, log: RefusalLog) -> None:
        self._connection, self._address, self._log = connection, address, log
        self._guard = Guard(limits, time.monotonic())
        self._passed = b""

    def recv(self, size: int) -> bytes:
        """Return at most ``size`` bytes of whole, checked messages; none at the end."""
        try:
            while not self._passed:
                try:
                    data = self._connection.recv(_CHUNK_BYTES)
                except TimeoutError:
                    self._guard.check_handshake(time.monotonic())
                    raise
                if not data:
                    return b""
                self._passed = self._guard.received(data, time.monotonic())
                # One who sends without a pause must not keep the others waiting.
                hub.sleep(0)
        except WireError as reason:
            self._log.refuse(self._address, reason)
            return b""
        part, self._passed = self._passed[:size], self._passed[size:]
        return part

    def sendall(self, data: bytes) -> None:
        """Send ``data``, which may ask the switch for answers."""
        self._guard.sent(data)
        self._connection.sendall(data)

    def setsockopt(self, *option: Any) -> None:
        """Set an option of the connection."""
        self._connection.setsockopt(*option)

    def settimeout(self, seconds: float | None) -> None:
        """Set how long :meth:`recv` and :meth:`sendall` wait."""
        self._connection.settimeout(seconds)

    def shutdown(self, how: int) -> None:
        """Shut the connection down."""
        self._connection.shutdown(how)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class GuardedConnections:
    """Serves each connection by Ryu's datapath behind a guard."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.log = RefusalLog()
        self.open = 0

    def __call__(self, connection: Any, address: object) -> None:
        """Serve one connection until it ends."""
        if self.open >= MAX_CONNECTIONS:
            self.log.refuse(address, f"there are {self.open} connections already")
            connection.close()
            return
        self.open += 1
        try:
            guarded = GuardedSocket(connection, address, self.limits, self.log)
            _RYU_DATAPATH_FACTORY(guarded, address)
        except OSError:
            connection.close()
        finally:
            self.open -= 1


_RYU_DATAPATH_FACTORY = ryu_controller.datapath_connection_factory


def install(limits: Limits | None = None) -> GuardedConnections:
    """Have Ryu's OpenFlow listener, which is started after all applications, use the guard."""
    guarded = GuardedConnections(limits)
    ryu_controller.datapath_connection_factory = guarded
    return guarded
