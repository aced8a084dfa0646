"""The page's server: what it serves, and above all what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any

import pytest
from starlette.testclient import TestClient

from knotless.base.errors import EmulationError
from knotless.base.http_rules import LIMITS, OwnNames
from knotless.topologies import load
from knotless.topologies.fabric import Fabric, Host, Link, Switch
from knotless.web.app import FILES, STATIC, Action, make_app
from knotless.web.feed import MAX_CLIENTS, Feed
from knotless.web.guard import HEADERS
from knotless.web.picture import Picture

TOKEN = "correct-horse-battery-staple"  # noqa: S105 - of this test only
FRAME: dict[str, Any] = {"at_us": 1, "rows": [], "drops": [], "down": [], "knot": None}


class FakeSource:
    """A source whose only action records what it is given."""

    feed: Feed

    def __init__(self, token: str | None) -> None:
        self._token = token
        self.asked: list[Mapping[str, Any]] = []

    @property
    def actions(self) -> Mapping[str, Action]:
        return {"cut": self._cut}

    def token(self) -> str | None:
        return self._token

    async def run(self) -> None:
        await asyncio.Event().wait()

    def _cut(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        if fields.get("link") == "nowhere":
            raise EmulationError("no link 'nowhere'")
        self.asked.append(fields)
        return {"link": "s1:2-s2:2"}


@pytest.fixture
def feed() -> Feed:
    live = Feed("live", "fabric test", ("cut",))
    live.set_picture(Picture(load("ring,4")))
    return live


@pytest.fixture
def source() -> FakeSource:
    return FakeSource(TOKEN)


@pytest.fixture
def client(feed: Feed, source: FakeSource) -> Iterator[TestClient]:
    with TestClient(make_app(feed, source), base_url="http://127.0.0.1:8088") as test_client:
        yield test_client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", FILES)
def test_files_are_served_with_a_strict_policy(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == FILES[path][1]
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src 'self';" in policy


class Inline(HTMLParser):
    """Collects what a policy without inline code would block, and other hosts."""

    def __init__(self) -> None:
        super().__init__()
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "style" or (tag == "script" and "src" not in given):
            self.inline.append(tag)
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        self.inline += [url for url in given.values() if url and "//" in url]


def test_the_page_has_no_inline_code_and_no_other_host() -> None:
    parser = Inline()
    parser.feed((STATIC / "index.html").read_text(encoding="utf-8"))
    assert parser.inline == []
    assert "url(" not in (STATIC / "app.css").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ["/nothing", "/../pyproject.toml", "/api/actions/cut", "/app.py"])
def test_other_paths_do_not_exist(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (404, 405)


@pytest.mark.parametrize(
    ("host", "served"),
    [
        ("127.0.0.1:8088", True),
        ("localhost", True),
        ("[::1]:8088", True),
        ("10.0.0.1", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        ("[", False),
    ],
)
def test_the_host_must_be_an_address_or_ours(host: str, served: bool) -> None:
    assert OwnNames("127.0.0.1").has(host) == served


def test_a_name_that_points_to_our_address_is_refused(client: TestClient) -> None:
    answer = client.get("/api/state", headers={"Host": "evil.example"})
    assert answer.status_code == 403
    assert "Host" in answer.json()["error"]


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://127.0.0.1:8088", 200),
        ("http://evil.example", 403),
        ("http://127.0.0.1:1", 403),
        ("null", 403),
    ],
)
def test_pages_of_other_sites_are_refused(
    client: TestClient, source: FakeSource, origin: str | None, status: int
) -> None:
    headers = bearer(TOKEN) | ({} if origin is None else {"Origin": origin})
    answer = client.post("/api/actions/cut", json={"link": "s1-s2"}, headers=headers)
    assert answer.status_code == status
    assert len(source.asked) == (status == 200)


@pytest.mark.parametrize(
    "headers",
    [{}, bearer("wrong"), bearer(""), {"Authorization": f"Basic {TOKEN}"}, {"Cookie": TOKEN}],
)
def test_nothing_changes_without_the_token(
    client: TestClient, source: FakeSource, headers: dict[str, str]
) -> None:
    answer = client.post(f"/api/actions/cut?token={TOKEN}", json={"link": "s1-s2"}, headers=headers)
    assert answer.status_code == 401
    assert source.asked == []


def test_nothing_changes_where_there_is_no_token(feed: Feed) -> None:
    source = FakeSource(None)
    with TestClient(make_app(feed, source), base_url="http://localhost") as client:
        answer = client.post("/api/actions/cut", json={}, headers=bearer("None"))
    assert (answer.status_code, source.asked) == (401, [])


def test_an_action_is_answered_or_refused_with_one_line(
    client: TestClient, source: FakeSource
) -> None:
    answer = client.post("/api/actions/cut", json={"link": "s1-s2"}, headers=bearer(TOKEN))
    assert (answer.status_code, answer.json()) == (200, {"link": "s1:2-s2:2"})
    assert source.asked == [{"link": "s1-s2"}]
    answer = client.post("/api/actions/cut", json={"link": "nowhere"}, headers=bearer(TOKEN))
    assert (answer.status_code, answer.json()) == (422, {"error": "no link 'nowhere'"})
    assert client.post("/api/actions/fly", json={}, headers=bearer(TOKEN)).status_code == 404


@pytest.mark.parametrize("body", [b"[]", b"{", b"\xff", b"1" * 100])
def test_a_body_that_is_no_object_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/actions/cut", content=body, headers=bearer(TOKEN))
    assert answer.status_code == 400


def test_long_requests_are_refused(client: TestClient) -> None:
    body = b" " * (LIMITS.body_bytes + 1)
    assert client.post("/api/actions/cut", content=body, headers=bearer(TOKEN)).status_code == 413
    parts = iter([body[: LIMITS.body_bytes // 2]] * 3)  # without a Content-Length
    answer = client.post("/api/actions/cut", content=parts, headers=bearer(TOKEN))
    assert answer.status_code == 411
    assert client.get("/api/state?" + "x" * 3000).status_code == 414


def test_frames_are_read_by_number(client: TestClient, feed: Feed) -> None:
    for _ in range(5):
        feed.add_frame(FRAME)
    assert [frame["n"] for frame in client.get("/api/frames?first=1&count=3").json()] == [1, 2, 3]
    assert client.get("/api/frames?first=9&count=3").json() == []
    timeline = client.get("/api/timeline").json()
    assert (timeline["first"], len(timeline["times"]), timeline["knots"]) == (0, 5, [])
    for wrong in ("", "?first=-1&count=1", "?first=1&count=x", "?first=1e3&count=1"):
        assert client.get(f"/api/frames{wrong}").status_code == 400


def test_names_are_data_only(feed: Feed, source: FakeSource) -> None:
    name = "<script>alert(1)</script>"
    switches = (Switch(name, 1), Switch("s2", 2))
    host = Host("h1", "02:00:00:00:00:01", "10.0.0.1", name, 1)
    feed.set_picture(Picture(Fabric(name, switches, (host,), (Link(name, 2, "s2", 1),))))
    with TestClient(make_app(feed, source), base_url="http://localhost") as client:
        answer = client.get("/api/picture")
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.json()["nodes"][0]["name"] == name
        assert name not in client.get("/").text


def test_the_number_of_pages_is_bounded(client: TestClient, feed: Feed) -> None:
    clients = [feed.connect() for _ in range(MAX_CLIENTS)]
    answer = client.get("/api/stream")
    assert answer.status_code == 503
    clients[0].close()
    assert feed.clients == MAX_CLIENTS - 1


def test_a_stream_begins_with_what_the_page_needs_and_ends_with_the_page(feed: Feed) -> None:
    feed.set_state({"controller": {"reachable": False}})

    async def read() -> bytes:
        client = feed.connect()
        messages = client.messages()
        text = await anext(messages) + await anext(messages)
        feed.add_event("ready", {})
        text += await anext(messages)
        client.close()
        return text

    text = asyncio.run(read()).decode()
    kinds = [line for line in text.splitlines() if line.startswith("event: ")]
    assert kinds == ["event: picture", "event: state", "event: event"]
    assert '"reachable": false' in text
    assert feed.clients == 0
