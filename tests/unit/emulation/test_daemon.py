"""The client of the link emulator's control protocol, against a server of our own."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.emulation.daemon import Daemon

Serve = Callable[[bytes], list[dict[str, Any]]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Return a function that makes the server answer with these bytes, once for each call."""
    threads: list[threading.Thread] = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    listener.settimeout(10)

    def answer(reply: bytes) -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = []

        def once() -> None:
            with listener.accept()[0] as connection, connection.makefile("rb") as reader:
                asked.append(json.loads(reader.readline()))
                connection.sendall(reply)

        threads.append(threading.Thread(target=once))
        threads[-1].start()
        return asked

    with listener:
        yield answer
        for thread in threads:
            thread.join(10)


def client(tmp_path: Path) -> Daemon:
    return Daemon(tmp_path / "s", {"s1": 0, "s2": 1, "s10": 9})


def test_a_cycle_begins_with_its_smallest_channel_of_the_fabric(
    serve: Serve, tmp_path: Path
) -> None:
    reported = {"since_us": 7, "cycle": ["s10:2/1", "s2:3/1", "s2:2/0"], "members": ["s10:2/1"]}
    asked = serve(json.dumps({"ok": True, "deadlock": reported}).encode() + b"\n")
    deadlock = client(tmp_path).deadlock()
    assert deadlock is not None
    assert deadlock.cycle == ("s2:2/0", "s10:2/1", "s2:3/1")
    assert asked == [{"do": "deadlock"}]


def test_no_deadlock_is_none(serve: Serve, tmp_path: Path) -> None:
    serve(b'{"ok":true,"deadlock":null}\n')
    assert client(tmp_path).deadlock() is None


def test_settings_are_sent_only_where_given(serve: Serve, tmp_path: Path) -> None:
    asked = serve(b'{"ok":true,"now_us":2.5}\n')
    assert client(tmp_path).reset() == 2.5
    assert asked == [{"do": "reset"}]
    asked = serve(b'{"ok":true,"now_us":2.5}\n')
    client(tmp_path).reset(flow_control=FlowControl.PFC, links=[{"name": "h1", "rate_mbps": 5}])
    wanted = {"flow_control": "pfc", "links": [{"name": "h1", "rate_mbps": 5}]}
    assert asked == [{"do": "reset", **wanted}]


@pytest.mark.parametrize(
    "reply",
    [b"", b"\n", b"nonsense\n", b"[]\n", b"3\n", b'{"no":1}\n', b'{"ok":false,"error":"bad"}\n'],
)
def test_a_refusal_or_invalid_reply_is_one_line(reply: bytes, serve: Serve, tmp_path: Path) -> None:
    serve(reply)
    with pytest.raises(KnotlessError) as caught:
        client(tmp_path).status()
    assert "\n" not in str(caught.value)


def test_an_absent_emulator_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(KnotlessError, match="does not answer"):
        Daemon(tmp_path / "none", {}).status()
