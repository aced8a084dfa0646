"""Commands that change a running fabric wait for a change that goes on already."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, cast

import pytest

from knotless.base.errors import EmulationError
from knotless.cli.commands._running import RequestOptions, _request
from knotless.emulation import rest
from knotless.emulation.rest import BusyError, Controller

BUSY = "the controller: a change of routes goes on"


@contextmanager
def answering(status: int) -> Iterator[int]:
    """Serve one request with this status; yields the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802 - the base class calls it so
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b'{"error": "a change of routes goes on"}')

        def log_message(self, *_: Any) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield server.server_port
        thread.join()


@pytest.mark.parametrize(("status", "is_busy"), [(409, True), (400, False), (503, False)])
def test_only_a_conflict_may_be_repeated(status: int, is_busy: bool) -> None:
    with answering(status) as port, pytest.raises(EmulationError, match=BUSY) as raised:
        rest.post(("127.0.0.1", port), "/change", {}, "token")
    assert isinstance(raised.value, BusyError) is is_busy


class BusyController:
    """Refuses the first requests; counts them."""

    def __init__(self, refused: int) -> None:
        self.refused, self.requests = refused, 0

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        self.requests += 1
        if self.requests <= self.refused:
            raise BusyError(BUSY)
        return {"path": path, **body}


def requested(busy: BusyController, timeout_s: float) -> dict[str, Any]:
    how = RequestOptions(
        dry_run=False,
        out=None,
        proofs=None,
        timeout_s=timeout_s,
        name="",
        details=False,
        as_json=True,
    )
    return _request(cast("Controller", busy), "/change", {"root": "s3"}, how)


def test_a_change_that_goes_on_is_waited_for() -> None:
    busy = BusyController(refused=3)
    assert requested(busy, 60.0) == {"path": "/change", "root": "s3"}
    assert busy.requests == 4


def test_not_longer_than_its_time() -> None:
    busy = BusyController(refused=1_000_000)
    with pytest.raises(BusyError, match=BUSY):
        requested(busy, 0.0)
    assert busy.requests == 1
