"""A connected socket of a switch whose bytes a test has written down."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.controller import runtime


class SwitchSocket:
    """Receives ``parts`` one after the other, or raises them; then its end."""

    def __init__(self, *parts: bytes | Exception) -> None:
        self._parts: Iterator[bytes | Exception] = iter(parts)
        self.sent = b""
        self.closed = self.shut = False

    def recv(self, _size: int) -> bytes:
        runtime.sleep(0)  # what waits to be sent arrives before the switch answers
        part = next(self._parts, b"")
        if isinstance(part, Exception):
            raise part
        return b"" if self.shut else part

    def sendall(self, data: bytes) -> None:
        if self.shut:
            raise BrokenPipeError
        self.sent += data

    def messages(self) -> list[bytes]:
        """What was sent to the switch, message by message."""
        rest, messages = self.sent, list[bytes]()
        while rest:
            length = int.from_bytes(rest[2:4], "big")
            messages.append(rest[:length])
            rest = rest[length:]
        return messages

    def setsockopt(self, *_option: object) -> None:
        pass

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def shutdown(self, _how: int) -> None:
        self.shut = True

    def close(self) -> None:
        self.closed = True
