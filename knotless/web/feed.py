"""The contents of the page at the moment, and their distribution to all open pages.

References
----------
WHATWG, HTML, section 9.2, Server-sent events.

"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from knotless.base.http_rules import LIMITS
from knotless.web.history import History
from knotless.web.picture import Picture

MAX_CLIENTS = LIMITS.streams
MAX_WAITING = 32
"""Messages that wait for one page; the oldest are dropped."""
KEPT_EVENTS = 200
HEARTBEAT_S = 10.0
_EMPTY: dict[str, Any] = {"fabric": None, "nodes": [], "channels": []}


class TooManyClientsError(Exception):
    """As many pages are open as the server serves."""


class Feed:
    """Picture, state, frames and events; a change is sent to every client.

    ``kind`` is ``live``, ``replay`` or ``verdict``; ``title`` says what the page shows.
    ``token_hint`` says where a reader finds the token that ``actions`` need.
    """

    def __init__(
        self, kind: str, title: str, actions: tuple[str, ...] = (), token_hint: str = ""
    ) -> None:
        self.history = History()
        self.changes: dict[str, Any] = {"count": 0, "changes": []}
        header = {"kind": kind, "title": title, "actions": list(actions)}
        self._header = {**header, "token_hint": token_hint}
        self._picture_number = 0
        self._picture = _EMPTY
        self._state: dict[str, Any] = {}
        self._events: deque[dict[str, Any]] = deque(maxlen=KEPT_EVENTS)
        self._clients: set[Client] = set()

    @property
    def clients(self) -> int:
        """The number of open pages."""
        return len(self._clients)

    @property
    def state(self) -> dict[str, Any]:
        """The latest state of fabric, emulator and controller."""
        return self._state

    def picture(self) -> dict[str, Any]:
        """Return what the page draws; ``number`` changes whenever it does."""
        return {**self._header, "number": self._picture_number, **self._picture}

    def events(self) -> list[dict[str, Any]]:
        """Return the last events, oldest first."""
        return list(self._events)

    def set_picture(self, picture: Picture | None) -> None:
        """Show another fabric, or none; the history begins again."""
        self._picture = _EMPTY if picture is None else picture.as_json()
        self._picture_number += 1
        self.history.clear()
        self._send("picture", str(self._picture_number).encode())

    def set_state(self, state: dict[str, Any]) -> None:
        """Show a state; nothing is sent if it is the one that is shown."""
        if state != self._state:
            self._state = state
            self._send("state", json.dumps(state).encode())

    def add_frame(self, frame: dict[str, Any]) -> None:
        """Add the frame of this moment."""
        self._send("frame", self.history.add(time.time(), frame))

    def add_event(self, kind: str, fields: dict[str, Any]) -> None:
        """Add an event; ``time`` is now unless it is in ``fields``."""
        event = {"time": round(time.time(), 3), **fields, "kind": kind}
        self._events.append(event)
        self._send("event", json.dumps(event).encode())

    def connect(self) -> Client:
        """Return a new client; raises TooManyClientsError."""
        if len(self._clients) >= MAX_CLIENTS:
            raise TooManyClientsError
        client = Client(self._clients.discard)
        self._clients.add(client)
        client.put("picture", str(self._picture_number).encode())
        client.put("state", json.dumps(self._state).encode())
        return client

    def close(self) -> None:
        """End the streams of all clients: the server ends."""
        for client in list(self._clients):
            client.close()

    def _send(self, kind: str, data: bytes) -> None:
        for client in self._clients:
            client.put(kind, data)


class Client:
    """The messages for one page. One that reads too slowly misses the oldest of them."""

    def __init__(self, leave: Any) -> None:
        self._leave = leave
        self._waiting: deque[tuple[str, bytes]] = deque(maxlen=MAX_WAITING)
        self._ready = asyncio.Event()
        self._open = True

    def put(self, kind: str, data: bytes) -> None:
        """Add a message. An older state that was not sent yet is replaced."""
        if kind == "state":
            self._waiting = deque(
                (message for message in self._waiting if message[0] != "state"), MAX_WAITING
            )
        if len(self._waiting) == MAX_WAITING:
            self._drop()
        self._waiting.append((kind, data))
        self._ready.set()

    def _drop(self) -> None:
        """Drop the oldest frame, or where there is none the oldest message."""
        for i, (kind, _) in enumerate(self._waiting):
            if kind == "frame":
                del self._waiting[i]
                return
        self._waiting.popleft()

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield messages as server-sent events, or a comment where there is nothing to say."""
        while self._open:
            if not self._waiting:
                self._ready.clear()
                try:
                    await asyncio.wait_for(self._ready.wait(), HEARTBEAT_S)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if not self._waiting:
                    continue
            kind, data = self._waiting.popleft()
            yield b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"

    def close(self) -> None:
        """Leave, and end the stream."""
        self._open = False
        self._ready.set()
        self._leave(self)
