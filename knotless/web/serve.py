"""Running the server."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from knotless.base.errors import KnotlessError
from knotless.base.files import reason
from knotless.web.app import Source, make_app
from knotless.web.feed import Feed

MAX_CONNECTIONS = 256
MAX_HEADER_BYTES = 16 << 10
GRACE_S = 2


class Server(uvicorn.Server):
    """The server of one source; its streams end with it."""

    def __init__(self, source: Source, feed: Feed, host: str) -> None:
        self._feed = feed
        super().__init__(
            uvicorn.Config(
                make_app(feed, source, host),
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="on",
                ws="none",
                http="h11",
                loop="asyncio",
                limit_concurrency=MAX_CONNECTIONS,
                h11_max_incomplete_event_size=MAX_HEADER_BYTES,
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all streams, then the server."""
        self._feed.close()
        await super().shutdown(sockets)


def serve(source: Source, feed: Feed, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until SIGINT or SIGTERM; ``ready`` receives its address.

    Port 0 is any free one. Raises KnotlessError if the address cannot be listened on.
    """
    shown = f"[{host}]" if ":" in host else host
    with listen(host, port) as listener:
        ready(f"http://{shown}:{listener.getsockname()[1]}/")
        Server(source, feed, host).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises KnotlessError if that is not possible."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise KnotlessError(
            f"cannot listen on {host}:{port}: {reason(error)}; choose another --port"
        ) from error
