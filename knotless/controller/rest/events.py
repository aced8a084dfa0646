"""Server-sent events for ``GET /events``: reports of what happens, at once.

A client has a queue of bounded length. One that does not read fast enough is dropped, and may
connect again; nobody waits for it.

References
----------
WHATWG, HTML, section 9.2, Server-sent events.

"""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Self

from knotless.base.http_rules import LIMITS, HttpError
from knotless.controller import runtime
from knotless.controller.rest.api import Response

MAX_CLIENTS = LIMITS.streams
MAX_WAITING = 1024
"""Events that wait for one client."""
HEARTBEAT_S = 15.0
"""After this time without an event, a comment shows that the connection still lives."""


class Events:
    """Distributes events to all clients."""

    def __init__(
        self, clock: Callable[[], float] = runtime.unix_time_s, heartbeat_s: float = HEARTBEAT_S
    ) -> None:
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._clients: list[Client] = []
        self._number = 0

    @property
    def clients(self) -> int:
        """The number of clients."""
        return len(self._clients)

    def count(self) -> int:
        """Return the number of events so far."""
        return self._number

    def tell(self, kind: str, **fields: object) -> None:
        """Send an event, for example ``tell("port", switch="s1", port=2, up=False)``."""
        self._number += 1
        data = json.dumps({"time": round(self._clock(), 6), **fields})
        text = f"id: {self._number}\nevent: {kind}\ndata: {data}\n\n".encode()
        for client in list(self._clients):
            client.put(text)

    def response(self) -> Response:
        """Return the response for a new client; raises HttpError if there are too many."""
        if len(self._clients) >= MAX_CLIENTS:
            raise HttpError(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_CLIENTS} clients read events already"
            )
        stream = Client(self._heartbeat_s, self._clients.remove)
        self._clients.append(stream)
        return Response(content_type="text/event-stream", stream=stream)


class Client:
    """The events of one client, from the moment at which it came."""

    def __init__(self, heartbeat_s: float, leave: Callable[[Client], None]) -> None:
        self._queue = runtime.Queue(MAX_WAITING)
        self._heartbeat_s = heartbeat_s
        self._leave = leave
        self._open = True

    def put(self, text: bytes) -> None:
        """Add an event; a client that lets too many wait is dropped."""
        if not self._queue.put(text):
            self.close()

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> bytes:
        """Wait for the next event and return it."""
        if not self._open:
            raise StopIteration
        try:
            text: bytes = self._queue.get(self._heartbeat_s)
        except runtime.TimeLimitError:
            text = b": still here\n\n"
        if not self._open:
            raise StopIteration
        return text

    def close(self) -> None:
        """End the stream: the client has gone, or is too slow."""
        if self._open:
            self._open = False
            self._leave(self)
            self._queue.put(b"")  # wakes up who waits for an event
