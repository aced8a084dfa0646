"""Rules and groups in our own encoding are those that Ryu writes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3, ofproto_v1_3_parser

from knotless.controller.openflow.encode import encode
from knotless.controller.openflow.messages import change_message
from knotless.controller.reconcile import Change, Command, GroupChange, RuleChange
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.rules import Field, Rule
from knotless.forwarding.openflow.vlan_generations import VlanGeneration, rules_in
from knotless.routing.plan import make_plan
from knotless.topologies import load

DATAPATH: Any = SimpleNamespace(ofproto=ofproto_v1_3, ofproto_parser=ofproto_v1_3_parser)


def _ryu(change: Change) -> bytes:
    message = change_message(DATAPATH, change)
    message.set_xid(77)
    message.serialize()
    return bytes(message.buf)


@pytest.mark.parametrize("command", ["add", "modify", "delete"])
@pytest.mark.parametrize(
    ("spec", "request_"),
    [
        ("torus,4,4,hosts=2", {"request": "dor", "vcs": 2}),
        ("random,8,degree=3,hosts=2,seed=1", {"request": "dfsssp"}),
        ("fattree,2,4,2", {"request": "fattree", "tagging": "host"}),
    ],
)
def test_every_compiled_rule_is_encoded_as_by_ryu(
    spec: str, request_: dict[str, Any], command: Command
) -> None:
    rules = rules_in(compile_rules(make_plan(load(spec), **request_)), VlanGeneration(1))
    changes: set[Change] = set()
    for switch in rules.values():
        changes |= {RuleChange(command, rule) for rule in switch.rules}
        changes |= {GroupChange(command, group) for group in switch.groups}
    assert len(changes) > 50
    for change in changes:
        assert encode(change, 77) == _ryu(change), str(change)


def test_what_we_never_write_is_left_to_ryu() -> None:
    rule = Rule(0, 5, (Field("eth_type", 0x0806), Field("arp_tpa", 0x0A000001)))
    assert encode(RuleChange("add", rule), 1) is None
