"""HTTP clients that mean harm, or are slow: everybody else is answered."""

from __future__ import annotations

import contextlib
import resource
import socket
from collections.abc import Iterator

import pytest

from tests.support.lone_controller import LoneController, lone_controller
from tests.support.waiting import HANG_S, Limit

SLOW_CLIENTS = 2000
MAX_RSS_BYTES = 300 << 20
CONFIG = "fabric: ring,4"


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneController]:
    with lone_controller(tmp_path_factory.mktemp("controller"), CONFIG, token=True) as running:
        yield running


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(controller: LoneController) -> socket.socket:
    return socket.create_connection(("127.0.0.1", controller.rest), timeout=HANG_S)


def ask(controller: LoneController, text: bytes) -> bytes:
    """Send this and return everything that is answered."""
    with connect(controller) as client:
        client.sendall(text)
        answer = b""
        while part := client.recv(1 << 16):
            answer += part
    return answer


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"", id="silent"),
        pytest.param(b"GET /status HTTP/1.1\r\nX: ", id="slow", marks=pytest.mark.long),
    ],
)
def test_thousands_of_slow_clients_keep_nobody_waiting(
    controller: LoneController, request_bytes: bytes
) -> None:
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connect(controller)) for _ in range(SLOW_CLIENTS)]
        for client in slow:
            with contextlib.suppress(OSError):
                client.sendall(request_bytes)
        for client in slow[-100:]:
            assert controller.get("/status", timeout_s=5)["fabric"] == "ring,4"
            with contextlib.suppress(OSError):
                client.sendall(b"x")
        assert controller.rss_bytes() < MAX_RSS_BYTES
        # All of them are closed in the end, those that still send something as well.
        limit = Limit()
        for client in slow:
            with contextlib.suppress(ConnectionResetError):
                while client.recv(1 << 16):
                    limit.check("the end of a connection")


def test_large_requests_are_refused(controller: LoneController) -> None:
    assert ask(controller, b"GET /" + b"a" * 9000).startswith(b"HTTP/1.1 431 ")
    text = b"POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    assert ask(controller, text).startswith(b"HTTP/1.1 413 ")
    assert ask(controller, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    text = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert ask(controller, text).startswith(b"HTTP/1.1 404 ")
    assert ask(controller, b"GET /nothing HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403 ")


def test_a_client_that_reads_nothing_is_left_alone(controller: LoneController) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            deaf = stack.enter_context(socket.socket())
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            deaf.connect(("127.0.0.1", controller.rest))
            deaf.sendall(b"GET /fabric HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert controller.get("/status", timeout_s=5)["fabric"] == "ring,4"


def test_no_client_has_caused_a_traceback(controller: LoneController) -> None:
    assert "Traceback" not in controller.log()
