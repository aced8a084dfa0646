"""Our end of a connection: handshake, keep-alive, what waits to be sent, and hostile streams."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_parser, ofproto_protocol

from knotless.controller import runtime
from knotless.controller.openflow import connection as connection_module
from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.connection import MAX_WAITING, Connection
from knotless.controller.openflow.endpoint import ECHO_INTERVAL_S, MAX_UNANSWERED, Endpoint
from knotless.controller.openflow.records import RoleReply
from knotless.controller.openflow.stream import DeferredCounts, GuardedStream, LimitedLog
from knotless.controller.reconcile import PROBE_COOKIE
from tests.support.connection_events import DPID, Events
from tests.support.openflow_messages import MAC, VALID, forged, message, multipart, packet_in
from tests.support.switch_socket import SwitchSocket

DATAPATH = ofproto_protocol.ProtocolDesc(version=ofp.OFP_VERSION)
HELLO, FEATURES = VALID["hello"], VALID["features reply"]


def port(number: int, config: int = 0, state: int = 0) -> bytes:
    return struct.pack("!I4x6s2x16s8I", number, MAC, b"port", config, state, *[0] * 6)


def ports(*descriptions: bytes, more: bool = False) -> bytes:
    return multipart(ofp.OFPMP_PORT_DESC, b"".join(descriptions), more=more, xid=3)


def port_status(reason: int, description: bytes) -> bytes:
    return message(ofp.OFPT_PORT_STATUS, bytes([reason]) + bytes(7) + description)


UP = (HELLO, FEATURES, ports(port(1)))


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, logger="knotless.openflow"):
        yield caplog


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [100.0]
    monkeypatch.setattr(runtime, "now_s", lambda: time[0])
    return time


def endpoint_of(socket: SwitchSocket, events: Events) -> Endpoint:
    stream = GuardedStream(socket, "here", LimitedLog(), DeferredCounts())
    return Endpoint(stream, lambda: events)


def served(*parts: bytes | Exception, events: Events | None = None) -> SwitchSocket:
    """Serve a switch that sends these parts; return its socket."""
    socket = SwitchSocket(*parts)
    endpoint = endpoint_of(socket, events or Events())
    greeting = endpoint.stream.greeting()
    assert greeting is not None
    endpoint.serve(greeting)
    return socket


def kinds(socket: SwitchSocket) -> list[int]:
    return [each[1] for each in socket.messages()]


def test_a_switch_is_greeted_and_says_who_it_is() -> None:
    events = Events()
    socket = served(HELLO, FEATURES, ports(port(1)), events=events)
    assert events.seen == [("connected", DPID, {1: True}), "disconnected"]
    assert kinds(socket) == [
        *(ofp.OFPT_HELLO, ofp.OFPT_FEATURES_REQUEST, ofp.OFPT_MULTIPART_REQUEST)
    ]
    asked = socket.messages()[-1]
    assert int.from_bytes(asked[8:10], "big") == ofp.OFPMP_PORT_DESC
    transactions = [each[4:8] for each in socket.messages()]
    assert len(set(transactions)) == 3


def test_ports_are_what_all_parts_describe() -> None:
    events = Events()
    first = ports(port(1), port(2, config=ofp.OFPPC_PORT_DOWN), more=True)
    served(HELLO, FEATURES, first, ports(port(3, state=ofp.OFPPS_LINK_DOWN)), events=events)
    assert events.seen[0] == ("connected", DPID, {1: True, 2: False, 3: False})


def test_ports_change_and_go() -> None:
    events = Events()
    served(
        *(HELLO, FEATURES, port_status(0, port(8)), ports(port(1), port(2))),
        *(port_status(2, port(1, state=1)), port_status(1, port(2)), port_status(0, port(9))),
        events=events,
    )
    assert events.seen[:-1] == [
        ("connected", DPID, {8: True, 1: True, 2: True}),
        ("ports", {8: True, 1: False, 2: True}),
        ("ports", {8: True, 1: False}),
        ("ports", {8: True, 1: False, 9: True}),
    ]


def test_what_a_switch_says_reaches_whoever_takes_it() -> None:
    events = Events()
    probe, frame = packet_in(2, b"probe", PROBE_COOKIE), packet_in(2, b"frame", 5)
    served(*UP, probe, frame, VALID["flow removed"], VALID["role reply"], events=events)
    assert events.seen[1:-1] == [("probe", DPID, probe), ("removed", DPID), (DPID, RoleReply(2, 5))]
    events.seen.clear()
    served(*UP, VALID["error"], VALID["barrier reply"], events=events)
    reply = ("reply", DPID, VALID["barrier reply"])
    assert events.seen[1:-1] == [(DPID, "OFPFMFC_BAD_TABLE_ID(2)"), reply]


@pytest.mark.parametrize(
    ("version", "bitmap", "fits"),
    [
        (4, None, True),
        (6, None, True),
        (1, None, False),
        (3, None, False),
        (4, 1 << 4, True),
        (6, 1 << 4 | 1 << 6, True),
        (6, 1 << 6 | 1 << 1, False),
        (1, 1 << 4, True),
        (4, 0, False),
    ],
)
def test_the_version_is_agreed_on(
    version: int, bitmap: int | None, fits: bool, log: pytest.LogCaptureFixture
) -> None:
    """OpenFlow 1.3.4, 6.3.1: the highest common version, or an error that says why not."""
    body = b"" if bitmap is None else struct.pack("!HHI", 1, 8, bitmap)
    socket = served(message(ofp.OFPT_HELLO, body, version=version))
    hello, answer = socket.messages()
    assert hello[:2] == bytes([ofp.OFP_VERSION, ofp.OFPT_HELLO])
    if fits:
        assert (answer[1], log.messages) == (ofp.OFPT_FEATURES_REQUEST, [])
        return
    read = ofproto_parser.msg(DATAPATH, *ofproto_parser.header(answer), bytearray(answer))
    assert (read.type, read.code) == (ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE)
    assert read.data == b"only OpenFlow 1.3 (version 4) is spoken here"
    (line,) = log.messages
    assert line.endswith(f"its hello, of version {version}, does not offer OpenFlow 1.3")


def test_our_hello_is_read_by_ryu() -> None:
    hello = served(HELLO).messages()[0]
    read = ofproto_parser.msg(DATAPATH, *ofproto_parser.header(hello), bytearray(hello))
    assert [element.versions for element in read.elements] == [[ofp.OFP_VERSION]]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((VALID["echo request"],), "message of type 2 before a hello"),
        ((HELLO, FEATURES, FEATURES, FEATURES, FEATURES), "more answers than messages"),
        ((HELLO, message(77)), "message of type 77, which switches do not send"),
        ((HELLO, FEATURES, ports(bytes(7))), "port descriptions not of 64 bytes each"),
        ((HELLO, ports(port(1))), "multipart reply that nobody asked for"),
    ],
)
def test_hostile_streams_end_with_one_line(
    parts: tuple[bytes, ...], reason: str, log: pytest.LogCaptureFixture
) -> None:
    socket = served(*parts, VALID["echo request"])
    assert socket.shut
    (line,) = log.messages
    assert reason in line
    assert "\n" not in line


@given(st.integers(0, 1 << 32))
def test_forged_messages_end_the_connection_or_nothing(seed: int) -> None:
    events = Events()
    served(*UP, *forged(seed, 40), events=events)
    assert events.seen[-1] == "disconnected"
    assert events.seen.count("disconnected") == 1


def test_ports_without_end_are_refused(
    monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection_module, "MAX_PORTS", 3)
    served(*UP, *(port_status(0, port(number)) for number in range(9)))
    (line,) = log.messages
    assert "more than 3 ports" in line


def test_an_error_of_ours_does_not_end_the_connection(log: pytest.LogCaptureFixture) -> None:
    class Failing(Events):
        def rules_removed(self, connection: Connection) -> None:
            raise LookupError(connection.dpid)

    events = Failing()
    served(*UP, VALID["flow removed"], VALID["role reply"], events=events)
    assert events.seen[1:] == [(DPID, RoleReply(2, 5)), "disconnected"]
    assert "a message of type 11 was not handled" in log.text


def test_an_echo_request_is_answered_with_what_it_holds() -> None:
    socket = served(HELLO, message(ofp.OFPT_ECHO_REQUEST, b"anything", xid=4711))
    assert message(ofp.OFPT_ECHO_REPLY, b"anything", xid=4711) in socket.messages()


class Quiet(SwitchSocket):
    """A switch of which nothing comes for the time that the controller waits."""

    def __init__(self, clock: list[float], *parts: bytes | Exception, answers: int = 0) -> None:
        super().__init__(*parts)
        self.clock, self.answers, self.asked = clock, answers, 0

    def recv(self, size: int) -> bytes:
        if part := super().recv(size):
            return part
        if self.shut:
            return b""
        self.clock[0] += ECHO_INTERVAL_S
        asked = [each for each in self.messages() if each[1] == ofp.OFPT_ECHO_REQUEST]
        if len(asked) > self.asked:
            self.asked = len(asked)
            if self.answers:
                self.answers -= 1
                return message(ofp.OFPT_ECHO_REPLY, xid=int.from_bytes(asked[-1][4:8], "big"))
        raise TimeoutError


@pytest.mark.parametrize("answers", [0, 5])
def test_a_switch_that_answers_no_more_is_given_up(
    answers: int, clock: list[float], log: pytest.LogCaptureFixture
) -> None:
    socket = Quiet(clock, *UP, answers=answers)
    endpoint = endpoint_of(socket, Events())
    greeting = endpoint.stream.greeting()
    assert greeting is not None
    endpoint.serve(greeting)
    assert socket.asked == answers + MAX_UNANSWERED
    assert log.messages[0].endswith("is closed: no answer to 3 echo requests")


class Stalled(SwitchSocket):
    """A switch that takes nothing any more until it is told to."""

    def __init__(self, *parts: bytes | Exception) -> None:
        super().__init__(*parts)
        self.stalls, self.goes_on = False, runtime.Event()

    def sendall(self, data: bytes) -> None:
        if self.stalls:
            self.goes_on.wait()
        super().sendall(data)


def test_who_sends_much_waits_until_it_is_taken() -> None:
    socket, sent = Stalled(), list[int]()
    endpoint = endpoint_of(socket, Events())
    socket.stalls = True

    def send() -> None:
        for number in range(3 * MAX_WAITING):
            assert endpoint.send(message(ofp.OFPT_BARRIER_REQUEST, xid=number))
            sent.append(number)

    sending = runtime.spawn(send)
    for _ in range(20):
        runtime.sleep(0)
    assert endpoint.is_full
    assert len(sent) == MAX_WAITING
    socket.stalls = False
    socket.goes_on.set()
    runtime.join([sending])
    while endpoint.waiting:
        runtime.sleep(0)
    assert [int.from_bytes(each[4:8], "big") for each in socket.messages()] == sent
    assert len(sent) == 3 * MAX_WAITING


def test_the_end_lets_no_sender_wait() -> None:
    socket, results = Stalled(), list[bool]()
    endpoint = endpoint_of(socket, Events())
    socket.stalls = True

    def send() -> None:
        results.extend(endpoint.send(message(20)) for _ in range(MAX_WAITING + 1))

    sending = runtime.spawn(send)
    for _ in range(20):
        runtime.sleep(0)
    endpoint.close()
    endpoint.close()
    runtime.join([sending])
    assert results == [True] * MAX_WAITING + [False]
    assert not endpoint.send(message(20))
    socket.goes_on.set()
    runtime.sleep(0)


def test_a_socket_that_fails_ends_the_connection() -> None:
    class Broken(SwitchSocket):
        def sendall(self, data: bytes) -> None:
            if self.sent:
                raise TimeoutError
            super().sendall(data)

    events, socket = Events(), Broken(*UP)
    endpoint = endpoint_of(socket, events)
    greeting = endpoint.stream.greeting()
    assert greeting is not None
    endpoint.serve(greeting)
    assert not endpoint.is_open
    assert socket.shut


def test_transactions_differ_and_none_is_zero() -> None:
    endpoint = endpoint_of(SwitchSocket(), Events())
    endpoint._transaction = 0xFFFFFFFE
    assert [endpoint.next_transaction() for _ in range(3)] == [0xFFFFFFFF, 1, 2]
