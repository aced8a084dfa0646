"""Every value is encoded as OpenFlow bytes, and decoded from statistics as the same value."""

import struct
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from knotless.controller.openflow import checks
from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.messages import encode
from knotless.controller.openflow.replies import read_group, read_packet_in, read_rule
from knotless.controller.reconcile import (
    PROBE_COOKIE,
    FoundGroup,
    GroupChange,
    RuleChange,
    normal,
)
from knotless.forwarding.openflow.rules import (
    CONTROLLER,
    COOKIE,
    IN_PORT,
    Choose,
    Field,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    ToGroup,
)
from tests.support.openflow_messages import group_entry, match, message, oxm, packet_in
from tests.support.ryu_messages import DATAPATH

RULES = [
    Rule(
        0,
        100,
        (Field("in_port", 1), Field("eth_src", 0x020000000101), Field("vlan_vid", 0)),
        (PushVlan(), SetField("vlan_vid", 0x1005), SetField("vlan_pcp", 2)),
        goto=1,
        cookie=COOKIE,
    ),
    Rule(0, 0, (), cookie=COOKIE),
    Rule(
        1,
        10,
        (
            Field("vlan_vid", 0x1005),
            Field("eth_dst", 0x020000000000, 0xFFFFFFFF0000),
        ),
        metadata=7,
        goto=2,
        cookie=COOKIE,
    ),
    Rule(1, 5, (Field("vlan_vid", 0x1000, 0x1000),), (ToGroup(3),), cookie=COOKIE),
    Rule(
        2,
        5,
        (Field("in_port", 2), Field("metadata", 7), Field("vlan_pcp", 1)),
        goto=3,
        metadata=0,
        cookie=COOKIE,
    ),
    Rule(3, 5, (Field("metadata", 1),), (PopVlan(), Output(IN_PORT)), cookie=COOKIE),
    *(
        Rule(
            1, 100 + count, (), (Choose(tuple(range(2, 2 + count)), 63967),), goto=2, cookie=COOKIE
        )
        for count in (1, 2, 4, 5, 300)
    ),
    Rule(
        3,
        5,
        (Field("eth_type", 0x0806), Field("arp_op", 1), Field("arp_tpa", 0x0A000000, 0xFF000000)),
        (Output(CONTROLLER),),
        cookie=COOKIE,
    ),
]


def sent_rule(change: RuleChange) -> Any:
    text = encode(change, 1)
    return parser.OFPFlowMod.parser(
        DATAPATH, ofp.OFP_VERSION, ofp.OFPT_FLOW_MOD, len(text), 1, text
    )


def as_stats(entry: Any) -> bytes:
    """An entry as the switch reports it: put into a statistics reply's bytes, and parsed."""
    body = bytearray()
    entry.match.serialize(body, 0)
    for instruction in entry.instructions:
        instruction.serialize(body, len(body))
    head = bytearray(ofp.OFP_FLOW_STATS_0_SIZE)
    struct.pack_into(
        ofp.OFP_FLOW_STATS_0_PACK_STR,
        head,
        0,
        len(head) + len(body),
        entry.table_id,
        1,  # seconds and nanoseconds it has been there
        0,
        entry.priority,
        entry.idle_timeout,
        entry.hard_timeout,
        entry.flags,
        entry.cookie,
        1,  # packets and bytes
        1,
    )
    return bytes(head + body)


def test_nearly_a_choice_is_an_action_that_we_never_write() -> None:
    rule = Rule(1, 5, (), (Choose((2, 3, 4), 7),), goto=2, cookie=COOKIE)
    good = as_stats(sent_rule(RuleChange("add", rule)))
    assert read_rule(good).rule == normal(rule)
    begin = good.index(b"\xff\xff\x00\x18")
    # Every bit of the three moves, and of what bundle_load does but for its basis and its ports.
    meant = [*range(62), *range(64, 80), *range(86, 112)]
    for place in (begin + offset for offset in meant):
        for bit in range(8):
            bad = bytearray(good)
            bad[place] ^= 1 << bit
            with suppress(WireError):
                assert read_rule(bytes(bad)).rule is None, (place - begin, bit)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"table{rule.table}-{len(rule.match)}")
def test_a_rule_comes_back_as_it_was_sent(rule: Rule) -> None:
    mod = sent_rule(RuleChange("add", rule))
    assert mod.command == ofp.OFPFC_ADD
    assert read_rule(as_stats(mod)).rule == normal(rule)


@given(
    st.integers(0, 3),
    st.integers(0, 0xFFFF),
    st.integers(0, 0xFFFFFFFFFFFF),
    st.integers(1, 0xFFFFFFFFFFFF),
    st.integers(0, 0xFFF),
    st.integers(0, 7),
    st.integers(0, 2**64 - 1) | st.none(),
)
def test_any_values_come_back(
    table: int, priority: int, mac: int, mask: int, vid: int, pcp: int, metadata: int | None
) -> None:
    full = mask == 0xFFFFFFFFFFFF
    rule = Rule(
        table,
        priority,
        (
            Field("eth_dst", mac & mask, None if full else mask),
            Field("vlan_vid", 0x1000 | vid),
        ),
        (SetField("vlan_pcp", pcp),),
        metadata,
        table + 1,
        COOKIE,
    )
    entry = read_rule(as_stats(sent_rule(RuleChange("add", rule))))
    assert entry.rule == normal(rule)
    assert entry.key == normal(rule).key


def test_a_deletion_names_one_entry_with_our_cookie() -> None:
    mod = sent_rule(RuleChange("delete", RULES[0]))
    assert mod.command == ofp.OFPFC_DELETE_STRICT
    assert (mod.cookie, mod.cookie_mask) == (COOKIE, 0xFFFFFFFFFFFFFFFF)
    assert (mod.out_port, mod.out_group) == (ofp.OFPP_ANY, ofp.OFPG_ANY)
    assert mod.instructions == []


def test_masks_that_mean_all_or_nothing_are_written_one_way() -> None:
    match = parser.OFPMatch(vlan_vid=(0x1005, 0x1FFF), metadata=(9, 0), eth_dst="02:00:00:00:00:01")
    entry = read_rule(as_stats(stats_of(match)))
    assert entry.match == (Field("eth_dst", 0x020000000001), Field("vlan_vid", 0x1005))


def stats_of(match: Any, instructions: list[Any] | None = None, **other: int) -> Any:
    plain = {
        "table_id": 1,
        "priority": 1,
        "idle_timeout": 0,
        "hard_timeout": 0,
        "flags": 0,
        "cookie": COOKIE,
    }
    return SimpleNamespace(**(plain | other), match=match, instructions=instructions or [])


@pytest.mark.parametrize(
    "stats",
    [
        stats_of(parser.OFPMatch(), idle_timeout=5),
        stats_of(parser.OFPMatch(), hard_timeout=5),
        stats_of(parser.OFPMatch(), flags=ofp.OFPFF_SEND_FLOW_REM),
        stats_of(parser.OFPMatch(), [parser.OFPInstructionWriteMetadata(1, 0xFF)]),
        stats_of(
            parser.OFPMatch(),
            [parser.OFPInstructionActions(ofp.OFPIT_WRITE_ACTIONS, [parser.OFPActionOutput(1)])],
        ),
        stats_of(
            parser.OFPMatch(),
            [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [parser.OFPActionPushMpls()])],
        ),
    ],
    ids=["idle", "hard", "flags", "metadata-mask", "write-actions", "mpls"],
)
def test_rules_that_we_never_write_are_foreign(stats: Any) -> None:
    assert read_rule(as_stats(stats)).rule is None


def test_a_foreign_rule_lists_its_groups() -> None:
    actions = [parser.OFPActionPushMpls(), parser.OFPActionGroup(12)]
    stats = stats_of(
        parser.OFPMatch(), [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
    )
    assert read_rule(as_stats(stats)).uses_groups == {12}


@pytest.mark.parametrize(("command", "code"), [("add", 0), ("modify", 1), ("delete", 2)])
def test_a_group_comes_back_as_it_was_sent(command: Any, code: int) -> None:
    group = Group(5, ((Output(1),), (PopVlan(), Output(2)), (SetField("vlan_pcp", 1), Output(3))))
    text = encode(GroupChange(command, group), 1)
    assert struct.unpack_from("!HBxI", text, ofp.OFP_HEADER_SIZE) == (code, ofp.OFPGT_ALL, 5)
    if command == "delete":
        assert len(text) == ofp.OFP_GROUP_MOD_SIZE
    else:
        assert read_group(group_entry(text)).group == group


def test_a_group_of_another_type_is_not_ours() -> None:
    for other in (
        parser.OFPGroupMod(DATAPATH, type_=ofp.OFPGT_SELECT, group_id=5, buckets=[]),
        parser.OFPGroupMod(
            DATAPATH, group_id=5, buckets=[parser.OFPBucket(actions=[parser.OFPActionDecNwTtl()])]
        ),
    ):
        other.set_xid(1)
        other.serialize()
        entry = read_group(group_entry(bytes(other.buf)))
        assert entry == FoundGroup(5, None)


def test_long_entries_of_a_switch_are_not_kept() -> None:
    actions = [parser.OFPActionOutput(port) for port in range(1, 40)]
    stats = stats_of(
        parser.OFPMatch(), [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
    )
    before = checks._cached.cache_info().currsize
    rule = read_rule(as_stats(stats)).rule
    assert rule is not None
    assert rule.actions == tuple(Output(port) for port in range(1, 40))
    assert checks._cached.cache_info().currsize <= before + 1  # the match


@pytest.mark.parametrize("fields", [(), (oxm(2, bytes(8)),), (oxm(3, bytes(6)), oxm(2, bytes(8)))])
def test_a_packet_in_is_a_port_and_a_frame(fields: tuple[bytes, ...]) -> None:
    found = read_packet_in(packet_in(70_000, b"frame", PROBE_COOKIE, *fields))
    assert found == (70_000, b"frame")


def test_a_packet_in_without_a_port_has_none() -> None:
    without = message(10, bytes(16) + match(oxm(2, bytes(8))) + bytes(2) + b"frame")
    assert read_packet_in(without) == (None, b"frame")
