"""The HTTP server: one request on a connection, bounded in number, size and time.

Slow clients wait for nobody but themselves: if there are too many connections, the oldest one whose
request is not complete, or is answered already, gives way to a new one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from knotless.base.http_rules import (
    LIMITS,
    HttpError,
    Limits,
    OwnNames,
    body_bytes,
    request_turns,
    turn_s,
)
from knotless.controller import runtime
from knotless.controller.rest.api import (
    END_OF_HEAD,
    Access,
    Api,
    Request,
    Stream,
    error_response,
    parse_head,
)

_LOG = logging.getLogger("knotless.rest")
_CHUNK_BYTES = 1 << 14
_ACCEPT_PAUSE_S = 0.1
_LINGER_S = 1.0


class Server:
    """Answers requests by an Api; those without its token wait until it is their turn."""

    def __init__(self, address: tuple[str, int], api: Api, limits: Limits = LIMITS) -> None:
        self._socket = runtime.listen(address, limits.connections)
        self._api = api
        self._limits = limits
        self._turns = request_turns(limits)
        self._threads = runtime.Threads()
        self._open = 0
        self._asking: dict[Any, None] = {}
        """Green threads that can give way, the oldest first."""

    @property
    def port(self) -> int:
        """The port on which it listens."""
        port: int = self._socket.getsockname()[1]
        return port

    def release(self) -> None:
        """Accept no more connections, once nobody serves them; those that are open go on."""
        self._socket.close()

    def close(self) -> None:
        """Accept no more connections, once nobody serves them, and end those that are open."""
        self.release()
        self._threads.close()

    def serve_forever(self) -> None:
        """Serve each connection in a green thread of its own."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                # Too many open files, or the connection is gone already.
                runtime.sleep(_ACCEPT_PAUSE_S)
                continue
            if self._open >= self._limits.connections:
                self._make_room()
            if self._open >= self._limits.connections:
                connection.close()
                continue
            self._open += 1
            thread = self._threads.spawn(self._serve, connection)
            self._asking[thread] = None
            # A thread that is ended before it has begun runs nothing but this.
            thread.link(self._ended, connection)
            # It reads what is there before others that come at once can take its place.
            runtime.sleep(0)

    def _make_room(self) -> None:
        oldest = next(iter(self._asking), None)
        if oldest is not None:
            oldest.kill()

    def _ended(self, thread: Any, connection: Any) -> None:
        self._asking.pop(thread, None)
        self._open -= 1
        connection.close()

    def _serve(self, connection: Any) -> None:
        with suppress(OSError):
            self._exchange(connection)

    def _exchange(self, connection: Any) -> None:
        limits = self._limits
        try:
            with runtime.time_limit(limits.request_s):
                request = receive(connection.recv, limits)
            if not self._api.access.has_token(request):
                runtime.sleep(turn_s(self._turns, runtime.now_s(), self._limits))
            self._asking.pop(runtime.current_thread(), None)
            response = self._api.answer(request)
        except HttpError as refusal:
            response = error_response(refusal)
        except OSError:
            raise
        except Exception:  # noqa: BLE001 - other requests are answered nevertheless
            _LOG.exception("a request could not be answered")
            text = "the controller could not answer: its log says why"
            response = error_response(HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, text))
        try:
            self._send(connection, response.head() + response.body)
            if response.stream is not None:
                # A client that leaves is noticed at once, and not by the next part.
                watch = self._threads.spawn(_await_end, connection, response.stream)
                for part in response.stream:
                    self._send(connection, part)
                watch.kill()
        finally:
            if response.stream is not None:
                response.stream.close()
        runtime.end_sending(connection)
        self._asking[runtime.current_thread()] = None  # again one that can give way
        # What is not read would reset the connection before the client has read the response.
        with suppress(runtime.TimeLimitError), runtime.time_limit(_LINGER_S):
            while connection.recv(_CHUNK_BYTES):
                pass

    def _send(self, connection: Any, data: bytes) -> None:
        with runtime.time_limit(self._limits.response_s):
            connection.sendall(data)


def _await_end(connection: Any, stream: Stream) -> None:
    """End a stream when its client has gone."""
    with suppress(OSError):
        while connection.recv(_CHUNK_BYTES):
            pass
    stream.close()


def receive(recv: Callable[[int], bytes], limits: Limits) -> Request:
    """Read one request.

    Raises
    ------
    HttpError
        It is malformed or too large.
    ConnectionError
        The connection ends before the request does.

    """
    data = b""
    while END_OF_HEAD not in data and len(data) <= limits.head_bytes:
        data += _some(recv)
    head, _, body = data.partition(END_OF_HEAD)
    if len(head) > limits.head_bytes:
        raise HttpError(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"request line and headers have more than {limits.head_bytes} bytes",
        )
    request = parse_head(head + b"\r\n")
    if len(request.target) > limits.target_bytes:
        raise HttpError(
            HTTPStatus.REQUEST_URI_TOO_LONG, f"an address has at most {limits.target_bytes} bytes"
        )
    size = body_bytes(request.headers, limits)
    while len(body) < size:
        body += _some(recv)
    return replace(request, body=body[:size])


def _some(recv: Callable[[int], bytes]) -> bytes:
    part = recv(_CHUNK_BYTES)
    if not part:
        raise ConnectionError("the connection ended before its request")
    return part


# --- before there is a fabric -----------------------------------------------------------------


class EarlyStatus:
    """Answers ``GET /status`` at an address with ``status()``, until :meth:`close`."""

    def __init__(
        self, address: tuple[str, int], names: tuple[str, ...], status: Callable[[], object]
    ) -> None:
        api = Api({"/status": status}, {}, Access(None, OwnNames(address[0], names)))
        self._server = Server(address, api)
        self._thread = runtime.spawn(self._server.serve_forever)

    def close(self) -> None:
        """Free the address for another server."""
        self._thread.kill()
        self._server.release()
