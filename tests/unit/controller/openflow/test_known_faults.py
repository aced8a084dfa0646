"""Public issues of Ryu's parsers, each as a message that the guard refuses.

The numbers are those of the issues of faucetsdn/ryu; the messages are made here. Ryu is unmodified,
so each test also shows that its parser does not come to an end.
"""

from __future__ import annotations

import gc
import re
import struct
import sys
from collections.abc import Callable
from typing import Any

import pytest
from ryu.ofproto import ofproto_parser, ofproto_protocol

from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.guard import Guard, Limits
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import make_plan
from knotless.topologies import load
from tests.support import REPOSITORY
from tests.support.openflow_messages import VALID, apply, flow_entry, match, message, multipart, oxm

DATAPATH = ofproto_protocol.ProtocolDesc(version=4)
MOST_CALLS = 4000
"""Far more than Ryu needs for any message of these tests."""
SET_FIELD_0 = struct.pack("!HH", 25, 0) + oxm(6, b"\x10\x01") + bytes(6)
"""A set-field action with length 0. Of others Ryu ignores the length."""
FLOW_MOD = struct.pack("!QQBBHHHIIIH2x", 0, 0, 0, 0, 0, 0, 0, 0xFFFFFFFF, 0, 0, 0) + match()
BUCKET = struct.pack("!HII4x", 0, 0xFFFFFFFF, 0xFFFFFFFF)
MESSAGES: dict[str, bytes] = {
    "188: instruction of a flow-mod": message(14, FLOW_MOD + struct.pack("!HH4x", 4, 0)),
    "189: action of an instruction": message(
        14, FLOW_MOD + struct.pack("!HH4x", 4, 24) + SET_FIELD_0
    ),
    "190: property of a queue": message(
        23, struct.pack("!I4x", 1) + struct.pack("!IIH6x", 1, 1, 32) + struct.pack("!HH12x", 1, 0)
    ),
    "191: entry of a multipart reply": multipart(1, bytes(56)),
    "192: instruction of a rule": multipart(1, flow_entry(struct.pack("!HH4x", 4, 0))),
    "192: action of a rule": multipart(1, flow_entry(apply(SET_FIELD_0))),
    "193: bucket of a group": multipart(
        7, struct.pack("!HBxI", 24, 0, 1) + struct.pack("!H", 0) + BUCKET
    ),
    "194: action of a bucket": multipart(
        7, struct.pack("!HBxI", 40, 0, 1) + struct.pack("!H", 32) + BUCKET + SET_FIELD_0
    ),
    "195: element of a hello": message(0, struct.pack("!HHI", 1, 0, 16)),
    "196: property of a table": multipart(12, struct.pack("!HB5x32sQQII", 72, 0, b"", 0, 0, 0, 0)
                                          + struct.pack("!HH4x", 0, 0)),
}  # fmt: skip


class EndlessError(Exception):
    """A parser that makes more calls than any message needs."""


def bounded(function: Callable[[], Any]) -> Any:
    """Return what a function returns; raises EndlessError instead of waiting for ever.

    Ryu catches whatever its parsers raise: so that is raised again. Meanwhile no garbage is
    collected: Hypothesis has each collection call it, and what is raised in there is lost, so that
    an endless parser would go on, unbounded, until memory is full.
    """
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")
        if calls > MOST_CALLS:
            sys.setprofile(None)
            raise EndlessError

    former = sys.getprofile()
    gc.disable()
    sys.setprofile(count)
    try:
        result = function()
    finally:
        sys.setprofile(former)
        gc.enable()
    if calls > MOST_CALLS:
        raise EndlessError
    return result


def parse(text: bytes) -> Any:
    """Have Ryu parse a message, to its end."""
    version, kind, length, xid = ofproto_parser.header(text)
    return ofproto_parser.msg(DATAPATH, version, kind, length, xid, bytearray(text))


def guarded(text: bytes) -> bytes:
    """Return what a guard passes of a message that was asked for."""
    guard = Guard(Limits(), 0.0)
    guard.sent(message(18, bytes(8)) + message(5))
    return b"".join(guard.received(text, 0.0))


@pytest.mark.parametrize("fault", MESSAGES)
def test_ryu_does_not_end_and_the_guard_refuses(fault: str) -> None:
    text = MESSAGES[fault]
    with pytest.raises(WireError, match=r"\A[^\n]+\Z"):
        guarded(text)
    with pytest.raises(EndlessError):
        bounded(lambda: parse(text))


@pytest.mark.parametrize("name", VALID)
def test_no_length_in_any_message_has_ryu_loop(name: str) -> None:
    """Each two bytes of each message that switches send, as each small number and the largest."""
    passed = 0
    for offset in range(8, len(VALID[name]) - 1):
        for value in (*range(9), 0x7FFF, 0xFFFF):
            text = bytearray(VALID[name])
            text[offset : offset + 2] = value.to_bytes(2, "big")
            try:
                through = guarded(bytes(text))
            except WireError:
                continue
            passed += 1
            if through:
                bounded(lambda through=through: parse(through))  # type: ignore[misc]
    assert passed or len(VALID[name]) == 8


@pytest.mark.parametrize("spec", ["torus,4,4,hosts=2", "fattree3,4", "clos,3,hosts=2", "mesh,3,3"])
@pytest.mark.parametrize("protection", ["none", "fast-failover"])
@pytest.mark.parametrize(
    ("source_check", "more"), [("mac", set()), ("ip", {"arp_sha", "arp_spa", "ipv4_src"})]
)
def test_rules_match_and_change_nothing_beyond_the_vlan_tag(
    spec: str, protection: str, source_check: str, more: set[str]
) -> None:
    """What advisories of Open vSwitch need: IP, ICMPv6, MPLS, tunnels, connection tracking.

    Sources that are checked are the exception.
    """
    groups = {1: ["h1", "h2"]}
    options = {"protection": protection, "source_check": source_check, "multicast": groups}
    plan = make_plan(load(spec), "updown", **options)
    matched, actions = set(), set()
    for held in compile_rules(plan).values():
        lists = [rule.actions for rule in held.rules]
        for group in held.groups:
            lists += [
                bucket if isinstance(bucket, tuple) else bucket.actions for bucket in group.buckets
            ]
        matched |= {field.name for rule in held.rules for field in rule.match}
        actions |= {type(action).__name__ for each in lists for action in each}
    assert matched <= more | {
        "in_port",
        "eth_src",
        "eth_dst",
        "eth_type",
        "vlan_vid",
        "vlan_pcp",
        "metadata",
    }
    assert more <= matched
    assert actions <= {"Output", "PushVlan", "PopVlan", "SetField", "ToGroup"}


def test_nothing_asks_open_vswitch_for_lldp_tunnels_or_offload() -> None:
    for path in (REPOSITORY / "knotless").rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"lldp:enable|hw-offload|type=(geneve|vxlan|gre)", text), path
