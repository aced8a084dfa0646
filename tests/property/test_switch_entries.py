"""Reports of switches on their rules and groups are read as Ryu's parser reads them."""

from __future__ import annotations

import struct
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp

from knotless.controller.openflow.checks import check
from knotless.controller.openflow.elements import FIELDS, WireError
from knotless.controller.openflow.messages import encode
from knotless.controller.openflow.replies import entries, packet_count, read_group, read_rule
from knotless.controller.probes.frames import held_probe_rules, probe_rule_changes
from knotless.controller.reconcile import PROBE_COOKIE, RuleChange, reconcile
from knotless.forwarding.openflow.rules import COOKIE, SwitchRules
from tests.support.openflow_messages import (
    GOTO_2,
    NICIRA,
    forged,
    match,
    multipart,
    output,
    oxm,
    set_field,
)
from tests.support.ryu_messages import group_read_by_ryu, rule_read_by_ryu

FORGED = 20_000


def assert_read_as_by_ryu(message: bytes) -> int:
    """Read a checked list of rules or groups; return how many there are."""
    count = 0
    if message[1] != ofp.OFPT_MULTIPART_REPLY:
        return count
    kind = int.from_bytes(message[8:10], "big")
    for entry in entries(message) if kind in (ofp.OFPMP_FLOW, ofp.OFPMP_GROUP_DESC) else ():
        count += 1
        if kind == ofp.OFPMP_GROUP_DESC:
            assert read_group(entry) == group_read_by_ryu(entry)
        else:
            assert read_rule(entry) == rule_read_by_ryu(entry)
            assert packet_count(entry) == struct.unpack_from("!Q", entry, 32)[0]
    return count


def test_forged_entries_that_pass_are_read_as_by_ryu() -> None:
    count = 0
    for text in forged(seed=2, count=FORGED):
        message = bytearray(text)
        try:
            check(message)
        except WireError:
            continue
        count += assert_read_as_by_ryu(bytes(message))
    assert count > FORGED // 500


@st.composite
def values(draw: st.DrawFn, size: int) -> bytes:
    """Draw bytes of which often all or no bits are set."""
    ends = st.sampled_from([bytes(size), b"\xff" * size])
    return draw(ends | st.binary(min_size=size, max_size=size))


@st.composite
def basic_fields(draw: st.DrawFn, masks: st.SearchStrategy[bool]) -> bytes:
    """Draw a field of OpenFlow's own class."""
    kind = draw(st.sampled_from(list(FIELDS.values())))
    mask = draw(values(kind.size)) if draw(masks) else b""
    return oxm(kind.number, draw(values(kind.size)), mask)


@st.composite
def other_fields(draw: st.DrawFn, masks: st.SearchStrategy[bool]) -> bytes:
    """Draw a field of another class, those of experimenters and of Open vSwitch included."""
    oxm_class = draw(st.sampled_from([0, 1, 0x8001, 0xFFFE, 0xFFFF]))
    content = draw(st.binary(min_size=4, max_size=12).filter(lambda data: len(data) % 2 == 0))
    number = draw(st.integers(0, 127)) << 1 | draw(masks)
    return struct.pack("!HBB", oxm_class, number, len(content)) + content


def short(kind: int, content: bytes) -> bytes:
    """Return an action with this content."""
    return struct.pack("!HH", kind, 4 + len(content)) + content


SMALL_ACTIONS = [
    *(
        ofp.OFPAT_COPY_TTL_OUT,
        ofp.OFPAT_COPY_TTL_IN,
        ofp.OFPAT_SET_MPLS_TTL,
        ofp.OFPAT_DEC_MPLS_TTL,
    ),
    *(ofp.OFPAT_PUSH_VLAN, ofp.OFPAT_POP_VLAN, ofp.OFPAT_PUSH_MPLS, ofp.OFPAT_POP_MPLS),
    *(ofp.OFPAT_SET_QUEUE, ofp.OFPAT_GROUP, ofp.OFPAT_SET_NW_TTL, ofp.OFPAT_DEC_NW_TTL),
    *(ofp.OFPAT_PUSH_PBB, ofp.OFPAT_POP_PBB),
]
FIELD = basic_fields(st.booleans()) | other_fields(st.booleans())
UNMASKED = basic_fields(st.just(False)) | other_fields(st.just(False))
ACTIONS = st.one_of(
    st.integers(0, 0xFFFFFFFF).map(output),
    UNMASKED.map(set_field),
    st.sampled_from([b"\x81\0\0\0", b"\x88\xa8\0\0"]).map(
        lambda content: short(ofp.OFPAT_PUSH_VLAN, content)
    ),
    st.just(NICIRA),
    st.builds(short, st.sampled_from(SMALL_ACTIONS), st.binary(min_size=4, max_size=4)),
)


def listed(kind: int, actions: list[bytes]) -> bytes:
    inside = b"".join(actions)
    return struct.pack("!HH4x", kind, 8 + len(inside)) + inside


INSTRUCTIONS = st.one_of(
    st.builds(
        listed,
        st.sampled_from(
            [ofp.OFPIT_APPLY_ACTIONS] * 3 + [ofp.OFPIT_WRITE_ACTIONS, ofp.OFPIT_CLEAR_ACTIONS]
        ),
        st.lists(ACTIONS, max_size=4),
    ),
    st.just(GOTO_2),
    st.builds(
        lambda value, mask: struct.pack("!HH4x", ofp.OFPIT_WRITE_METADATA, 24) + value + mask,
        values(8),
        values(8),
    ),
    st.just(struct.pack("!HHI", ofp.OFPIT_METER, 8, 1)),
)


@st.composite
def rules(draw: st.DrawFn) -> bytes:
    """Draw an entry of a list of rules, often without time-outs and flags."""
    rest = match(*draw(st.lists(FIELD, max_size=5)))
    rest += b"".join(draw(st.lists(INSTRUCTIONS, max_size=3)))
    times_and_flags = draw(st.sampled_from([(0, 0, 0)] * 3 + [(5, 0, 0), (0, 5, 0), (0, 0, 1)]))
    table, priority = draw(st.integers(0, 255)), draw(st.integers(0, 0xFFFF))
    head = (48 + len(rest), table, 1, 2, priority, *times_and_flags)
    return struct.pack("!HBxIIHHHH4x", *head) + draw(st.binary(min_size=24, max_size=24)) + rest


@st.composite
def groups(draw: st.DrawFn) -> bytes:
    """Draw an entry of a list of groups."""
    buckets = b""
    for actions in draw(st.lists(st.lists(ACTIONS, max_size=4), max_size=4)):
        inside = b"".join(actions)
        port = draw(st.integers(0, 0xFFFFFFFF))
        buckets += struct.pack("!HHII4x", 16 + len(inside), 3, port, 0xFFFFFFFF) + inside
    kind = draw(
        st.sampled_from([ofp.OFPGT_ALL, ofp.OFPGT_FF, ofp.OFPGT_SELECT, ofp.OFPGT_INDIRECT])
    )
    return struct.pack("!HBxI", 8 + len(buckets), kind, draw(st.integers(0, 99))) + buckets


def checked(kind: int, body: bytes) -> bytes:
    message = bytearray(multipart(kind, body))
    check(message)
    return bytes(message)


@given(st.lists(rules(), min_size=1, max_size=3))
def test_any_rules_are_read_as_by_ryu(encoded: list[bytes]) -> None:
    assert assert_read_as_by_ryu(checked(ofp.OFPMP_FLOW, b"".join(encoded))) == len(encoded)


@given(st.lists(rules(), min_size=1, max_size=3), st.sampled_from([COOKIE, PROBE_COOKIE]))
def test_any_rule_with_a_cookie_of_ours_is_deleted_or_reported(
    made: list[bytes], cookie: int
) -> None:
    held = {
        rule.key: replace(rule, cookie=cookie, rule=rule.rule and rule.rule._replace(cookie=cookie))
        for entry in entries(checked(ofp.OFPMP_FLOW, b"".join(made)))
        for rule in [read_rule(entry)]
    }
    changes = reconcile(SwitchRules(()), list(held.values()), ())
    deleted = [change for step in changes.steps for change in step]
    deleted += probe_rule_changes(held_probe_rules(list(held.values())), ())
    for change in deleted:
        assert encode(change, 1)
    gone = {change.rule.key for change in deleted if isinstance(change, RuleChange)}
    assert gone | {rule.key for rule in changes.foreign} == held.keys()
    assert len(deleted) + len(changes.foreign) == len(held)


@given(st.lists(groups(), min_size=1, max_size=3))
def test_any_groups_are_read_as_by_ryu(encoded: list[bytes]) -> None:
    assert assert_read_as_by_ryu(checked(ofp.OFPMP_GROUP_DESC, b"".join(encoded))) == len(encoded)
