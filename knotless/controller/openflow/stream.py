"""The messages of one connection, which a guard has checked, and what is sent in return."""

from __future__ import annotations

import logging
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from knotless.controller import runtime
from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.guard import Guard, Limits

LOG_INTERVAL_S = 10.0
"""At most one line about hostile switches is logged in this time."""
GREETING_S = Limits.handshake_s + 0.01
"""Time after which a connection that says nothing is looked at: it then has exceeded the guard's
limit. Each look would leave exceptions and frames to the garbage collector."""
IDLE_S = 5.0
"""Time after which :meth:`GuardedStream.receive` and :meth:`GuardedStream.sendall` give up."""
_CHUNK_BYTES = 1 << 16
_BOTH_DIRECTIONS = 2
"""SHUT_RDWR of shutdown(2)."""
_NO_DELAY = (6, 1, 1)
"""IPPROTO_TCP, TCP_NODELAY, on: see tcp(7)."""
_LOG = logging.getLogger("knotless.openflow")


class LimitedLog:
    """Log lines about hostile switches, few enough that nobody can fill a disk with them."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self._skipped = 0

    def warn(self, address: object, text: str) -> None:
        """Log a line about a connection, or count it if one was logged just before."""
        now_s = runtime.now_s()
        if now_s < self._next_s:
            self._skipped += 1
            return
        more = f" (and {self._skipped} such lines before)" if self._skipped else ""
        _LOG.warning("the connection from %s %s%s", address, text, more)
        self._next_s, self._skipped = now_s + LOG_INTERVAL_S, 0


class Counter(Protocol):
    """A counter of events."""

    def inc(self, amount: float = 1) -> None:
        """Count it ``amount`` times more."""


class Counts(Protocol):
    """The counters of what is kept from the controller."""

    @property
    def dropped(self) -> Counter:
        """Messages above the allowed rate."""

    @property
    def closed(self) -> Counter:
        """Connections that were closed because of what they sent, or refused."""


class Uncounted:
    """A counter that nobody reads."""

    def inc(self, amount: float = 1) -> None:
        """Count nothing."""


@dataclass
class DeferredCounts:
    """Counters that are known only later: nothing is counted before."""

    dropped: Counter = field(default_factory=Uncounted)
    closed: Counter = field(default_factory=Uncounted)

    def count_in(self, counts: Counts) -> None:
        """Count here from now on."""
        self.dropped, self.closed = counts.dropped, counts.closed


class GuardedStream:
    """A connected socket; it ends where the guard refuses something."""

    def __init__(self, connection: Any, address: object, log: LimitedLog, counts: Counts) -> None:
        self._connection, self._address, self._log = connection, address, log
        self._counts = counts
        self._guard = Guard(Limits(), runtime.now_s())
        with suppress(OSError):  # Unix sockets have no such option
            connection.setsockopt(*_NO_DELAY)

    @property
    def address(self) -> object:
        """The address of the switch, as it is logged."""
        return self._address

    @property
    def dropped(self) -> int:
        """Messages beyond their rate that the guard has dropped."""
        return self._guard.dropped

    def greeting(self) -> list[bytes] | None:
        """Wait until the switch has said something, and return it; None: it has ended."""
        self._connection.settimeout(GREETING_S)
        messages: list[bytes] | None = []
        while messages is not None and not messages:
            messages = self.receive()
        self._connection.settimeout(IDLE_S)
        return messages

    def receive(self) -> list[bytes] | None:
        """Wait for whole, checked messages.

        Returns none of them if nothing has come for some time, or nothing that may pass; None at
        the end, of which a line is logged if the guard has caused it.
        """
        try:
            try:
                data = self._connection.recv(_CHUNK_BYTES)
            except TimeoutError:
                self._guard.check_handshake(runtime.now_s())
                return []
            except ssl.SSLError as error:
                raise WireError(f"TLS ended with {error.reason or error}") from error
            except (OSError, ValueError):  # that of a socket in TLS that was shut down
                return None
            if not data:
                return None
            dropped = self._guard.dropped
            messages = self._guard.received(data, runtime.now_s())
            self._counts.dropped.inc(self._guard.dropped - dropped)
        except WireError as reason:
            self.refuse(str(reason))
            return None
        # A switch that sends without pause must not block the others.
        runtime.sleep(0)
        return messages

    def refuse(self, reason: str) -> None:
        """Count and log that the connection is closed because of the switch."""
        self._counts.closed.inc()
        self._log.warn(self._address, f"is closed: {reason}")

    def sendall(self, data: bytes) -> None:
        """Send ``data``, which may ask the switch for answers; raises OSError."""
        self._guard.sent(data)
        self._connection.sendall(data)

    def shut_down(self) -> None:
        """End the connection in both directions; whoever waits in :meth:`receive` returns."""
        with suppress(OSError):  # it has ended already
            self._connection.shutdown(_BOTH_DIRECTIONS)

    def close(self) -> None:
        """Close the connection; log what was dropped."""
        if self._guard.dropped:
            text = f"sent {self._guard.dropped} packets or echo requests above its rate: dropped"
            self._log.warn(self._address, text)
        self._connection.close()
