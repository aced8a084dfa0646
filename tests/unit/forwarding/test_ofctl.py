"""ovs-ofctl text: written and read back; dumps of Open vSwitch read; invalid text refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.base.errors import RuleError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import read_dir, write_dir
from knotless.forwarding.openflow.ofctl_parser import parse, parse_known
from knotless.forwarding.openflow.ofctl_writer import CHOOSE, write
from knotless.forwarding.openflow.rules import (
    CONTROLLER,
    IN_PORT,
    Choose,
    Field,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
)
from knotless.routing.plan import make_plan
from knotless.topologies import load
from tests.support import REPOSITORY

TAGGED = Field("vlan_vid", 0x1000, 0x1000)

# As ovs-ofctl 3.1 prints them, with -O OpenFlow13.
DATA = REPOSITORY / "tests" / "data"
DUMP = (DATA / "dump-flows.txt").read_text()
GROUPS = (DATA / "dump-groups.txt").read_text()


def test_a_dump_of_open_vswitch_is_read() -> None:
    ours = 0x6B6E6F74
    rules = parse(DUMP, GROUPS)
    own = (Field("eth_src", 0x020000000101), Field("in_port", 1), Field("vlan_vid", 0))
    push = (PushVlan(), SetField("vlan_vid", 4098), SetField("vlan_pcp", 0))
    turn = (Field("in_port", 2), Field("metadata", 3), Field("vlan_pcp", 0), TAGGED)
    assert set(rules.rules) == {
        Rule(0, 500, (Field("eth_dst", 0x0180C2000000, 0xFFFFFFFFFFF0),), cookie=ours),
        Rule(0, 300, own, push, goto=1, cookie=ours),
        Rule(0, 300, (Field("in_port", 2), Field("vlan_vid", 0x1002, 0x1FFE)), goto=1, cookie=ours),
        Rule(0, 300, (Field("in_port", 3), Field("vlan_vid", 0x1005)), goto=1, cookie=ours),
        Rule(2, 100, turn, (SetField("vlan_pcp", 1),), goto=3),
        Rule(
            2,
            0x8000,
            (Field("eth_type", 0x0800), Field("ipv4_dst", 0x0A010000, 0xFFFF0000)),
            (Output(CONTROLLER),),
        ),
        Rule(3, 0, (), (Output(IN_PORT),)),
    }
    assert rules.groups == (
        Group(1, ((PopVlan(), Output(1)), (SetField("vlan_pcp", 1), Output(2)))),
    )


@pytest.mark.parametrize(
    ("spec", "engine"),
    [("mesh,4,4", "dor"), ("torus,4,4,hosts=3", "dor"), ("ring,5,hosts=2", "minimal")],
)
def test_round_trip_of_compiled_rules(spec: str, engine: str, tmp_path: Path) -> None:
    fabric = load(spec)
    rules = compile_rules(make_plan(fabric, engine))
    write_dir(fabric, rules, tmp_path / "new" / "folder")
    assert read_dir(tmp_path / "new" / "folder") == (fabric, rules)


def test_everything_that_a_rule_can_hold_is_written() -> None:
    rules = SwitchRules(
        (
            Rule(
                0,
                7,
                (Field("arp_op", 1), Field("arp_tpa", 0x0A000001), Field("eth_type", 0x0806)),
                (SetField("eth_dst", 0x020000000101), Output(IN_PORT), Output(CONTROLLER)),
                cookie=2**64 - 1,
            ),
            Rule(1, 7, (Field("metadata", 4, 0xFC),), (ToGroup(2),), metadata=9, goto=2),
            Rule(2, 7, (), (PopVlan(), Choose((2, 3), 63967), Choose((4,), 1)), goto=3),
        ),
        (Group(2, ((), (PopVlan(), Output(1)))),),
    )
    assert parse(*write(rules)) == rules


def test_choices_name_ports_and_are_read_from_older_switches() -> None:
    text = CHOOSE.format(basis=5, ports='"s1-eth2",4').replace("members", "slaves")
    known = parse_known(f"actions={text},goto_table:2", {"s1-eth2": 2})
    assert (known.rules.rules[0].actions, known.faults) == ((Choose((2, 4), 5),), ())


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("[24..47]", "[0..23]"),
        ("hrw", "active_backup"),
        ("eth_src,5", "symmetric_l4,5"),
        ("[0..15]", "[0..14]"),
        (",move:NXM_NX_XXREG0[0..47]->NXM_OF_ETH_SRC[]", ""),
        (":2,4", ":"),
        ("eth_src,5", "eth_src,65536"),
    ],
)
def test_other_bundles_are_not_read_as_choices(part: str, other: str) -> None:
    text = CHOOSE.format(basis=5, ports="2,4")
    assert part in text
    with pytest.raises(RuleError, match=r"is not supported|maximum"):
        parse(f"actions={text.replace(part, other)},goto_table:2")


@pytest.mark.parametrize(
    ("flows", "groups", "message"),
    [
        ("priority=1,in_port=1", "", "flow line 1: actions= is missing"),
        ("# one\n\npriority=x actions=drop", "", "flow line 3: 'x' is not a number"),
        ("priority=70000 actions=drop", "", "is above the maximum, 0xffff"),
        ("table=255 actions=drop", "", "is above the maximum, 0xfe"),
        ("tun_id=1 actions=drop", "", "match 'tun_id' is not supported"),
        ("in_port=s1-eth1 actions=drop", "", "port 's1-eth1' has no number: ovs-ofctl dump-ports"),
        ("in_port=1 actions=LOCAL", "", "action 'LOCAL' is not supported"),
        ("in_port=LOCAL actions=drop", "", "port LOCAL, the switch itself, is not supported"),
        ("dl_dst=02:00 actions=drop", "", "'02:00' is not a MAC"),
        ("nw_dst=10.0 actions=drop", "", "'10.0' is not an IPv4 address"),
        ("in_port=1,in_port=2 actions=drop", "", "in_port is matched twice"),
        ("actions=learn(table=1,in_port=2),drop", "", "'learn(table=1,in_port=2)' is not"),
        ("actions=push_vlan:0x88a8", "", "the tag type must be 0x8100"),
        ("actions=write_metadata:0x1/0x3", "", "write_metadata with a mask"),
        ("actions=set_field:1->tun_id", "", "is not supported"),
        ("", "group_id=1,type=indirect,bucket=actions=drop", "of type 'indirect' are not"),
        ("", "type=all,bucket=actions=drop", "group line 1: group_id= is missing"),
        ("", "group_id=1,type=all,bucket=actions=goto_table:3", "cannot go to a table"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(
    flows: str, groups: str, message: str
) -> None:
    with pytest.raises(RuleError) as caught:
        parse(flows, groups)
    assert message in str(caught.value)


def test_files_are_named(tmp_path: Path) -> None:
    fabric = load("ring,3")
    write_dir(fabric, compile_rules(make_plan(fabric, "updown")), tmp_path)
    (tmp_path / "s2.flows").write_text("nonsense")
    with pytest.raises(RuleError, match=r"s2: flow line 1"):
        read_dir(tmp_path)
    (tmp_path / "s2.flows").write_bytes(b"\xff\xfe")
    with pytest.raises(RuleError, match=r"s2.flows: cannot be read: not UTF-8"):
        read_dir(tmp_path)
    (tmp_path / "s2.flows").unlink()
    assert set(read_dir(tmp_path)[1]) == {"s1", "s3"}
    with pytest.raises(RuleError, match="cannot be written"):
        write_dir(fabric, {}, tmp_path / "s1.flows" / "below")
