"""``GET /status`` before there is a fabric to serve."""

from __future__ import annotations

from collections.abc import Callable

import eventlet

from knotless.controller.northbound.access import Access
from knotless.controller.northbound.api import Api
from knotless.controller.northbound.server import Server


class EarlyStatus:
    """Answers ``GET /status`` at an address with ``status()``, until :meth:`end`."""

    def __init__(self, address: tuple[str, int], status: Callable[[], object]) -> None:
        api = Api({"/status": status}, {}, Access(None, address[0]))
        self._server = Server(address, api.answer)
        self._thread = eventlet.spawn(self._server.serve_forever)

    def end(self) -> None:
        """Free the address for another server."""
        self._thread.kill()
        self._server.close()
