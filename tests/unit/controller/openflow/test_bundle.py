"""Bundles of changes, and their replies."""

from __future__ import annotations

import struct

from ryu.ofproto.ofproto_common import ONF_EXPERIMENTER_ID as EXPERIMENTER
from ryu.ofproto.ofproto_v1_3 import ONF_ET_BUNDLE_ADD_MESSAGE as ADD
from ryu.ofproto.ofproto_v1_3 import ONF_ET_BUNDLE_CONTROL as CONTROL

from knotless.controller.openflow.guard import Guard, Limits
from knotless.controller.openflow.messages import bundle

BARRIER = struct.pack("!BBHI", 4, 20, 8, 7)


def split(data: bytes) -> list[bytes]:
    messages = []
    while data:
        (length,) = struct.unpack_from("!H", data, 2)
        messages.append(data[:length])
        data = data[length:]
    return messages


def test_a_bundle_is_opened_filled_and_committed() -> None:
    opened, added, committed = split(bundle(3, [BARRIER], (5, 9)))
    assert struct.unpack("!BBHIIIIHH", opened) == (4, 4, 24, 5, EXPERIMENTER, CONTROL, 3, 0, 3)
    assert struct.unpack("!BBHIIIIHH", committed) == (4, 4, 24, 9, EXPERIMENTER, CONTROL, 3, 4, 3)
    # What is added keeps its transaction, which the outer message must have as well.
    assert struct.unpack("!BBHIIIIHH", added[:24]) == (4, 4, 32, 7, EXPERIMENTER, ADD, 3, 0, 3)
    assert added[24:] == BARRIER


def test_the_guard_passes_replies_as_answers() -> None:
    guard = Guard(Limits(), 0.0)
    features = struct.pack("!BBHI", 4, 6, 32, 1) + bytes(24)
    guard.sent(struct.pack("!BBHI", 4, 5, 8, 1))
    assert guard.received(features, 0.0) == [features]
    guard.sent(bundle(1, [BARRIER], (5, 9)))
    for transaction, kind in ((5, 1), (9, 5)):
        body = (EXPERIMENTER, CONTROL, 1, kind, 3)
        reply = struct.pack("!BBHIIIIHH", 4, 4, 24, transaction, *body)
        assert guard.received(reply, 0.0) == [reply]
