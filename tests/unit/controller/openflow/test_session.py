"""The messages of a session with a switch, which the test simulates."""

from __future__ import annotations

import itertools
import struct
from typing import cast

import pytest

from knotless.controller import runtime
from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.connection import Connection
from knotless.controller.openflow.replies import Refusal, read_refusal
from knotless.controller.openflow.session import (
    MAX_FOREIGN,
    Session,
    SwitchContents,
    SwitchGoneError,
)
from knotless.controller.reconcile import PROBE_COOKIE, RuleChange
from knotless.forwarding.openflow.rules import COOKIE, Field, Output, Rule
from tests.support.openflow_messages import message, multipart


class FakeConnection:
    """The part of a connection that a session uses; keeps all messages sent."""

    def __init__(self) -> None:
        self.dpid = 1
        self.writes: list[bytes] = []
        self.open, self.is_full = True, False
        self._ids = itertools.count(100)

    def next_transaction(self) -> int:
        return next(self._ids)

    def send(self, data: bytes) -> bool:
        self.writes.append(data)
        return self.open

    def messages(self) -> list[bytes]:
        """Everything sent, in order."""
        stream, messages = b"".join(self.writes), []
        while stream:
            length = int.from_bytes(stream[2:4], "big")
            messages.append(stream[:length])
            stream = stream[length:]
        return messages

    def sent(self) -> list[tuple[int, int]]:
        """(message type, xid) of everything sent, in order."""
        return [(each[1], int.from_bytes(each[4:8], "big")) for each in self.messages()]


@pytest.fixture
def connection() -> FakeConnection:
    return FakeConnection()


def session_of(connection: FakeConnection) -> Session:
    return Session(cast(Connection, connection))


def rules(count: int) -> tuple[RuleChange, ...]:
    return tuple(
        RuleChange("add", Rule(1, 10, (Field("eth_dst", i),), (Output(1),), cookie=COOKIE))
        for i in range(count)
    )


def until_sent(connection: FakeConnection, kind: int) -> int:
    """Yield to other greenlets until a message of ``kind`` has been sent; return its xid."""
    while True:
        for sent, xid in connection.sent():
            if sent == kind:
                return xid
        runtime.sleep(0)


def stats(number: int) -> bytes:
    """Return an entry of this table that matches everything and does nothing."""
    match = struct.pack("!HH4x", ofp.OFPMT_OXM, 4)
    head = (48 + len(match), number, 0, 0, 1, 0, 0, 0, COOKIE, 0, 0)
    return struct.pack("!HBxIIHHHH4xQQQ", *head) + match


def flows(xid: int, *entries: bytes, more: bool = False) -> bytes:
    return multipart(ofp.OFPMP_FLOW, b"".join(entries), more=more, xid=xid)


def barrier_reply(xid: int) -> bytes:
    return message(ofp.OFPT_BARRIER_REPLY, xid=xid)


def refusal(request: bytes, kind: int, code: int, xid: int = 0, more: bytes = b"") -> Refusal:
    """Return an error message about a request."""
    body = struct.pack("!HH", kind, code) + more + request
    return read_refusal(message(ofp.OFPT_ERROR, body, xid))


def test_the_parts_of_a_long_answer_are_put_together(connection: FakeConnection) -> None:
    session = session_of(connection)
    asking = runtime.spawn(session.rules)
    xid = until_sent(connection, ofp.OFPT_MULTIPART_REQUEST)
    assert session.deliver(flows(xid, stats(0), stats(1), more=True))
    assert not session.deliver(flows(xid + 1, stats(9)))  # somebody else's
    assert not session.deliver(barrier_reply(xid))
    assert not session.deliver(multipart(ofp.OFPMP_PORT_STATS, bytes(112), xid=xid))
    assert session.deliver(flows(xid, stats(2)))
    assert [rule.table for rule in asking.wait()] == [0, 1, 2]


def test_many_changes_go_in_few_writes_and_end_with_a_barrier(connection: FakeConnection) -> None:
    session = session_of(connection)
    changing = runtime.spawn(session.change, rules(2000))
    session.deliver(barrier_reply(until_sent(connection, ofp.OFPT_BARRIER_REQUEST)))
    assert changing.wait() == []
    kinds = [kind for kind, _ in connection.sent()]
    assert kinds == [ofp.OFPT_FLOW_MOD] * 2000 + [ofp.OFPT_BARRIER_REQUEST]
    assert len(connection.writes) < 10


def test_a_refusal_names_the_change_that_was_refused(connection: FakeConnection) -> None:
    session = session_of(connection)
    changes = rules(3)
    changing = runtime.spawn(session.change, changes)
    barrier = until_sent(connection, ofp.OFPT_BARRIER_REQUEST)
    # The error has another id than its request, as it may.
    request = connection.messages()[1]
    session.refuse(refusal(request, 5, 1, xid=99_999))
    session.deliver(barrier_reply(barrier))
    ((change, reason),) = changing.wait()
    assert change == changes[1]
    assert "OFPFMFC_TABLE_FULL" in reason


def test_steps_go_in_one_bundle(connection: FakeConnection) -> None:
    session = session_of(connection)
    changing = runtime.spawn(session.change_at_once, (rules(2), rules(1)))
    session.deliver(barrier_reply(until_sent(connection, ofp.OFPT_BARRIER_REQUEST)))
    assert changing.wait() == []
    kinds = [kind for kind, _ in connection.sent()]
    assert kinds == [ofp.OFPT_EXPERIMENTER] * 5 + [ofp.OFPT_BARRIER_REQUEST]


@pytest.mark.parametrize(
    "code", [ofp.OFPBRC_BAD_TYPE, ofp.OFPBRC_BAD_EXPERIMENTER, ofp.OFPBRC_BAD_EXP_TYPE]
)
def test_a_switch_without_bundles_gets_one_step_after_the_other(
    connection: FakeConnection, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    session = session_of(connection)
    changing = runtime.spawn(session.change_at_once, (rules(2), rules(1)))
    bundle = until_sent(connection, ofp.OFPT_BARRIER_REQUEST)
    for kind, xid in connection.sent():
        if kind == ofp.OFPT_EXPERIMENTER:
            request = struct.pack("!BBHI", ofp.OFP_VERSION, kind, 24, xid) + bytes(16)
            session.refuse(refusal(request, ofp.OFPET_BAD_REQUEST, code, xid))
    connection.writes.clear()
    session.deliver(barrier_reply(bundle))
    for count in (2, 1):
        barrier = until_sent(connection, ofp.OFPT_BARRIER_REQUEST)
        kinds = [kind for kind, _ in connection.sent()]
        assert kinds == [ofp.OFPT_FLOW_MOD] * count + [ofp.OFPT_BARRIER_REQUEST]
        connection.writes.clear()
        session.deliver(barrier_reply(barrier))
    assert changing.wait() == []
    assert "takes no bundles" in caplog.text
    changing = runtime.spawn(session.change_at_once, (rules(1),))
    session.deliver(barrier_reply(until_sent(connection, ofp.OFPT_BARRIER_REQUEST)))
    assert changing.wait() == []
    assert [kind for kind, _ in connection.sent()] == [ofp.OFPT_FLOW_MOD, ofp.OFPT_BARRIER_REQUEST]


@pytest.mark.parametrize("with_cause", [True, False])
def test_a_bundle_that_fails_is_refused_with_its_cause(
    connection: FakeConnection, with_cause: bool
) -> None:
    session, changes = session_of(connection), rules(1)
    changing = runtime.spawn(session.change_at_once, (changes,))
    barrier = until_sent(connection, ofp.OFPT_BARRIER_REQUEST)
    (_, (_, added), (_, committed), _) = connection.sent()
    if with_cause:
        data = struct.pack("!BBHI", ofp.OFP_VERSION, ofp.OFPT_FLOW_MOD, 64, added) + bytes(56)
        session.refuse(refusal(data, 5, 1, added))
    data = struct.pack("!BBHI", ofp.OFP_VERSION, ofp.OFPT_EXPERIMENTER, 24, committed) + bytes(16)
    onf = struct.pack("!I", ofp.ONF_EXPERIMENTER_ID)
    session.refuse(refusal(data, ofp.OFPET_EXPERIMENTER, 2315, committed, onf))
    session.deliver(barrier_reply(barrier))
    ((change, reason),) = changing.wait()
    if with_cause:
        assert change == changes[0]
        assert "OFPFMFC_TABLE_FULL" in reason
    else:
        assert (change, reason) == (None, "error 2315 of experimenter 0x4f4e4600")


def test_a_silent_switch_is_given_up(connection: FakeConnection) -> None:
    session = session_of(connection)
    with pytest.raises(SwitchGoneError, match="no answer within"):
        session.barrier(timeout_s=0.01)
    assert not session.answers(0.01)


def test_the_end_of_the_connection_wakes_waiting_callers(connection: FakeConnection) -> None:
    session = session_of(connection)
    waiting = runtime.spawn(session.answers, 600)
    until_sent(connection, ofp.OFPT_BARRIER_REQUEST)
    session.end()
    assert waiting.wait() is False
    with pytest.raises(SwitchGoneError):
        session.barrier()


def test_nothing_can_be_sent_on_a_closed_connection(connection: FakeConnection) -> None:
    connection.open = False
    with pytest.raises(SwitchGoneError):
        session_of(connection).change(rules(1))


def reply_to(session: Session, connection: FakeConnection, number: int, *body: bytes) -> None:
    """Answer the multipart request with this number, from 0, once it has been sent."""
    while True:
        sent = [each for each in connection.messages() if each[1] == ofp.OFPT_MULTIPART_REQUEST]
        if len(sent) > number:
            kind, xid = (int.from_bytes(sent[number][a:b], "big") for a, b in ((8, 10), (4, 8)))
            assert session.deliver(multipart(kind, b"".join(body), xid=xid))
            return
        runtime.sleep(0)


def asked(connection: FakeConnection) -> list[tuple[int, int]]:
    """Return kind and cookie of each multipart request; 0 where it asks for no cookie."""
    requests = []
    for each in connection.messages():
        if each[1] == ofp.OFPT_MULTIPART_REQUEST:
            cookie = int.from_bytes(each[32:40], "big") if len(each) >= 48 else 0
            requests.append((int.from_bytes(each[8:10], "big"), cookie))
    return requests


def count(rules: int) -> bytes:
    return struct.pack("!QQI4x", 0, 0, rules)


def test_of_many_rules_only_ours_are_read(connection: FakeConnection) -> None:
    session = session_of(connection)
    reading = runtime.spawn(session.read)
    reply_to(session, connection, 0, count(24_003))
    reply_to(session, connection, 1, stats(0), stats(1))
    reply_to(session, connection, 2, stats(0))
    reply_to(session, connection, 3)
    contents = reading.wait()
    assert (len(contents.rules), contents.groups, contents.unread) == (3, [], 24_000)
    assert asked(connection) == [
        (ofp.OFPMP_AGGREGATE, 0),
        (ofp.OFPMP_FLOW, COOKIE),
        (ofp.OFPMP_FLOW, PROBE_COOKIE),
        (ofp.OFPMP_GROUP_DESC, 0),
    ]


def test_few_rules_of_others_beside_many_of_ours_are_read(connection: FakeConnection) -> None:
    session = session_of(connection)
    reading = runtime.spawn(session.read)
    reply_to(session, connection, 0, count(MAX_FOREIGN + 1))
    reply_to(session, connection, 1, *[stats(0)] * MAX_FOREIGN)
    reply_to(session, connection, 2)
    reply_to(session, connection, 3, *[stats(0)] * (MAX_FOREIGN + 1))
    reply_to(session, connection, 4)
    contents = reading.wait()
    assert (len(contents.rules), contents.unread) == (MAX_FOREIGN + 1, 0)


def test_a_switch_without_rules_is_asked_for_none(connection: FakeConnection) -> None:
    session = session_of(connection)
    reading = runtime.spawn(session.read)
    reply_to(session, connection, 0, count(0))
    reply_to(session, connection, 1)
    assert reading.wait() == SwitchContents([], [])
    assert [kind for kind, _ in asked(connection)] == [ofp.OFPMP_AGGREGATE, ofp.OFPMP_GROUP_DESC]
