"""Running the server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from knotless.base.errors import KnotlessError
from knotless.base.files import reason
from knotless.base.http_rules import Limits, OwnNames
from knotless.web.app import Source, make_app
from knotless.web.feed import Feed
from knotless.web.guard import PAGE_LIMITS

GRACE_S = 2


class Connection(H11Protocol):
    """A connection of uvicorn with the time and the place that a request may take.

    It has a place among those whose request is not complete until the request is, and again when
    it was answered and another may follow. If there are too many connections, the oldest of these
    gives way.
    """

    limits: Limits = PAGE_LIMITS
    waiting: dict[Connection, asyncio.TimerHandle]
    """Those whose request is not complete, oldest first, with their timers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for a new connection."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections and self.waiting:
            next(iter(self.waiting))._give_way()
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Read what has come; a complete request has its place until it is answered."""
        super().handle_events()
        if self.cycle is not None and not (self.cycle.more_body or self.cycle.response_complete):
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Await the next request."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._await_request()

    def _await_request(self) -> None:
        self._stop_waiting()
        timer = self.loop.call_later(self.limits.request_s, self._give_way)
        self.waiting[self] = timer

    def _stop_waiting(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _give_way(self) -> None:
        self._stop_waiting()
        self.connections.discard(self)
        self.transport.abort()


class Server(uvicorn.Server):
    """The server of one source; its streams end with it."""

    def __init__(
        self, source: Source, feed: Feed, names: OwnNames, limits: Limits = PAGE_LIMITS
    ) -> None:
        self._feed = feed
        own = {"limits": limits, "waiting": {}}
        super().__init__(
            uvicorn.Config(
                make_app(feed, source, names, limits),
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="on",
                ws="none",
                http=type("Connection", (Connection,), own),
                loop="asyncio",
                limit_concurrency=limits.connections + 1,
                h11_max_incomplete_event_size=limits.head_bytes,
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all streams, then the server."""
        self._feed.close()
        await super().shutdown(sockets)


def serve(
    source: Source,
    feed: Feed,
    host: str,
    port: int,
    ready: Callable[[str], None],
    origins: tuple[str, ...] = (),
) -> None:
    """Serve the page until SIGINT or SIGTERM; ``ready`` receives its address.

    ``origins`` are the public addresses of proxies in front of it. Port 0 is any free one.

    Raises KnotlessError if the address cannot be listened on.
    """
    shown = f"[{host}]" if ":" in host else host
    with listen(host, port) as listener:
        ready(f"http://{shown}:{listener.getsockname()[1]}/")
        Server(source, feed, OwnNames(host, origins=origins)).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises KnotlessError if that is not possible."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise KnotlessError(
            f"cannot listen on {host}:{port}: {reason(error)}; choose another --port"
        ) from error
