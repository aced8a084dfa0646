"""The listener: connection limits, who is served, and who is served meanwhile."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from knotless.base.ports import free_port
from knotless.controller import runtime
from knotless.controller.openflow import listener
from knotless.controller.openflow.listener import GuardedConnections, Listener
from knotless.controller.openflow.stream import DeferredCounts, GuardedStream
from tests.support.openflow_messages import VALID, message
from tests.support.switch_socket import SwitchSocket
from tests.support.waiting import HANG_S


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, logger="knotless.openflow"):
        yield caplog


def test_connections_beyond_the_limit_are_closed(
    monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    refused, served = SwitchSocket(), list[object]()

    def while_one_is_open(stream: GuardedStream, _greeting: list[bytes]) -> None:
        connections(refused, "there")
        served.append(stream.address)

    connections = GuardedConnections(DeferredCounts(), while_one_is_open)
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 1)
    connections(SwitchSocket(VALID["hello"]), "here")
    assert refused.closed
    assert log.messages == ["the connection from there is closed: there are 1 connections already"]
    connections(SwitchSocket(VALID["hello"]), "next")
    assert served == ["here", "next"]


def test_who_says_nothing_is_not_served() -> None:
    served: list[list[bytes]] = []
    connections = GuardedConnections(
        DeferredCounts(), lambda _stream, greeting: served.append(greeting)
    )
    for silent in (SwitchSocket(), SwitchSocket(message(77))):
        connections(silent, "here")
        assert silent.closed
    hello = VALID["hello"]
    connections(SwitchSocket(hello[:3], hello[3:]), "there")
    assert served == [[hello]]


def test_a_connection_is_closed_whatever_serves_it() -> None:
    def fail(_stream: GuardedStream, _greeting: list[bytes]) -> None:
        raise LookupError

    connection = SwitchSocket(VALID["hello"])
    with pytest.raises(LookupError):
        GuardedConnections(DeferredCounts(), fail)(connection, "here")
    assert connection.closed


def test_others_are_served_between_connections_that_come_at_once() -> None:
    turns, served_in = 0, list[int]()
    all_served = runtime.Event()

    def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            runtime.sleep(0)

    def serve(connection: Any, _address: object) -> None:
        connection.close()
        served_in.append(turns)
        if len(served_in) == len(clients):
            all_served.set()

    port = free_port()
    listening = Listener(("127.0.0.1", port), serve)
    clients = [socket.create_connection(("127.0.0.1", port), timeout=HANG_S) for _ in range(20)]
    threads = [runtime.spawn(others), runtime.spawn(listening.serve_forever)]
    try:
        assert all_served.wait(timeout=HANG_S)
    finally:
        for thread in threads:
            thread.kill()
        listening.close()
        for client in clients:
            client.close()
    assert len(set(served_in)) == len(served_in)
