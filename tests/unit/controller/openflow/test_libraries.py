"""Our messages are those of two other implementations of OpenFlow 1.3."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from c65of.ofproto import parser as c65of_parser
from c65of.ofproto.base import msg as c65of_message
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_parser, ofproto_protocol
from ryu.ofproto import ofproto_v1_3_parser as ryu_parser

from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow import messages, records, replies
from knotless.controller.openflow.checks import check
from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.messages import Request
from knotless.controller.openflow.records import BODY, ENTRIES, Layout
from tests.support.openflow_messages import VALID, forged, message, multipart

DATAPATH = ofproto_protocol.ProtocolDesc(version=ofp.OFP_VERSION)
FORGED = 3000


def read_by_ryu(text: bytes) -> Any:
    return ofproto_parser.msg(DATAPATH, *ofproto_parser.header(text), bytearray(text))


def read_by_c65of(text: bytes) -> Any:
    return c65of_message(DATAPATH, *struct.unpack_from("!BBHI", text), text)


READERS = pytest.mark.parametrize("read", [read_by_ryu, read_by_c65of])
PARSERS = pytest.mark.parametrize("parser", [ryu_parser, c65of_parser])

# --- messages of switches ------------------------------------------------------------------------


def same(record: Any, read: Any, *hidden: str) -> None:
    """Compare each field that a library does not hide."""
    for name, value in record._asdict().items():
        other = getattr(read, name, value if name in hidden else None)
        if name == "hw_addr" and isinstance(other, str):
            other = bytes.fromhex(other.replace(":", ""))
        assert (value.rstrip(b"\0") if name == "name" else value) == other, name


def assert_read_alike(text: bytes, read: Any) -> bool:
    """Compare what we read of a message with what a library does; False: we read nothing of it."""
    header = records.HEADER.read(text)
    assert (header.version, header.type) == (read.version, read.msg_type)
    assert (header.length, header.xid) == (read.msg_len, read.xid)
    fixed: dict[int, Layout[Any]] = {
        ofp.OFPT_PACKET_IN: records.PACKET_IN,
        ofp.OFPT_FLOW_REMOVED: records.FLOW_REMOVED,
        ofp.OFPT_ROLE_REPLY: records.ROLE_REPLY,
    }
    match header.type:
        case ofp.OFPT_HELLO if header.version == ofp.OFP_VERSION:
            versions = [v for element in read.elements for v in element.versions]
            if len(read.elements) == 1:
                assert replies.offers(text, 4) is (4 in versions)
        case ofp.OFPT_ERROR:
            refusal = replies.read_refusal(text)
            assert refusal.kind == read.type
            assert refusal.code == (read.exp_type if read.type == 0xFFFF else read.code)
            if len(read.data) >= BODY:
                assert (refusal.request, refusal.xid) == (
                    read.data[1],
                    int.from_bytes(read.data[4:8], "big"),
                )
        case ofp.OFPT_FEATURES_REPLY:
            same(records.SWITCH_FEATURES.read(text, BODY), read, "reserved")
        case ofp.OFPT_PORT_STATUS:
            reason, port = replies.read_port_status(text)
            assert reason == read.reason
            same(port, read.desc)
        case ofp.OFPT_MULTIPART_REPLY:
            return assert_entries_read_alike(text, read)
        case kind if kind in fixed:
            same(fixed[kind].read(text, BODY), read)
        case _:
            return False
    return True


def assert_entries_read_alike(text: bytes, read: Any) -> bool:
    kind, flags = records.MULTIPART_REPLY.read(text, BODY)
    assert (kind, flags) == (read.type, read.flags)
    ours: Iterator[Any]
    match kind:
        case ofp.OFPMP_FLOW:
            ours = map(records.FLOW_STATS.read, replies.entries(text))
        case ofp.OFPMP_GROUP_DESC:
            # Libraries keep no length of a group.
            entries = map(records.GROUP_DESC.read, replies.entries(text))
            for entry, stats in zip(entries, read.body, strict=True):
                assert (entry.type, entry.group_id) == (stats.type, stats.group_id)
            return True
        case ofp.OFPMP_PORT_STATS:
            ours = replies.port_stats(text)
        case ofp.OFPMP_PORT_DESC:
            ours = replies.port_descriptions(text)
        case ofp.OFPMP_AGGREGATE:
            ours = iter([records.AGGREGATE_STATS.read(text, ENTRIES)])
        case _:
            return False
    body = read.body if isinstance(read.body, list) else [read.body]
    for record, stats in zip(ours, body, strict=True):
        same(record, stats)
    return True


@READERS
@pytest.mark.parametrize("name", VALID)
def test_messages_of_switches_are_read_alike(name: str, read: Callable[[bytes], Any]) -> None:
    unread = {"echo request", "echo reply", "experimenter", "get-config reply", "barrier reply"}
    unread |= {"description", "group counters"}
    text = bytearray(VALID[name])
    check(text)
    assert assert_read_alike(bytes(text), read(bytes(text))) is (name not in unread)


@READERS
def test_forged_messages_that_pass_are_read_alike(read: Callable[[bytes], Any]) -> None:
    compared = 0
    for text in forged(seed=3, count=FORGED):
        changed = bytearray(text)
        try:
            check(changed)
        except WireError:
            continue
        compared += assert_read_alike(bytes(changed), read(bytes(changed)))
    assert compared > FORGED // 100


COUNTERS = st.lists(st.integers(0, 0xFFFFFFFF), min_size=15, max_size=15)


@READERS
@given(st.lists(COUNTERS, max_size=5), st.booleans(), st.integers(0, 0xFFFFFFFF))
def test_any_counters_are_read_alike(
    read: Callable[[bytes], Any], rows: list[list[int]], more: bool, xid: int
) -> None:
    body = b"".join(struct.pack("!I4x12Q2I", *row) for row in rows)
    text = multipart(ofp.OFPMP_PORT_STATS, body, more=more, xid=xid)
    assert assert_read_alike(text, read(text))
    assert replies.has_more(text) is more


# --- messages to switches ------------------------------------------------------------------------


def written(parser: ModuleType, name: str, *args: object, **fields: object) -> bytes:
    made = getattr(parser, name)(DATAPATH, *args, **fields)
    made.set_xid(7)
    made.serialize()
    return bytes(made.buf)


@PARSERS
def test_requests_are_written_alike(parser: ModuleType) -> None:
    every = (ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY)
    match = parser.OFPMatch()
    requests: dict[Request, bytes] = {
        messages.FEATURES_REQUEST: written(parser, "OFPFeaturesRequest"),
        messages.BARRIER_REQUEST: written(parser, "OFPBarrierRequest"),
        messages.ECHO_REQUEST: written(parser, "OFPEchoRequest", b""),
        messages.PORT_DESC_REQUEST: written(parser, "OFPPortDescStatsRequest", 0),
        messages.GROUP_DESC_REQUEST: written(parser, "OFPGroupDescStatsRequest", 0),
        messages.PORT_STATS_REQUEST: written(parser, "OFPPortStatsRequest", 0, ofp.OFPP_ANY),
        messages.flow_request(ofp.OFPMP_AGGREGATE): written(
            parser, "OFPAggregateStatsRequest", 0, *every, 0, 0, match
        ),
        messages.flow_request(ofp.OFPMP_FLOW, 0x6B6E): written(
            parser, "OFPFlowStatsRequest", 0, *every, 0x6B6E, 0xFFFFFFFFFFFFFFFF, match
        ),
        messages.incompatible("no"): written(parser, "OFPErrorMsg", type_=0, code=0, data=b"no"),
    }
    for request, bytes_of_library in requests.items():
        assert request.encode(7) == bytes_of_library


@PARSERS
@given(role=st.integers(0, 3), generation=st.integers(0, 0xFFFFFFFFFFFFFFFF))
def test_any_role_request_is_written_alike(parser: ModuleType, role: int, generation: int) -> None:
    ours = messages.role_request(role, generation).encode(7)
    assert ours == written(parser, "OFPRoleRequest", role, generation)


@READERS
def test_our_hello_offers_one_version(read: Callable[[bytes], Any]) -> None:
    (element,) = read(messages.HELLO.encode(7)).elements
    assert element.versions == [ofp.OFP_VERSION]


def test_an_answer_has_the_type_and_the_kind_of_its_request() -> None:
    asked = messages.flow_request(ofp.OFPMP_FLOW)
    assert asked.is_answered_by(multipart(ofp.OFPMP_FLOW, b""))
    assert not asked.is_answered_by(multipart(ofp.OFPMP_GROUP_DESC, b""))
    assert not asked.is_answered_by(message(ofp.OFPT_BARRIER_REPLY))
    assert messages.BARRIER_REQUEST.is_answered_by(message(ofp.OFPT_BARRIER_REPLY))
