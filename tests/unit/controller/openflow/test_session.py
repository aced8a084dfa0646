"""The messages of a session with a switch, which the test simulates."""

from __future__ import annotations

import itertools
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from ryu.ofproto import ofproto_parser
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser
from ryu.ofproto.ofproto_common import ONF_EXPERIMENTER_ID
from ryu.ofproto.ofproto_protocol import ProtocolDesc

from knotless.controller import runtime
from knotless.controller.openflow.messages import FlowEntry
from knotless.controller.openflow.session import (
    MAX_FOREIGN,
    Session,
    SwitchContents,
    SwitchGoneError,
)
from knotless.controller.reconcile import PROBE_COOKIE, RuleChange
from knotless.forwarding.openflow.rules import COOKIE, Field, Output, Rule


class FakeDatapath(ProtocolDesc):  # type: ignore[misc]  # Ryu is not typed
    """The part of Ryu's datapath that a session uses; keeps all messages sent."""

    def __init__(self) -> None:
        super().__init__(version=ofp.OFP_VERSION)
        self.id = 1
        self.writes: list[bytes] = []
        self.open = True
        self._ids = itertools.count(100)

    def set_xid(self, message: Any) -> int:
        message.set_xid(next(self._ids))
        xid: int = message.xid
        return xid

    def send_msg(self, message: Any) -> bool:
        message.serialize()
        return self.send(bytes(message.buf))

    def send(self, data: bytes) -> bool:
        self.writes.append(data)
        return self.open

    def sent(self) -> list[tuple[int, int]]:
        """(message type, xid) of everything sent, in order."""
        stream = b"".join(self.writes)
        requests = []
        while stream:
            _, kind, length, xid = ofproto_parser.header(stream)
            requests.append((kind, xid))
            stream = stream[length:]
        return requests


@pytest.fixture
def datapath() -> FakeDatapath:
    return FakeDatapath()


def rules(count: int) -> tuple[RuleChange, ...]:
    return tuple(
        RuleChange("add", Rule(1, 10, (Field("eth_dst", i),), (Output(1),), cookie=COOKIE))
        for i in range(count)
    )


def until_sent(datapath: FakeDatapath, kind: int) -> int:
    """Yield to other greenlets until a message of ``kind`` has been sent; return its xid."""
    while True:
        for sent, xid in datapath.sent():
            if sent == kind:
                return xid
        runtime.sleep(0)


def stats(number: int) -> FlowEntry:
    """Return an entry of this table that matches everything and does nothing."""
    match = struct.pack("!HH4x", ofp.OFPMT_OXM, 4)
    head = (48 + len(match), number, 0, 0, 1, 0, 0, 0, COOKIE, 0, 0)
    return FlowEntry(struct.pack(ofp.OFP_FLOW_STATS_0_PACK_STR, *head) + match)


def test_the_parts_of_a_long_answer_are_put_together(datapath: FakeDatapath) -> None:
    session = Session(datapath)
    asking = runtime.spawn(session.rules)
    xid = until_sent(datapath, ofp.OFPT_MULTIPART_REQUEST)
    more = ofp.OFPMPF_REPLY_MORE
    session.deliver(SimpleNamespace(xid=xid, flags=more, body=[stats(0), stats(1)]))
    session.deliver(SimpleNamespace(xid=xid + 1, flags=0, body=[stats(9)]))  # somebody else's
    session.deliver(SimpleNamespace(xid=xid, flags=0, body=[stats(2)]))
    assert [rule.table for rule in asking.wait()] == [0, 1, 2]


def test_many_changes_go_in_few_writes_and_end_with_a_barrier(datapath: FakeDatapath) -> None:
    session = Session(datapath)
    changing = runtime.spawn(session.change, rules(2000))
    session.deliver(SimpleNamespace(xid=until_sent(datapath, ofp.OFPT_BARRIER_REQUEST)))
    assert changing.wait() == []
    kinds = [kind for kind, _ in datapath.sent()]
    assert kinds == [ofp.OFPT_FLOW_MOD] * 2000 + [ofp.OFPT_BARRIER_REQUEST]
    assert len(datapath.writes) < 10


def test_a_refusal_names_the_change_that_was_refused(datapath: FakeDatapath) -> None:
    session = Session(datapath)
    changes = rules(3)
    changing = runtime.spawn(session.change, changes)
    barrier = until_sent(datapath, ofp.OFPT_BARRIER_REQUEST)
    xid = datapath.sent()[1][1]
    failed = parser.OFPBarrierRequest(datapath)
    failed.set_xid(xid)
    failed.serialize()
    session.refuse(
        SimpleNamespace(
            xid=xid,
            data=bytes(failed.buf),
            type=ofp.OFPET_FLOW_MOD_FAILED,
            code=ofp.OFPFMFC_TABLE_FULL,
        )
    )
    session.deliver(SimpleNamespace(xid=barrier))
    ((change, reason),) = changing.wait()
    assert change == changes[1]
    assert "OFPFMFC_TABLE_FULL" in reason


def test_steps_go_in_one_bundle(datapath: FakeDatapath) -> None:
    session = Session(datapath)
    changing = runtime.spawn(session.change_at_once, (rules(2), rules(1)))
    session.deliver(SimpleNamespace(xid=until_sent(datapath, ofp.OFPT_BARRIER_REQUEST)))
    assert changing.wait() == []
    kinds = [kind for kind, _ in datapath.sent()]
    assert kinds == [ofp.OFPT_EXPERIMENTER] * 5 + [ofp.OFPT_BARRIER_REQUEST]


@pytest.mark.parametrize(
    "code", [ofp.OFPBRC_BAD_TYPE, ofp.OFPBRC_BAD_EXPERIMENTER, ofp.OFPBRC_BAD_EXP_TYPE]
)
def test_a_switch_without_bundles_gets_one_step_after_the_other(
    datapath: FakeDatapath, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session(datapath)
    changing = runtime.spawn(session.change_at_once, (rules(2), rules(1)))
    bundle = until_sent(datapath, ofp.OFPT_BARRIER_REQUEST)
    for kind, xid in datapath.sent():
        if kind == ofp.OFPT_EXPERIMENTER:
            refused = struct.pack("!BBHI", ofp.OFP_VERSION, kind, 24, xid) + bytes(16)
            error = {"data": refused, "type": ofp.OFPET_BAD_REQUEST, "code": code}
            session.refuse(SimpleNamespace(xid=xid, **error))
    datapath.writes.clear()
    session.deliver(SimpleNamespace(xid=bundle))
    for count in (2, 1):
        barrier = until_sent(datapath, ofp.OFPT_BARRIER_REQUEST)
        kinds = [kind for kind, _ in datapath.sent()]
        assert kinds == [ofp.OFPT_FLOW_MOD] * count + [ofp.OFPT_BARRIER_REQUEST]
        datapath.writes.clear()
        session.deliver(SimpleNamespace(xid=barrier))
    assert changing.wait() == []
    assert "takes no bundles" in caplog.text
    changing = runtime.spawn(session.change_at_once, (rules(1),))
    session.deliver(SimpleNamespace(xid=until_sent(datapath, ofp.OFPT_BARRIER_REQUEST)))
    assert changing.wait() == []
    assert [kind for kind, _ in datapath.sent()] == [ofp.OFPT_FLOW_MOD, ofp.OFPT_BARRIER_REQUEST]


def error_of(data: bytes, kind: int, code: int, xid: int, more: bytes = b"") -> Any:
    """Return an error message about a request, as Ryu reads it."""
    body = struct.pack("!HH", kind, code) + more + data
    text = struct.pack("!BBHI", ofp.OFP_VERSION, ofp.OFPT_ERROR, 8 + len(body), xid) + body
    return ofproto_parser.msg(FakeDatapath(), ofp.OFP_VERSION, ofp.OFPT_ERROR, len(text), xid, text)


@pytest.mark.parametrize("with_cause", [True, False])
def test_a_bundle_that_fails_is_refused_with_its_cause(
    datapath: FakeDatapath, with_cause: bool
) -> None:
    session, changes = Session(datapath), rules(1)
    changing = runtime.spawn(session.change_at_once, (changes,))
    barrier = until_sent(datapath, ofp.OFPT_BARRIER_REQUEST)
    (_, (_, added), (_, committed), _) = datapath.sent()
    if with_cause:
        data = struct.pack("!BBHI", ofp.OFP_VERSION, ofp.OFPT_FLOW_MOD, 64, added) + bytes(56)
        kind, code = ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL
        session.refuse(error_of(data, kind, code, added))
    data = struct.pack("!BBHI", ofp.OFP_VERSION, ofp.OFPT_EXPERIMENTER, 24, committed) + bytes(16)
    onf = struct.pack("!I", ONF_EXPERIMENTER_ID)
    session.refuse(error_of(data, ofp.OFPET_EXPERIMENTER, 2315, committed, onf))
    session.deliver(SimpleNamespace(xid=barrier))
    ((change, reason),) = changing.wait()
    if with_cause:
        assert change == changes[0]
        assert "OFPFMFC_TABLE_FULL" in reason
    else:
        assert (change, reason) == (None, "error 2315 of experimenter 0x4f4e4600")


def test_a_silent_switch_is_given_up(datapath: FakeDatapath) -> None:
    session = Session(datapath)
    with pytest.raises(SwitchGoneError, match="no answer within"):
        session.barrier(timeout_s=0.01)
    assert not session.answers(0.01)


def test_the_end_of_the_connection_wakes_waiting_callers(datapath: FakeDatapath) -> None:
    session = Session(datapath)
    waiting = runtime.spawn(session.answers, 600)
    until_sent(datapath, ofp.OFPT_BARRIER_REQUEST)
    session.end()
    assert waiting.wait() is False
    with pytest.raises(SwitchGoneError):
        session.barrier()


def test_nothing_can_be_sent_on_a_closed_connection(datapath: FakeDatapath) -> None:
    datapath.open = False
    with pytest.raises(SwitchGoneError):
        Session(datapath).change(rules(1))


def reply_to(session: Session, datapath: FakeDatapath, number: int, body: Any) -> None:
    """Answer the multipart request with this number, from 0, once it has been sent."""
    while True:
        sent = [xid for kind, xid in datapath.sent() if kind == ofp.OFPT_MULTIPART_REQUEST]
        if len(sent) > number:
            session.deliver(SimpleNamespace(xid=sent[number], flags=0, body=body))
            return
        runtime.sleep(0)


def asked(datapath: FakeDatapath) -> list[tuple[int, int]]:
    """Return kind and cookie of each multipart request; 0 where it asks for no cookie."""
    stream, requests = b"".join(datapath.writes), []
    while stream:
        _, kind, length, _ = ofproto_parser.header(stream)
        if kind == ofp.OFPT_MULTIPART_REQUEST:
            part = int.from_bytes(stream[8:10], "big")
            requests.append((part, int.from_bytes(stream[32:40], "big") if length >= 48 else 0))
        stream = stream[length:]
    return requests


def count(rules: int) -> SimpleNamespace:
    return SimpleNamespace(flow_count=rules)


def test_of_many_rules_only_ours_are_read(datapath: FakeDatapath) -> None:
    session = Session(datapath)
    reading = runtime.spawn(session.read)
    reply_to(session, datapath, 0, count(24_003))
    reply_to(session, datapath, 1, [stats(0), stats(1)])
    reply_to(session, datapath, 2, [stats(0)])
    reply_to(session, datapath, 3, [])
    contents = reading.wait()
    assert (len(contents.rules), contents.groups, contents.unread) == (3, [], 24_000)
    assert asked(datapath) == [
        (ofp.OFPMP_AGGREGATE, 0),
        (ofp.OFPMP_FLOW, COOKIE),
        (ofp.OFPMP_FLOW, PROBE_COOKIE),
        (ofp.OFPMP_GROUP_DESC, 0),
    ]


def test_few_rules_of_others_beside_many_of_ours_are_read(datapath: FakeDatapath) -> None:
    session = Session(datapath)
    reading = runtime.spawn(session.read)
    reply_to(session, datapath, 0, count(MAX_FOREIGN + 1))
    reply_to(session, datapath, 1, [stats(0)] * MAX_FOREIGN)
    reply_to(session, datapath, 2, [])
    reply_to(session, datapath, 3, [stats(0)] * (MAX_FOREIGN + 1))
    reply_to(session, datapath, 4, [])
    contents = reading.wait()
    assert (len(contents.rules), contents.unread) == (MAX_FOREIGN + 1, 0)


def test_a_switch_without_rules_is_asked_for_none(datapath: FakeDatapath) -> None:
    session = Session(datapath)
    reading = runtime.spawn(session.read)
    reply_to(session, datapath, 0, count(0))
    reply_to(session, datapath, 1, [])
    assert reading.wait() == SwitchContents([], [])
    assert [kind for kind, _ in asked(datapath)] == [ofp.OFPMP_AGGREGATE, ofp.OFPMP_GROUP_DESC]
