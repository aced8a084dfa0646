"""Connections between a switch, or an operator, and a controller: bytes in order, with delays."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from knotless.controller import runtime

if TYPE_CHECKING:
    from tests.seeded.hub import Process
    from tests.seeded.world import World

_FASTEST_S, _SLOWEST_S = 0.0001, 0.002
_WINDOW_BYTES = 256 << 10
"""What is sent and not taken yet; more has the sender wait."""


class Peer(Protocol):
    """The end of a connection that is not a controller's."""

    def received(self, data: bytes) -> None:
        """Take bytes that have arrived."""

    def ended(self) -> None:
        """Take the end of what the controller sends."""


class Stream:
    """A connection; what a peer does is called on behalf of the outside world."""

    def __init__(self, world: World, process: Process, name: str, peer: Peer) -> None:
        self.world, self.process, self.name, self.peer = world, process, name, peer
        self.socket = StreamSocket(self)
        self.is_cut = False
        """Nothing arrives any more, in either direction, and nobody is told."""
        self.is_deaf = False
        """The controller has ended the connection, and the peer does not know."""
        self.waiting_bytes = 0
        self._last_s = {"down": 0.0, "up": 0.0}

    def _at_s(self, direction: str) -> float:
        draws, now_s = self.world.draws, self.world.hub.now_s
        delay_s = draws.between(_FASTEST_S, _SLOWEST_S, "delay", self.name, direction)
        self._last_s[direction] = max(self._last_s[direction], now_s + delay_s)
        return self._last_s[direction]

    def _down(self, what: Callable[..., None], *args: Any) -> None:
        def arrive() -> None:
            if not (self.is_cut or self.is_deaf):
                what(*args)

        hub = self.world.hub
        hub.call_at(self._at_s("down"), hub.outside, arrive)

    def send_down(self, data: bytes) -> None:
        """Send bytes of the controller to the peer."""
        self.waiting_bytes += len(data)
        self._down(self.peer.received, data)

    def end_down(self) -> None:
        """Tell the peer that the controller sends nothing more."""
        self._down(self.peer.ended)

    def taken(self, count: int) -> None:
        """Record that the peer has taken bytes."""
        full = self.waiting_bytes > _WINDOW_BYTES
        self.waiting_bytes -= count
        if full and self.waiting_bytes <= _WINDOW_BYTES:
            self._up(self.socket.may_send.set)

    def _up(self, what: Callable[..., None], *args: Any) -> None:
        def arrive() -> None:
            if not self.is_cut:
                what(*args)

        self.world.hub.call_at(self._at_s("up"), self.process, arrive)

    def send_up(self, data: bytes) -> None:
        """Send bytes of the peer to the controller."""
        self._up(self.socket.arrived, data)

    def end_up(self) -> None:
        """Tell the controller that the connection is over."""
        self._up(self.socket.arrived, b"")


class StreamSocket:
    """A controller's end of a stream, as Eventlet's sockets behave."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._arrived: deque[bytes] = deque()
        self._is_ended = self._is_shut = self._is_closed = False
        self._timeout_s: float | None = None
        self._may_receive = runtime.Event()
        self.may_send = runtime.Event()

    def arrived(self, data: bytes) -> None:
        """Take bytes of the peer, or none at the end."""
        if data:
            self._arrived.append(data)
        else:
            self._is_ended = True
        self._may_receive.set()

    def recv(self, size: int) -> bytes:
        """Return what has arrived, at most ``size`` bytes; none at the end."""
        while not self._arrived:
            if self._is_closed:
                raise OSError(errno.EBADF, "closed")
            if self._is_ended:
                return b""
            self._may_receive.clear()
            if not self._may_receive.wait(self._timeout_s):
                raise TimeoutError("timed out")
        data = self._arrived.popleft()
        if len(data) > size:
            self._arrived.appendleft(data[size:])
        return data[:size]

    def sendall(self, data: bytes) -> None:
        """Send bytes; waits while the peer takes nothing."""
        stream = self._stream
        while stream.waiting_bytes > _WINDOW_BYTES:
            self.may_send.clear()
            if not self.may_send.wait(self._timeout_s):
                raise TimeoutError("timed out")
        if self._is_shut or self._is_closed:
            raise OSError(errno.EPIPE, "Broken pipe")
        stream.world.about_to("send", stream.process)
        stream.send_down(bytes(data))

    def setsockopt(self, *_: object) -> None:
        """Ignore options."""

    def settimeout(self, seconds: float | None) -> None:
        """Limit how long each call waits."""
        self._timeout_s = seconds

    def shutdown(self, _how: int) -> None:
        """Send nothing more."""
        if not self._is_shut:
            self._is_shut = True
            self._stream.end_down()

    def close(self) -> None:
        """Close the connection."""
        if not self._is_closed:
            self.shutdown(1)
            self._is_closed = True
            self._may_receive.set()


class ListeningSocket:
    """A socket that accepts streams."""

    def __init__(self) -> None:
        self._waiting: deque[Stream] = deque()
        self._ready = runtime.Event()
        self.is_open = True

    def offer(self, stream: Stream) -> None:
        """Add a connection that is to be accepted."""
        self._waiting.append(stream)
        self._ready.set()

    def accept(self) -> tuple[StreamSocket, tuple[str, int]]:
        """Wait for the next connection."""
        while not self._waiting:
            self._ready.clear()
            self._ready.wait()
        return self._waiting.popleft().socket, ("10.0.0.1", 1)

    def getsockname(self) -> tuple[str, int]:
        """Return an address."""
        return ("127.0.0.1", 1)

    def close(self) -> None:
        """Accept nothing more."""
        self.is_open = False
