"""The page's server in a thread of a test, so that the test can change what it reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from knotless.base.http_rules import Limits, OwnNames
from knotless.web.guard import PAGE_LIMITS
from knotless.web.serve import Server, listen
from tests.support.waiting import until

CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
"""Root cannot use the sandbox; SwiftShader is WebGL without a graphics processor."""


@contextmanager
def served(
    source: Any,
    port: int = 0,
    names: OwnNames = OwnNames("127.0.0.1"),  # noqa: B008 - it is frozen
    limits: Limits = PAGE_LIMITS,
) -> Iterator[str]:
    """Serve the page of a source, and yield its address."""
    listener = listen("127.0.0.1", port)
    server = Server(source, source.feed, names, limits)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        until("the server has started", lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
