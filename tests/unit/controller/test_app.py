"""The adapter to Ryu: its datapath serves the connection, and hears nothing of what is ours."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from ryu.base import app_manager
from ryu.lib import hub

from knotless.controller.app import RyuConnection, RyuSocket
from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.messages import BARRIER_REQUEST
from knotless.controller.openflow.stream import DeferredCounts, GuardedStream, LimitedLog
from knotless.controller.reconcile import PROBE_COOKIE
from tests.support.connection_events import DPID, Events
from tests.support.openflow_messages import VALID, message, multipart, packet_in
from tests.support.switch_socket import SwitchSocket

HELLO, FEATURES = VALID["hello"], VALID["features reply"]
PORTS = multipart(ofp.OFPMP_PORT_DESC, b"")


def connection_of(socket: SwitchSocket, events: Events) -> RyuConnection:
    stream = GuardedStream(socket, "here", LimitedLog(), DeferredCounts())
    return RyuConnection(stream, lambda: events)


def read_by_ryu(socket: SwitchSocket, events: Events, size: int = 1 << 10) -> list[bytes]:
    """Return all that Ryu's datapath would read."""
    reader, parts = RyuSocket(connection_of(socket, events), [HELLO]), list[bytes]()
    reader.sendall(message(ofp.OFPT_FEATURES_REQUEST) * 3 + message(18, b"\0\x0d" + bytes(6)))
    while True:
        try:
            part = reader.recv(size)
        except TimeoutError:
            continue
        if not part:
            return parts
        parts.append(part)


def test_ryu_reads_whole_messages_in_pieces_of_any_size() -> None:
    echo = VALID["echo request"]
    parts = read_by_ryu(SwitchSocket(echo[:5], echo[5:]), Events(), size=3)
    assert b"".join(parts) == HELLO + echo
    assert max(map(len, parts)) == 3


def test_probes_do_not_reach_ryu() -> None:
    events = Events()
    ours, other = packet_in(2, b"probe", PROBE_COOKIE), packet_in(2, b"frame", PROBE_COOKIE + 1)
    parts = read_by_ryu(SwitchSocket(ours, FEATURES, other + ours, ours), events)
    # The first came before the switch had said who it is.
    assert parts == [HELLO, ours, FEATURES, other]
    assert events.seen == [("probe", DPID, ours)] * 2


@pytest.mark.parametrize("awaited", [False, True])
def test_answers_to_our_requests_do_not_reach_ryu(awaited: bool) -> None:
    events = Events(awaits=awaited)
    barrier = VALID["barrier reply"]
    parts = read_by_ryu(SwitchSocket(FEATURES, PORTS, barrier), events)
    assert parts == [HELLO, FEATURES, PORTS, *([] if awaited else [barrier])]
    assert events.seen[1:] == [("reply", DPID, barrier)]


def test_a_malformed_message_is_the_end(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="knotless.openflow"):
        assert read_by_ryu(SwitchSocket(FEATURES, message(77)), Events()) == [HELLO, FEATURES]
    assert "is closed: message of type 77" in caplog.text


class Brick:
    """Ryu's handler of OpenFlow, which notes what reaches it."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def send_event_to_observers(self, event: Any, _state: str) -> None:
        self.kinds.append(type(event).__name__)

    def get_handlers(self, _event: Any) -> list[Any]:
        return []


@pytest.mark.usefixtures("eventlet_hub")
def test_ryus_datapath_serves_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    brick, events = Brick(), Events()
    monkeypatch.setattr(app_manager, "lookup_service_brick", lambda _name: brick)
    socket = SwitchSocket(*[TimeoutError()] * 5)
    connection = connection_of(socket, events)

    def use() -> None:
        while connection._datapath is None:
            hub.sleep(0)
        numbers = {connection.next_transaction() for _ in range(3)}
        assert len(numbers) == 3
        assert connection.send(BARRIER_REQUEST.encode(max(numbers)))

    using = hub.spawn(use)
    connection.serve([HELLO])
    using.wait()
    assert [each[1] for each in socket.messages()] == [ofp.OFPT_HELLO, ofp.OFPT_BARRIER_REQUEST]
    assert brick.kinds == ["EventOFPStateChange", "EventOFPHello", "EventOFPStateChange"]
    assert not connection.is_open
    assert not connection.send(b"")
    assert socket.shut
