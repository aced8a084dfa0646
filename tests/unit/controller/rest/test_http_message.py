"""HTTP requests as the controller parses them, and who may change something."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.http_rules import HttpError, Limits, OwnNames
from knotless.controller.rest.api import (
    Access,
    Api,
    Request,
    Response,
    parse_head,
    read_token,
)
from knotless.controller.rest.events import Events
from knotless.controller.rest.server import receive
from knotless.topologies import KnotlessError
from tests.support.waiting import HANG_S

TOKEN = "0123456789abcdef-token"  # noqa: S105 - of these tests alone
OWN = OwnNames("127.0.0.1")
GOOD = {"host": "127.0.0.1:8080", "authorization": f"Bearer {TOKEN}"}


def received(data: bytes, piece: int = 7) -> Request:
    parts = iter([data[i : i + piece] for i in range(0, len(data), piece)])
    return receive(lambda _size: next(parts, b""), Limits())


def refusal(headers: dict[str, str], access: Access | None = None) -> HTTPStatus:
    with pytest.raises(HttpError, match=r"\A[^\n]+\Z") as raised:
        (access or Access(TOKEN, OWN)).check_write(Request("POST", "/reload", headers))
    return raised.value.status


def permitted(headers: dict[str, str], host: str = "127.0.0.1") -> None:
    Access(TOKEN, OwnNames(host)).check_write(Request("POST", "/reload", headers))


def test_a_request_arrives_in_pieces_of_any_size() -> None:
    text = b"POST /reload?x=1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 5\r\n\r\nhello"
    for piece in range(1, len(text) + 1):
        request = received(text, piece)
        headers = {"host": "a:1", "content-length": "5"}
        assert request == Request("POST", "/reload", headers, b"hello", "/reload?x=1")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"GET / HTTP/3\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"get / HTTP/1.1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET http://elsewhere/ HTTP/1.1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET /\x00 HTTP/1.1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"POST / HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", HTTPStatus.LENGTH_REQUIRED),
        (b"GET /" + b"a" * 9000, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (
            b"GET / HTTP/1.1\r\nX: " + b"a" * 8200 + b"\r\n\r\n",
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        ),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", HTTPStatus.BAD_REQUEST),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n",
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        ),
    ],
)
def test_what_is_no_bounded_request_is_refused(text: bytes, status: HTTPStatus) -> None:
    with pytest.raises(HttpError) as raised:
        received(text, 1000)
    assert raised.value.status == status


def test_a_request_that_does_not_end_is_none() -> None:
    for text in (b"", b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhell"):
        with pytest.raises(ConnectionError):
            received(text)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    with contextlib.suppress(HttpError):
        assert parse_head(data).path.startswith("/")


def test_only_the_token_permits_a_change() -> None:
    permitted(GOOD)
    permitted(GOOD | {"authorization": f"bearer {TOKEN}"})
    for wrong in ("", TOKEN, "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer tök"):
        assert refusal(GOOD | {"authorization": wrong}) == HTTPStatus.UNAUTHORIZED
    assert refusal({"host": "127.0.0.1"}) == HTTPStatus.UNAUTHORIZED
    assert refusal(GOOD, Access(None, OWN)) == HTTPStatus.UNAUTHORIZED
    empty = {"host": "127.0.0.1", "authorization": "Bearer "}
    assert refusal(empty, Access(None, OWN)) == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:1", "[::1]:8080", "10.1.2.3", "lab"])
def test_addresses_and_our_name_are_ours(host: str) -> None:
    permitted(GOOD | {"host": host}, "LAB")
    permitted(GOOD | {"host": host, "origin": f"http://{host}"}, "lab")


@pytest.mark.parametrize("host", ["", "evil.example", "evil.example:8080", "127.0.0.1.x", "[::1"])
def test_a_name_that_is_not_ours_is_refused(host: str) -> None:
    assert refusal(GOOD | {"host": host}) == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("origin", ["null", "http://evil.example", "https://127.0.0.1:8080", ""])
def test_a_page_from_elsewhere_changes_nothing(origin: str) -> None:
    assert refusal(GOOD | {"origin": origin}) == HTTPStatus.FORBIDDEN


def test_the_first_start_writes_a_token_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = read_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(token) >= 32
    assert read_token(path) == token


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (TOKEN, 0o644, "others may read"),
        ("short", 0o600, "holds no token"),
        ("", 0o644, "others may read"),
        ("x" * 5000, 0o600, "1024"),
    ],
)
def test_a_bad_token_file_is_one_line(content: str, mode: int, words: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(KnotlessError, match=words):
        read_token(path)


def test_controllers_that_start_together_have_one_token(tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path\n"
    program += "from knotless.controller.rest.api import read_token\n"
    program += "print('started', flush=True)\nsys.stdin.read(1)\n"
    program += "for name in sys.argv[1:]: print(read_token(Path(name)))\n"
    names = [str(tmp_path / f"token-{number}") for number in range(200)]
    words = [sys.executable, "-c", program, *names]
    starts = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for start in starts:
        assert start.stdout is not None
        assert start.stdout.readline() == "started\n"
    for start in starts:
        assert start.stdin is not None
        start.stdin.write("\n")
        start.stdin.flush()
    tokens = [start.communicate(timeout=HANG_S)[0].split() for start in starts]
    assert [start.returncode for start in starts] == [0, 0, 0]
    assert len(set(tokens[0])) == len(names)
    assert tokens[0] == tokens[1] == tokens[2]


def test_a_directory_is_no_token_file(tmp_path: Path) -> None:
    with pytest.raises(KnotlessError, match=r"rest\.token_file"):
        read_token(tmp_path)


def test_paths_methods_and_the_token_are_checked() -> None:
    done: list[bytes] = []
    api = Api(
        {"/status": lambda: {"ready": True}, "/text": lambda: Response(b"text", "text/plain")},
        {"/reload": done.append},
        Access(TOKEN, OWN),
    )
    assert api.answer(Request("GET", "/status", GOOD)).body == b'{"ready": true}\n'
    assert api.answer(Request("GET", "/text", GOOD)).content_type == "text/plain"
    for request, status in (
        (Request("GET", "/nothing", GOOD), HTTPStatus.NOT_FOUND),
        (Request("POST", "/status", GOOD), HTTPStatus.METHOD_NOT_ALLOWED),
        (Request("GET", "/reload", GOOD), HTTPStatus.METHOD_NOT_ALLOWED),
        (Request("POST", "/reload", {"host": "localhost"}), HTTPStatus.UNAUTHORIZED),
    ):
        with pytest.raises(HttpError) as raised:
            api.answer(request)
        assert raised.value.status == status
    with pytest.raises(HttpError, match="Host"):
        api.answer(Request("GET", "/status", {"host": "evil.example"}))
    assert done == []
    assert api.answer(Request("POST", "/reload", GOOD, b"{}")).status == HTTPStatus.OK
    assert done == [b"{}"]


def test_an_answer_is_computed_once_in_a_tenth_of_a_second_or_after_an_event() -> None:
    now_s, computed = 5.0, 0

    def status() -> object:
        nonlocal computed
        computed += 1
        return {"number": computed}

    events = Events()
    reads = {"/status": status, "/events": events.response}
    access = Access(TOKEN, OWN)
    api = Api(reads, {"/reload": lambda _body: {}}, access, lambda: now_s, events.count)

    def number() -> int:
        value: int = json.loads(api.answer(Request("GET", "/status", GOOD)).body)["number"]
        return value

    assert [number() for _ in range(9)] == [1] * 9
    now_s = 5.099
    assert number() == 1
    now_s = 5.11
    assert [number() for _ in range(9)] == [2] * 9
    events.tell("port", switch="s1")
    assert [number(), number()] == [3, 3]
    api.answer(Request("POST", "/reload", GOOD, b"{}"))
    assert [number(), number()] == [4, 4]
    streams = [api.answer(Request("GET", "/events", GOOD)).stream for _ in range(2)]
    assert streams[0] is not streams[1]
