"""Probes as frames and messages, and the rules that bring them to the controller."""

from __future__ import annotations

import struct

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from knotless.base.flow_control import FlowControl
from knotless.controller.probes.frames import (
    ETHER_TYPE,
    ROUNDS_VALID,
    TO_NEIGHBOUR,
    TO_NEIGHBOUR_AND_BACK,
    Frames,
    Probe,
    held_probe_rules,
    probe_rule_changes,
    probe_rules,
)
from knotless.controller.probes.prober import priority_of
from knotless.controller.reconcile import PROBE_COOKIE, FoundRule, reconcile
from knotless.forwarding.openflow.rules import (
    CONTROLLER,
    COOKIE,
    IN_PORT,
    Output,
    Rule,
    SwitchRules,
)

DPID = 0x1234_5678_9ABC


def sent(message: bytes, port: int) -> bytes:
    """Return the frame that a packet-out sends on a port, as a switch executes its actions."""
    assert message[:2] == bytes([ofp.OFP_VERSION, ofp.OFPT_PACKET_OUT])
    assert int.from_bytes(message[2:4], "big") == len(message)
    buffer_id, in_port, size = struct.unpack_from("!IIH", message, 8)
    assert (buffer_id, in_port) == (ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER)
    offset, end = 24, 24 + size
    frame, out = bytearray(message[end:]), {}
    while offset < end:
        action = parser.OFPAction.parser(message, offset)
        offset += action.len
        if isinstance(action, parser.OFPActionSetField):
            assert action.key == "eth_src"
            frame[6:12] = bytes.fromhex(action.value.replace(":", ""))
        else:
            out[action.port] = bytes(frame)
    return out[port]


@pytest.mark.parametrize("priority", [None, 7])
@pytest.mark.parametrize("reflected", [False, True])
def test_a_probe_says_who_sent_it(priority: int | None, reflected: bool) -> None:
    frames = Frames(priority)
    frames.round = 5
    frame = sent(frames.packet_out(DPID, [2, 70_000], reflected=reflected), 70_000)
    destination = TO_NEIGHBOUR_AND_BACK if reflected else TO_NEIGHBOUR
    assert int.from_bytes(frame[:6], "big") == destination
    tag = b"" if priority is None else b"\x81\x00\xe0\x00"
    assert frame[12:].startswith(tag + ETHER_TYPE.to_bytes(2, "big"))
    assert frames.read(frame) == Probe(DPID, 70_000, reflected, 5)
    # The next switch changes the destination of one that it sends back; emulators add a trailer.
    assert frames.read(TO_NEIGHBOUR.to_bytes(6, "big") + frame[6:] + bytes(16)) is not None


def test_a_forged_an_old_and_another_controllers_probe_count_for_nothing() -> None:
    frames = Frames(None)
    frame = sent(frames.packet_out(DPID, [2], reflected=False), 2)
    assert Frames(None).read(frame) is None
    for offset in range(12, len(frame)):
        forged = bytearray(frame)
        forged[offset] ^= 1
        assert frames.read(bytes(forged)) is None, offset
    for length in range(len(frame)):
        assert frames.read(frame[:length]) is None
    frames.round = ROUNDS_VALID
    assert frames.read(frame) is None


def test_a_probe_for_learning_is_bound_to_its_port() -> None:
    frames = Frames(None, per_port=True)
    messages = frames.packet_out(DPID, [2, 3], reflected=False)
    size = int.from_bytes(messages[2:4], "big")
    frame, other = sent(messages[:size], 2), sent(messages[size:], 3)
    assert frames.read(frame) == Probe(DPID, 2, False, 0)
    assert frames.read(other) == Probe(DPID, 3, False, 0)
    assert frames.read(frame[:9] + other[9:12] + frame[12:]) is None
    assert Frames(None).read(frame) is None


def test_probes_are_accepted_from_ports_to_switches_only() -> None:
    rules = probe_rules([2, 3], [3])
    assert all(rule.cookie == PROBE_COOKIE and rule.table == 0 for rule in rules)
    ports = {rule.key: next(f.value for f in rule.match if f.name == "in_port") for rule in rules}
    assert set(ports.values()) == {2, 3}
    blocking = [rule for rule in rules if not rule.actions]
    assert [ports[rule.key] for rule in blocking] == [3]
    assert {rule.actions[-1] for rule in rules if rule.actions} == {
        Output(CONTROLLER),
        Output(IN_PORT),
    }
    accepted = [rule for rule in rules if rule.actions]
    assert min(rule.priority for rule in accepted) > max(rule.priority for rule in blocking)


def test_rules_of_probes_are_neither_the_plans_nor_foreign() -> None:
    rules = probe_rules([2], [])
    entries = [FoundRule(*rule.key, rule.cookie, rule) for rule in rules]
    other = Rule(0, 1, (), (), cookie=COOKIE)
    assert reconcile(SwitchRules(()), entries, []).foreign == ()
    assert reconcile(SwitchRules(()), entries, []).steps == ()
    assert held_probe_rules([*entries, FoundRule(*other.key, COOKIE, other)]) == set(rules)
    assert probe_rule_changes(rules, rules) == ()
    blocked = probe_rules([2], [2])
    (change,) = probe_rule_changes(rules, blocked)
    assert str(change).startswith("add the rule in table 0")
    (change,) = probe_rule_changes(blocked, rules)
    assert str(change).startswith("delete the rule in table 0")
    assert len(probe_rule_changes(rules, ())) == 2


@pytest.mark.parametrize(
    ("flow_control", "vcs", "expected"),
    [
        ("pause", 1, (None, True)),
        ("switch", 1, (None, True)),
        ("none", 1, (None, False)),
        ("host", 1, (None, False)),
        ("pfc", 2, (7, False)),
        ("pfc", 4, (7, True)),
        ("pfc", 8, (7, True)),
    ],
)
def test_probes_use_a_priority_that_no_virtual_channel_uses(
    flow_control: str, vcs: int, expected: tuple[int | None, bool]
) -> None:
    assert priority_of(FlowControl(flow_control), vcs) == expected
