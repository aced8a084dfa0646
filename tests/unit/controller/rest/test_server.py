"""The HTTP server among clients that come at once."""

from __future__ import annotations

import socket

from knotless.base.http_rules import Limits, OwnNames
from knotless.base.ports import free_port
from knotless.controller import runtime
from knotless.controller.green.sockets import Socket
from knotless.controller.rest.api import Access, Api, Response
from knotless.controller.rest.server import Server

API = Api({"/": lambda: Response(b"answered")}, {}, Access(None, OwnNames("127.0.0.1")))


def test_a_request_is_answered_though_silent_clients_take_all_places_at_once() -> None:
    limits = Limits(connections=8)
    port = free_port()
    server = Server(("127.0.0.1", port), API, limits)
    clients = [Socket(socket.create_connection(("127.0.0.1", port))) for _ in range(9)]
    honest = clients[0]
    honest.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    thread = runtime.spawn(server.serve_forever)
    text = b""
    try:
        with runtime.time_limit(30):
            while part := honest.recv(1 << 16):
                text += part
    finally:
        thread.kill()
        server.close()
        for client in clients:
            client.close()
        runtime.sleep(0)  # what serves them ends
    assert text.startswith(b"HTTP/1.1 200 ")
    assert text.endswith(b"answered")
