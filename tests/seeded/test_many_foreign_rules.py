"""One switch with thousands of rules of others keeps no other waiting."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from knotless.controller.openflow.replies import read_rule
from knotless.controller.openflow.session import Session
from knotless.forwarding.openflow.rules import Field, Rule
from tests.seeded.switch import keyed_entry_of
from tests.seeded.world import Setting, World

FOREIGN = 24_000
WAIT_S = 4.0
"""Simulated time in which all switches connect and get their rules."""


def installed(world: World) -> list[str]:
    leader = world.leader()
    assert leader is not None
    assert leader.app is not None
    switches = leader.app.service.state.observed.switches.values()
    return [switch.name for switch in switches if switch.installed]


def problems(world: World) -> list[str]:
    leader = world.leader()
    assert leader is not None
    assert leader.app is not None
    lines: list[str] = leader.app.service.status.problems(world.hub.now_s)
    return lines


def test_rules_of_others_are_counted_and_not_read_if_there_are_many() -> None:
    world = World(Setting(1, "torus,4,4"))
    crowded = world.switches["s1"]
    for number in range(FOREIGN):
        match = (Field("eth_src", number), Field("in_port", 99))
        key, entry = keyed_entry_of(Rule(0, 1, match, cookie=0xF0))
        crowded.contents.flows[key] = entry
    crowded.is_touched = True
    with patch(f"{Session.__module__}.read_rule", wraps=read_rule) as read, world.running():
        world.hub.sleep_outside(WAIT_S)
        assert len(installed(world)) == 16
        (line,) = problems(world)
        assert line.startswith("s1 (dpid 1) holds 24000 rules that are not Knotless's (too many to")
        assert {rule.args[0][24:32] for rule in read.call_args_list} <= {
            cookie.to_bytes(8, "big") for cookie in (0x6B6E6F74, 0x6B6E7072)
        }
        left = crowded.contents.copy()
        left.flows = {
            key: flow for key, flow in left.flows.items() if flow[24:32] != bytes(7) + b"\xf0"
        }
        crowded.touch(left)
        world.hub.sleep_outside(6.0)
        assert problems(world) == []
    assert not world.violations


@pytest.mark.deep
def test_a_switch_that_answers_nothing_is_left_out_after_a_stated_time() -> None:
    world = World(Setting(2, "torus,4,4"))
    with world.running():
        world.switches["s6"].stalled_until_s = world.hub.now_s + 3600
        world.hub.sleep_outside(15.0)
        assert len(installed(world)) == 15
        world.switches["s6"].stalled_until_s = 0.0
        world.hub.sleep_outside(30.0)
        assert len(installed(world)) == 16
