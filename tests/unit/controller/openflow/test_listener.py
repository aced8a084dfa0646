"""The listener between switches and Ryu: the bytes passed on, connection limits, log lines."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from knotless.base.ports import free_port
from knotless.controller import runtime
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.openflow import listener
from knotless.controller.openflow.guard import Limits
from knotless.controller.openflow.listener import (
    GuardedConnections,
    GuardedSocket,
    LimitedLog,
    Listener,
)
from knotless.controller.reconcile import PROBE_COOKIE
from knotless.controller.rest.metrics import Metrics
from knotless.controller.status import Status
from knotless.controller.updates.fabric_state import FabricState
from knotless.topologies import load
from tests.support.openflow_messages import VALID, message, packet_in
from tests.support.waiting import HANG_S


def counts() -> Metrics:
    return Metrics(
        Status(FabricState(DesiredState.compute(Config(fabric="ring,4"), load("ring,4")))),
        lambda: 0.0,
    )


class Connection:
    """A connected socket that receives ``parts``, then its end."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = iter(parts)
        self.closed = False

    def recv(self, _size: int) -> bytes:
        return next(self.parts, b"")

    def sendall(self, _data: bytes) -> None:
        pass

    def settimeout(self, seconds: float) -> None:
        assert seconds > Limits.handshake_s

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, logger="knotless.openflow"):
        yield caplog


def guarded(
    *parts: bytes, probes: list[tuple[int, bytes]] | None = None
) -> tuple[GuardedSocket, Connection]:
    connection, taken = Connection(*parts), [] if probes is None else probes

    def take_probe(dpid: int, packet_in: bytes) -> None:
        taken.append((dpid, packet_in))

    return GuardedSocket(connection, "here", LimitedLog(), counts(), take_probe), connection


def test_ryu_reads_whole_messages_in_pieces_of_any_size() -> None:
    text = VALID["hello"] + VALID["echo request"]
    reader, _ = guarded(text[:5], text[5:20], text[20:])
    assert b"".join(iter(lambda: reader.recv(3), b"")) == text


def test_probes_do_not_reach_ryu() -> None:
    taken: list[tuple[int, bytes]] = []
    ours, other = packet_in(2, b"probe", PROBE_COOKIE), packet_in(2, b"frame", PROBE_COOKIE + 1)
    reader, _ = guarded(ours, VALID["features reply"], other + ours, ours, probes=taken)
    reader.sendall(message(ofp.OFPT_FEATURES_REQUEST))
    with pytest.raises(TimeoutError):
        reader.recv(1000)
    assert reader.recv(1000) == VALID["features reply"]
    assert reader.recv(1000) == other
    with pytest.raises(TimeoutError):
        reader.recv(1000)
    assert reader.recv(1000) == b""
    # The first came before the switch had said who it is.
    (dpid,) = struct.unpack_from("!Q", VALID["features reply"], 8)
    assert taken == [(dpid, ours)] * 2


def test_a_malformed_message_is_the_end(log: pytest.LogCaptureFixture) -> None:
    reader, _ = guarded(VALID["hello"], message(77), VALID["echo request"])
    assert reader.recv(100) == VALID["hello"]
    assert reader.recv(100) == b""
    assert log.messages == [
        "the connection from here is closed: "
        "message of type 77, which switches do not send to controllers"
    ]


def test_dropped_packets_are_reported_at_the_end(log: pytest.LogCaptureFixture) -> None:
    burst = int(Limits().unasked_burst)
    # So many that a slow machine, which lets more through, drops some as well.
    reader, connection = guarded(VALID["packet-in"] * (10 * burst))
    while reader.recv(1 << 20):
        pass
    reader.close()
    assert connection.closed
    (line,) = log.messages
    assert line.startswith("the connection from here sent ")
    assert line.endswith(" packets or echo requests above its rate: dropped")


def test_connections_beyond_the_limit_are_closed(
    monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    serve = GuardedConnections(counts(), lambda _dpid, _packet_in: None)
    refused = Connection()

    def while_one_is_open(_connection: Any, _address: object) -> None:
        serve(refused, "there")

    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(listener, "_SERVE", while_one_is_open)
    serve(Connection(VALID["hello"]), "here")
    assert refused.closed
    assert log.messages == ["the connection from there is closed: there are 1 connections already"]
    log.clear()
    served = []
    monkeypatch.setattr(listener, "_SERVE", lambda *arguments: served.append(arguments[1]))
    serve(Connection(VALID["hello"]), "next")
    assert served == ["next"]


def test_who_says_nothing_gets_no_datapath(monkeypatch: pytest.MonkeyPatch) -> None:
    serve = GuardedConnections(counts(), lambda _dpid, _packet_in: None)
    served: list[bytes] = []
    monkeypatch.setattr(
        listener, "_SERVE", lambda reader, _address: served.append(reader.recv(1 << 10))
    )
    silent, malformed = Connection(), Connection(message(77))
    for connection in (silent, malformed):
        serve(connection, "here")
        assert connection.closed
    hello = VALID["hello"]
    serve(Connection(hello[:3], hello[3:]), "there")
    assert served == [hello]


def test_many_lines_become_one(log: pytest.LogCaptureFixture) -> None:
    limited = LimitedLog()
    for number in range(100):
        limited.warn(number, "is closed")
    assert log.messages == ["the connection from 0 is closed"]


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
