"""Messages that the guard in front of Ryu's parsers passes, and those that it refuses."""

from __future__ import annotations

import os
import struct
from typing import Any

import pytest
from ryu.ofproto import ofproto_parser, ofproto_protocol

from knotless.controller.openflow.checks import check
from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.guard import Guard, Limits
from knotless.controller.openflow.replies import entries, read_rule
from tests.support.openflow_messages import (
    METADATA,
    NICIRA,
    VALID,
    apply,
    flow_entry,
    forged,
    message,
    multipart,
    output,
    oxm,
    set_field,
)

FORGED = int(os.environ.get("KNOTLESS_FORGED", "20000"))
ASKED = message(18, bytes(8))
DATAPATH = ofproto_protocol.ProtocolDesc(version=4)


def parsed(text: bytes) -> Any:
    """Return the message as Ryu parses it, or None if Ryu cannot parse it."""
    version, kind, length, xid = ofproto_parser.header(text)
    return ofproto_parser.msg(DATAPATH, version, kind, length, xid, bytearray(text))


def guard(**limits: float) -> Guard:
    return Guard(Limits(**limits), 0.0)  # type: ignore[arg-type] # sizes are whole numbers


def flow_list(actions: bytes) -> bytes:
    """Return a list of one rule that applies these actions."""
    return multipart(1, flow_entry(apply(actions)))


@pytest.mark.parametrize("name", VALID)
def test_what_switches_send_passes_and_ryu_reads_it(name: str) -> None:
    text = bytearray(VALID[name])
    check(text)
    assert parsed(bytes(text)) is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("04000010000000010001000000000000", "element of type 1 with length 0"),
        ("041300180000000700010000000000000000000000000000", "56 or more"),
        ("0416000800000001", "do not send to controllers"),
        ("0963000800000001", "version 9"),
        ("0313000800000001", "version 3"),
        ("0406000800000001", "with 8 bytes"),
        ("04130010000000070009000000000000", "nobody asked for"),
    ],
)
def test_harmful_messages_are_refused(text: str, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        check(bytearray.fromhex(text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (message(10, VALID["packet-in"][8:-4]), "without padding after its match"),
        (VALID["flow removed"] + bytes(8), "bytes after its match"),
        (flow_list(set_field(oxm(2, bytes(8), b"\1" * 8))), "set-field action with 24 bytes"),
        (flow_list(set_field(oxm(5, bytes(2))) + bytes(8)), "element of type 0 with length 0"),
        (flow_list(set_field(oxm(5, bytes(2)) + bytes(9))), "set-field action with 24 bytes"),
        (flow_list(struct.pack("!HH8x", 18, 12) * 2), "action of type 18 with 12 bytes"),
        (flow_list(struct.pack("!HH12x", 18, 16)), "action of type 18 with 16 bytes"),
        (flow_list(struct.pack("!HH4x", 99, 8)), "action of type 99 with 8 bytes"),
        (multipart(1, flow_entry(METADATA[:2] + b"\0\x10" + bytes(12))), "instruction of type 2"),
        (multipart(1, flow_entry(fields=oxm(5, bytes(3)))), "match field 5 with 3 bytes"),
        (multipart(1, flow_entry(fields=oxm(77, bytes(3)))), "match field 77 with 3 bytes"),
        (multipart(6, bytes(1) + b"\x30" + bytes(46)), "group counters with 48 bytes"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_elements_that_do_not_fit_are_refused(text: bytes, reason: str) -> None:
    text = text[:2] + len(text).to_bytes(2, "big") + text[4:]
    with pytest.raises(WireError, match=reason):
        check(bytearray(text))


def zeroed(kind: int, size: int) -> bytes:
    return multipart(kind, bytes(size))


@pytest.mark.parametrize("kind", [1, 6, 7])
def test_entries_of_length_zero_are_refused(kind: int) -> None:
    with pytest.raises(WireError, match="entry with length 0"):
        check(bytearray(zeroed(kind, 64)))


def test_actions_of_other_makers_stay_opaque() -> None:
    text = bytearray(multipart(1, flow_entry(apply(NICIRA, output(1)))))
    check(text)
    (entry,) = parsed(bytes(text)).body
    assert [type(action).__name__ for action in entry.instructions[0].actions] == [
        "OFPActionExperimenterUnknown",
        "OFPActionOutput",
    ]


def test_every_message_that_passes_can_be_parsed(caplog: pytest.LogCaptureFixture) -> None:
    passed = rules = 0
    for text in forged(seed=1, count=FORGED):
        changed = bytearray(text)
        try:
            check(changed)
        except WireError:
            continue
        passed += 1
        by_ryu = parsed(bytes(changed))
        assert by_ryu is not None, (changed.hex(), caplog.text)
        if changed[1] == 19 and changed[8:10] == b"\0\1":
            for entry, stats in zip(entries(bytes(changed)), by_ryu.body, strict=True):
                assert read_rule(entry).table == stats.table_id
                rules += 1
    assert passed > FORGED // 100
    assert rules > FORGED // 1000


def test_messages_pass_whole_however_they_arrive() -> None:
    stream = b"".join(VALID[name] for name in ("hello", "features reply", "echo request"))
    for size in (1, 3, 7, len(stream)):
        new = guard()
        new.sent(message(5))
        parts = [stream[begin : begin + size] for begin in range(0, len(stream), size)]
        passed = [message for part in parts for message in new.received(part, 0.0)]
        assert passed == [VALID[name] for name in ("hello", "features reply", "echo request")]


def test_a_length_below_the_header_ends_the_connection() -> None:
    with pytest.raises(WireError, match="length 7"):
        guard().received(struct.pack("!BBHI", 4, 2, 7, 1), 0.0)


def test_replies_need_a_request_and_end() -> None:
    new = guard(reply_bytes=200)
    with pytest.raises(WireError, match="nobody asked for"):
        new.received(multipart(13, b""), 0.0)
    new = guard(reply_bytes=200)
    new.sent(ASKED)
    part = multipart(4, bytes(112), more=True)
    assert new.received(part, 0.0) == [part]
    with pytest.raises(WireError, match="more than 200 bytes"):
        new.received(part, 0.0)
    new = guard()
    new.sent(ASKED[:5])
    new.sent(ASKED[5:])
    assert new.received(multipart(13, b""), 0.0)
    with pytest.raises(WireError, match="nobody asked for"):
        new.received(multipart(13, b""), 0.0)


def test_answers_need_something_to_answer() -> None:
    new = guard()
    new.sent(message(20))
    assert new.received(VALID["barrier reply"], 0.0)
    with pytest.raises(WireError, match="more answers"):
        new.received(VALID["barrier reply"], 0.0)


def test_what_comes_too_fast_is_dropped_or_ends_the_connection() -> None:
    new = guard(unasked_per_s=10, unasked_burst=5)
    packet = VALID["packet-in"]
    assert new.received(packet * 8, 0.0) == [packet] * 5
    assert new.dropped == 3
    assert new.received(packet * 8, 0.2) == [packet] * 2
    # Packets do not use up the limit of other messages.
    status = VALID["port status"]
    assert new.received(status * 5, 0.2) == [status] * 5
    with pytest.raises(WireError, match="type 12 above the allowed rate"):
        new.received(status, 0.2)


def test_a_switch_that_says_nothing_is_closed() -> None:
    new = guard(handshake_s=10)
    new.check_handshake(9.0)
    with pytest.raises(WireError, match="no features reply within 10 s"):
        new.check_handshake(10.1)
    new = guard(handshake_s=10)
    new.sent(message(5))
    new.received(VALID["features reply"], 1.0)
    new.check_handshake(100.0)


def test_reports_of_removed_rules_are_dropped_above_their_rate() -> None:
    """Whoever deletes thousands of rules that ask for it must not take a switch down."""
    new = guard(unasked_per_s=10, unasked_burst=5)
    removed = VALID["flow removed"]
    assert new.received(removed * 5000, 0.0) == [removed] * 5
    assert new.dropped == 4995
    assert new.received(removed, 1.0) == [removed]
