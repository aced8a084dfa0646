"""The attacks of a benchmark connect, send what they say, and count it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from bench.support import attack


@pytest.fixture
def server() -> Iterator[tuple[int, list[bytes]]]:
    """Yield the port of a server that closes each connection after what comes first, and that."""
    heard: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        with connection:
            heard.append(connection.recv(1 << 17))

    def accept(listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        threading.Thread(target=accept, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1], heard
        listening.shutdown(socket.SHUT_RDWR)


def after(calls: int) -> Callable[[], bool]:
    """Return a function that tells an attack to stop after some rounds."""
    left = iter([False] * calls)
    return lambda: next(left, True)


def test_switches_that_mean_harm(
    server: tuple[int, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attack, "SILENT", 5)
    port, heard = server
    did = attack.switches({"openflow": port}, after(4))
    assert (did["silent"], did["greetings"], did["endless lists"]) == (5, 2, 2)
    assert attack.GREETING in heard
    assert any(text.startswith(attack.RULES[:8]) for text in heard)


def test_slow_clients_that_are_closed_come_back(
    server: tuple[int, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attack, "SLOW", 5)
    port, heard = server
    did = attack.clients({"rest": port}, after(2))
    assert did["clients"] > 5
    assert did["bytes"] >= 5
    assert heard[0].startswith(b"GET /status")


def test_a_forged_list_is_a_whole_message() -> None:
    assert int.from_bytes(attack.RULES[2:4], "big") == len(attack.RULES)
    assert int.from_bytes(attack.GREETING[2:4], "big") == len(attack.GREETING)


def test_no_attack_does_nothing() -> None:
    with attack.attacked(None, {}) as did:
        pass
    assert did == {}
