"""Running the server."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from common.errors import KnotlessError
from common.files import reason
from web.app import Source, make_app
from web.feed import Feed

MAX_CONNECTIONS = 256
MAX_HEADER_BYTES = 16 << 10


def serve(source: Source, feed: Feed, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until SIGINT or SIGTERM; ``ready`` receives its address.

    Port 0 is any free one. Raises KnotlessError if the address cannot be listened on.
    """
    listener = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(
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
        timeout_graceful_shutdown=1,
    )
    with listener:
        ready(f"http://{shown}:{listener.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise KnotlessError(
            f"cannot listen on {host}:{port}: {reason(error)}; choose another --port"
        ) from error
