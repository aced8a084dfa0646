"""What sends frames on in a loop, from what Open vSwitch prints about such a frame."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation import forwarding_loops, health, processes
from knotless.emulation.forwarding_loops import find_reasons, with_reasons
from knotless.emulation.names import Names
from knotless.topologies import load

# Of Open vSwitch 3.1; lines of flows are cut.
SHOW = """netdev@ovs-netdev: hit:22 missed:8
  s1:
    s1 65534/1: (tap)
    s1-eth1 1/5: (system)
    s1-eth2 2/6: (system)
    s1-eth3 3/7: (system)
  s2:
    s2 65534/2: (tap)
    s2-eth2 2/9: (system)
    s2-eth3 3/10: (system)
"""
TRACE = """Flow: arp,in_port=3,vlan_tci=0x0000

bridge("s1")
------------
{}

Final flow: unchanged
Megaflow: recirc_id=0,eth,arp,in_port=3
Datapath actions: {}"""
FLOOD = """ 0. arp,in_port=3, priority 5, cookie 0x77
    set_field:0x9->metadata
    goto_table:1
 1. metadata=0x9, priority 6, cookie 0x78
    FLOOD"""
ACTION_SET = """ 0. in_port=3, priority 4, cookie 0x79
    write_actions(output:2)
     -> action set is: output:2
    goto_table:1
     1. priority 3, cookie 0x7a
            goto_table:2
         2. No match.
            drop
--. Executing action set:
    output:2"""
GROUP = """ 0. in_port=3,dl_vlan=7, priority 9
    pop_vlan
    group:5
    bucket 0
            output:1
    bucket 1
            output:2"""
NAMED = """ 0. priority 1
    FLOOD
    goto_table:4
 4. dl_vlan=9, priority 2, cookie 0xffffffffffffffff
    push_vlan:0x8100
    output:2
 5. priority 0
    output:12"""
TO_CONTROLLER = """ 0. priority 0
    CONTROLLER:65535"""
COPIED = """ 0. in_port=3, priority 1
    output:1
    CONTROLLER:20"""
USERSPACE = "userspace(pid=0,controller(reason=6,dont_send=0,recirc_id=1,max_len=65535))"


def rule(table: int, match: str, priority: int, cookie: str = "0x0") -> dict[str, Any]:
    return {"table": table, "match": match, "priority": priority, "cookie": cookie}


@pytest.mark.parametrize(
    ("trace", "actions", "by", "expected"),
    [
        (FLOOD, "7,6,5", "rule", rule(1, "metadata=0x9", 6, "0x78")),
        (ACTION_SET, "6", "rule", rule(0, "in_port=3", 4, "0x79")),
        (GROUP, "pop_vlan,6,5", "rule", rule(0, "in_port=3,dl_vlan=7", 9)),
        (
            NAMED,
            "push_vlan(vid=2,pcp=0),6",
            "rule",
            rule(4, "dl_vlan=9", 2, "0xffffffffffffffff"),
        ),
        (FLOOD, "clone(push_vlan(vid=2,pcp=0),6),5", "rule", rule(1, "metadata=0x9", 6, "0x78")),
        # The port is not among those by which the frame leaves: a controller has sent it.
        (TO_CONTROLLER, USERSPACE, "controller", rule(0, "", 0)),
        (COPIED, f"5,{USERSPACE}", "controller", rule(0, "in_port=3", 1)),
        (FLOOD, "5,7", "controller", None),
        (" 0. No match.\n    drop", "drop", "controller", None),
        (FLOOD, "meter(6),sample(sample=50.0%,actions(6)),5", "controller", None),
        ("", "", "controller", None),
        ("--. Executing action set:\n 0. x, priority y\n    output:2", "6", "rule", None),
    ],
)
def test_the_rule_that_sends_a_frame_to_a_port_is_found(
    monkeypatch: pytest.MonkeyPatch,
    trace: str,
    actions: str,
    by: str,
    expected: dict[str, Any] | None,
) -> None:
    answers = {"dpif/show": SHOW, "ofproto/trace": TRACE.format(trace, actions)}
    monkeypatch.setattr(health, "json_rpc", lambda _path, method, _arguments: answers[method])
    hops = [[hop("s2:3", "s1", 3), hop("s1:2", "s2", 2)]]
    loops = [{"channels": ["s2:3", "s1:2"], "present": True}]
    found = find_reasons(Names("t"), load("ring,4"), loops, hops, {"ovs-vswitchd": ourselves()})
    first = found["s2:3", "s1:2"][0]
    assert first == {"switch": "s1", "to": "s1:2", "by": by, "rule": expected}


def ourselves() -> int:
    return processes.ourselves().pid


def hop(channel: str, switch: str | None, port: int | None) -> dict[str, Any]:
    return {"channel": channel, "switch": switch, "port": port, "frame": "ff" * 60}


def test_each_process_is_asked_about_its_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, tuple[str, ...]]] = []
    bridges = {"7": "  s1:\n    s1-eth2 2/6: (system)\n", "8": "  s3:\n    s3-eth2 2/6: (tap)\n"}

    def answer(path: Path, method: str, arguments: Sequence[str]) -> object:
        process = path.name.split(".")[1]
        asked.append((process, method, tuple(arguments)))
        if process == "9":
            raise EmulationError("it has ended")
        return bridges[process] if method == "dpif/show" else TRACE.format(FLOOD, "6")

    monkeypatch.setattr(health, "json_rpc", answer)
    ring = ("s1:2", "s3:2", "s2:2")
    hops = [
        [hop("s1:2", "s3", 3), hop("s3:2", "s2", 3), hop("s2:2", "s1", 3)],
        [hop("s1:3", "s4", 2), hop("s4:3", "s1", 2)],
    ]
    loops = [
        {"channels": list(ring), "present": True},
        {"channels": ["s1:3", "s4:3"], "present": False},
    ]
    pids = {f"ovs-vswitchd-{pid}": pid for pid in (7, 8, 9)}
    found = find_reasons(Names("t"), load("ring,4"), loops, hops, pids)
    # s2 is of the process that does not answer; the second loop is over.
    assert {loop: [step["switch"] for step in steps] for loop, steps in found.items()} == {
        ring: ["s3", "s1"]
    }
    traced = sorted(one for one in asked if one[1] == "ofproto/trace")
    assert traced == [
        ("7", "ofproto/trace", ("s1", "in_port=3", "ff" * 60)),
        ("8", "ofproto/trace", ("s3", "in_port=3", "ff" * 60)),
    ]
    status = with_reasons({"loops": loops, "valid": True}, found)
    assert [len(loop["sent_on"]) for loop in status["loops"]] == [2, 0]
    assert loops[0] == {"channels": list(ring), "present": True}
    assert with_reasons({}, {}) == {"loops": []}


def test_where_a_controller_carries_frames_to_another_switch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = {"dpif/show": SHOW, "ofproto/trace": TRACE.format(FLOOD, "6,7")}
    monkeypatch.setattr(health, "json_rpc", lambda _path, method, _arguments: answers[method])
    hops = [[hop("s2:3", "s1", 3), hop("s4:2", "s2", 2)]]
    loops = [{"channels": ["s2:3", "s4:2"], "present": True}]
    found = find_reasons(Names("t"), load("ring,4"), loops, hops, {"ovs-vswitchd": ourselves()})
    assert [step["by"] for step in found["s2:3", "s4:2"]] == ["controller", "controller"]


def test_no_more_switches_are_asked_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(_path: Path, method: str, _arguments: Sequence[str]) -> str:
        asked.append(method)
        return SHOW if method == "dpif/show" else TRACE.format(FLOOD, "6")

    monkeypatch.setattr(health, "json_rpc", answer)
    monkeypatch.setattr(forwarding_loops, "MOST_STEPS", 3)
    hops = [[hop(f"s1:{port}", "s2", 2) for port in range(9)]]
    loops = [{"channels": [one["channel"] for one in hops[0]], "present": True}]
    find_reasons(Names("t"), load("ring,4"), loops, hops, {"ovs-vswitchd": ourselves()})
    assert asked.count("ofproto/trace") == 3
    # One that is not in `status` yet, and no loop at all: nobody is asked.
    asked.clear()
    assert find_reasons(Names("t"), load("ring,4"), [], hops, {"ovs-vswitchd": 1}) == {}
    assert asked == []
