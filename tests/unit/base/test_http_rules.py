"""REST interface and page under the same attacks: one set of rules, enforced by two servers.

Each test runs on both. Requests are bytes on sockets; nothing between us and the server is ours.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import KnotlessError
from knotless.base.http_rules import (
    LIMITS,
    HttpError,
    Limits,
    OwnNames,
    body_bytes,
    dns_name,
    has_token,
    json_object,
    public_origin,
    request_turns,
    turn_s,
)
from knotless.base.ports import free_port
from knotless.web.feed import Feed
from tests.support.page_server import served
from tests.support.rest_server import TOKEN
from tests.support.waiting import HANG_S, until
from tests.unit.web.test_app import FakeSource

BEARER = f"Authorization: Bearer {TOKEN}"


@dataclass
class Running:
    """A server: its port, and its paths for a read, a stream of events and a change."""

    port: int
    read: str
    stream: str
    change: str

    def connect(self) -> socket.socket:
        """Return a connection."""
        return socket.create_connection(("127.0.0.1", self.port), HANG_S)

    def ask(self, path: str, *headers: str, body: bytes | None = None) -> tuple[int, str]:
        """Return status and body of the answer to a request, in which ``Host`` may be replaced."""
        lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", "Connection: close"]
        if not any(header.lower().startswith("host:") for header in headers):
            lines.append(f"Host: 127.0.0.1:{self.port}")
        lines += headers
        if body is not None and not any("ength:" in header for header in headers):
            lines.append(f"Content-Length: {len(body)}")
        with closing(self.connect()) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + (body or b""))
            return answer_of(connection)


def answer_of(connection: socket.socket) -> tuple[int, str]:
    """Return status and body of an answer, which ends with its connection."""
    text = b""
    while part := connection.recv(1 << 16):
        text += part
    head, _, body = text.decode().partition("\r\n\r\n")
    return int(head.split()[1]), body


@contextmanager
def rest(limits: Mapping[str, Any]) -> Iterator[Running]:
    """Run the REST server."""
    port = free_port()
    words = [sys.executable, "-m", "tests.support.rest_server", str(port), json.dumps(limits)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield Running(port, "/state", "/stream", "/change")
        finally:
            process.terminate()


@contextmanager
def page(limits: Mapping[str, Any]) -> Iterator[Running]:
    """Run the server of a page."""
    source = FakeSource(TOKEN)
    source.feed = Feed("live", "fabric test", ("cut",))
    names = OwnNames("127.0.0.1", ("lab.example",), ("https://public.example",))
    with served(source, names=names, limits=Limits(**limits)) as url:
        port = int(url.rsplit(":", 1)[1].strip("/"))
        yield Running(port, "/api/state", "/api/stream", "/api/actions/cut")


Start = Callable[..., Running]


@pytest.fixture(params=[rest, page], ids=["rest", "page"])
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    """A function that starts a server with some limits."""
    with ExitStack() as stack:
        yield lambda **limits: stack.enter_context(request.param(limits))


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"GET ",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"POST /change HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ],
    ids=["nothing", "a word", "half a head", "half a body"],
)
def test_a_request_that_does_not_arrive_ends(start: Start, begin: bytes) -> None:
    server = start(request_s=0.2)
    begin = begin.replace(b"/change", server.change.encode())
    with closing(server.connect()) as connection:
        connection.sendall(begin)
        with suppress(ConnectionError):
            while connection.recv(1 << 16):
                pass  # an answer that refuses it ends as well
    assert server.ask(server.read)[0] == 200


@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_silent_connections_give_way(start: Start, begin: bytes) -> None:
    """256 of them took the page from all."""
    server = start(connections=16, request_s=600.0)
    with ExitStack() as stack:
        held = [stack.enter_context(closing(server.connect())) for _ in range(16)]
        for connection in held:
            connection.sendall(begin)
        for _ in range(20):
            assert server.ask(server.read)[0] == 200
        # The oldest have gone, and others are still there.
        held[0].settimeout(HANG_S)
        with suppress(ConnectionError):
            assert held[0].recv(1) == b""


def test_a_connection_that_asked_once_gives_way_as_well(start: Start) -> None:
    server = start(connections=8, request_s=600.0)
    with ExitStack() as stack:
        for _ in range(8):
            connection = stack.enter_context(closing(server.connect()))
            connection.sendall(f"GET {server.read} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert connection.recv(15).startswith(b"HTTP/1.1 200")
        assert server.ask(server.read)[0] == 200


def test_a_stream_that_was_closed_has_left(start: Start) -> None:
    """No event comes, and a heartbeat only later than this test waits for it."""
    server = start()
    request = f"GET {server.stream} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    streams = [server.connect() for _ in range(LIMITS.streams)]
    for stream in streams:
        stream.sendall(request)
        assert stream.recv(15).startswith(b"HTTP/1.1 200")
    assert server.ask(server.stream)[0] == 503
    for stream in streams:
        stream.close()

    def is_served() -> bool:
        with closing(server.connect()) as stream:
            stream.sendall(request)
            return stream.recv(15).startswith(b"HTTP/1.1 200")

    until("another stream is served", is_served, 8.0)  # both heartbeats are longer


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nested_json_is_one_line(start: Start, opening: str) -> None:
    server = start()
    status, text = server.ask(server.change, BEARER, body=(opening * 10_000).encode())
    assert status == 400
    assert json.loads(text)["error"].count("\n") == 0
    assert "nested" in text


@pytest.mark.parametrize("order", [1, -1])
def test_two_lengths_are_refused(start: Start, order: int) -> None:
    """What is left of the body would be the next request behind a proxy."""
    server = start()
    lengths = ["Content-Length: 2", "Transfer-Encoding: chunked"][::order]
    status, text = server.ask(server.change, BEARER, *lengths, body=b"2\r\n{}\r\n0\r\n\r\n")
    assert status == 400, text
    status, _ = server.ask(server.change, BEARER, lengths[0], lengths[0], body=b"{}")
    assert status in (200, 400)  # equal ones may be one


@pytest.mark.thin(10)
@pytest.mark.parametrize("with_token", [False, True])
@pytest.mark.parametrize(
    "headers",
    [
        ["Host: evil.example"],
        ["Host: 127.0.0.1.evil.example"],
        ["Host: lab.example.evil"],
        ["Host:"],
        ["Host: lab.example", "Origin: http://evil.example"],
        ["Origin: http://evil.example"],
        ["Origin: https://public.example.evil"],
        ["Origin: null"],
    ],
)
def test_other_sites_read_and_change_nothing(
    start: Start, headers: list[str], with_token: bool
) -> None:
    """A name that points to our address read the topology over GET."""
    server = start()
    more = [*headers, BEARER] if with_token else headers
    for path, body in ((server.read, None), (server.stream, None), (server.change, b"{}")):
        status, text = server.ask(path, *more, body=body)
        assert status == 403, path
        assert "secret" not in text


@pytest.mark.parametrize("host", ["lab.example", "LAB.example:9090", "10.0.0.1", "localhost:1"])
def test_our_own_names_are_served(start: Start, host: str) -> None:
    """So does Prometheus ask that has a DNS name as its target."""
    server = start()
    assert server.ask(server.read, f"Host: {host}", "User-Agent: Prometheus/2.53.0")[0] == 200
    assert server.ask(server.read, f"Host: {host}", f"Origin: http://{host}")[0] == 200


def test_a_page_behind_a_proxy_acts() -> None:
    """A proxy with TLS keeps Host, or sets it to our address; the browser names the proxy."""
    with page({}) as server:
        for host in ("public.example", f"127.0.0.1:{server.port}"):
            headers = (f"Host: {host}", "Origin: https://public.example", BEARER)
            assert server.ask(server.change, *headers, body=b'{"link": "s1-s2"}')[0] == 200
            assert server.ask(server.change, headers[0], "Origin: https://evil.example")[0] == 403


def test_requests_without_token_have_a_pace_and_others_none(start: Start) -> None:
    server = start(requests_per_s=0.001, burst=2)
    statuses = [server.ask(server.read)[0] for _ in range(4)]
    assert statuses == [200, 200, 429, 429]
    assert server.ask(server.read, "Authorization: Bearer wrong")[0] == 429
    assert server.ask(server.change, body=b"{}")[0] == 429
    for _ in range(5):
        assert server.ask(server.read, BEARER)[0] == 200


# --- the rules themselves -----------------------------------------------------------------------


def test_a_burst_is_free_just_after_the_machine_has_started() -> None:
    turns = request_turns(Limits(requests_per_s=0.001, burst=2))
    assert [turn_s(turns, 1.0), turn_s(turns, 1.0)] == [0.0, 0.0]
    with pytest.raises(HttpError):
        turn_s(turns, 1.0)


@given(st.lists(st.floats(0, 0.05), min_size=1, max_size=400))
def test_no_second_has_more_requests_than_are_permitted(gaps: list[float]) -> None:
    turns, now_s, served_s = request_turns(Limits(requests_per_s=50, burst=10)), 100.0, []
    for gap in gaps:
        now_s += gap
        try:
            wait_s = turn_s(turns, now_s)
        except HttpError:
            continue
        assert 0 <= wait_s <= LIMITS.request_s
        served_s.append(now_s + wait_s)
    assert served_s == sorted(served_s)
    for begin in served_s:
        assert sum(begin <= time_s < begin + 1 for time_s in served_s) <= 50 + 10 + 1


@given(st.binary(max_size=200) | st.text(alphabet='[]{}":,1a ', max_size=200).map(str.encode))
def test_any_body_is_an_object_or_refused(body: bytes) -> None:
    refused = None
    try:
        assert isinstance(json_object(body), dict)
    except HttpError as error:
        refused = error
    assert refused is None or (refused.status == 400 and "\n" not in str(refused))


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_host_and_origin_are_judged(host: str, origin: str) -> None:
    names = OwnNames("127.0.0.1", ("lab.example",))
    with suppress(HttpError):
        names.check({"host": host, "origin": origin})
        assert origin.lower() == f"http://{host.lower()}"
        assert re.fullmatch(
            r"(?i)(localhost|lab\.example|[0-9.]+|\[[0-9a-f:.%]+\])(:[0-9]*)?", host
        )


@pytest.mark.parametrize("text", ["", "+1", "1_0", " 1", "1e3", "-1", "٣", "1" * 10])
def test_a_length_is_plain_digits(text: str) -> None:
    with pytest.raises(HttpError):
        body_bytes({"content-length": text})


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x"])
def test_nothing_else_is_the_token(shown: str) -> None:
    assert not has_token({"authorization": shown}, TOKEN)
    assert not has_token({"authorization": shown}, None)
    assert has_token({"authorization": f"bEaReR {TOKEN} "}, TOKEN)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://Lab.example", "https://lab.example"),
        ("https://lab.example:443/", "https://lab.example"),
        ("http://lab:8443", "http://lab:8443"),
    ],
)
def test_public_origins(text: str, origin: str) -> None:
    assert public_origin(text) == origin


@pytest.mark.parametrize(
    "text",
    ["", "lab.example", "ftp://lab", "https://lab/x", "https://a@lab", "https://", "https://l:x",
     "https://lab?q", "https://*.example", "https://" + "a" * 300],
)  # fmt: skip
def test_no_public_origin_is_one_line(text: str) -> None:
    with pytest.raises(KnotlessError, match=r"\A--public-origin [^\n]+\Z"):
        public_origin(text)


@pytest.mark.parametrize("text", ["", "a b", "a..b", "http://a", "a:1", "-a", "é", "a/b", "*"])
def test_no_dns_name(text: str) -> None:
    with pytest.raises(ValueError, match="is no DNS name"):
        dns_name(text)
