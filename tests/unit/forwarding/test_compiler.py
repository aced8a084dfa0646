"""Compiled rules are few and equivalent to the state from which they are compiled."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.compiler import compile_state
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FORWARD, Field
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import mac_text
from tests.support.ties import ties

GROUP_BIT = 1 << 40


def with_any_macs(fabric: Fabric) -> Fabric:
    """Return the fabric with unordered addresses; those of hosts on one switch are far apart."""
    rng = Random(3)  # noqa: S311 - it only has to be repeatable
    macs = [mac_text(rng.getrandbits(48) & ~GROUP_BIT) for _ in fabric.hosts]
    hosts = zip(fabric.hosts, macs, strict=True)
    return replace(fabric, hosts=tuple(replace(host, mac=mac) for host, mac in hosts))


@pytest.mark.parametrize("any_macs", [False, True])
@pytest.mark.parametrize(
    ("spec", "engine", "choices"),
    [
        ("flat,5", "updown", {}),
        ("ring,5", "dor", {}),
        ("torus,5,5", "dor", {}),
        ("torus,4,4,3", "dor", {"multicast": {1: ["h1", "h7", "h40"], 2: ["all"], 9: ["h3"]}}),
        ("torus,6,6,hosts=2", "dfsssp", {}),
        ("torus,5,5", "lash", {"tagging": "host"}),
        ("mesh,4,4,hosts=3", "updown", {"vlans": "tree", "select": "low-port"}),
        ("mesh,3,3", "sbp", {"multicast": {1: ["h2", "h9"]}}),
        ("fattree3,4", "fattree", {}),
        ("fattree3,6", "smodk", {}),
        ("fattree,2,4,2", "updown", {"tagging": "host", "vlans": "tree"}),
        ("clos,3,hosts=2", "updown", {"vcs": 3}),
        ("lsft,4", "lsft", {"multicast": {5: ["h1", "h2", "h99"]}}),
        ("lsft,3,sides=2", "lsft", {}),
        ("random,24,degree=4,hosts=3", "dl", {}),
        ("random,17,degree=4,hosts=3", "dfsssp", {"tagging": "host"}),
        ("irregular-a", "lturn", {"select": "low-port"}),
    ],
)
def test_rules_match_the_state(
    spec: str, engine: str, choices: dict[str, object], any_macs: bool
) -> None:
    fabric = with_any_macs(load(spec)) if any_macs else load(spec)
    plan = make_plan(fabric, engine, **choices)
    state = state_of_plan(plan)
    rules = compile_state(state, tagging=plan.tagging)
    read = state_of_rules(fabric, rules, plan.multicast, plan.host_tags())
    assert state.difference(read) == ""
    assert read.difference(state) == ""
    assert read.core.problems == []
    assert next(ties(rules), None) is None


@pytest.mark.parametrize(
    ("spec", "engine", "most"),
    [
        ("torus,8,8,8", "dor", 60),
        ("torus,16,16,hosts=4", "dor", 60),
        ("torus,10,10", "dor", 40),
        ("fattree3,16", "fattree", 80),
        ("lsft,9", "lsft", 155),
        ("random,128,degree=4,hosts=4", "dl", 140),
    ],
)
def test_rules_are_few(spec: str, engine: str, most: int) -> None:
    plan = make_plan(load(spec), engine)
    rules = compile_state(state_of_plan(plan))
    assert int(rules.counts.max()) <= most
    largest = max(rules, key=rules.count)
    assert rules.count(largest) == len(rules[largest].rules)
    assert rules.total == int(rules.counts.sum())


def test_rules_for_arbitrary_addresses_are_at_most_one_per_destination() -> None:
    fabric = with_any_macs(load("random,32,hosts=2"))
    rules = compile_state(state_of_plan(make_plan(fabric, "updown", vlans="default")))
    for of_switch in rules.values():
        plain = [rule for rule in of_switch.rules if rule.table == FORWARD and rule.priority < 150]
        assert len(plain) <= len(fabric.hosts)


def test_link_local_addresses_are_dropped_before_all_else() -> None:
    rules = compile_state(state_of_plan(make_plan(load("ring,4"), "updown")))
    for of_switch in rules.values():
        first = of_switch.rules[0]
        assert first.match == (Field("eth_dst", 0x0180C2000000, 0xFFFFFFFFFFF0),)
        assert (first.actions, first.goto) == ((), None)
