"""Loops of frames as lines: their channels in order, and what sends frames on at each switch."""

from __future__ import annotations

from typing import Any

from knotless.base.forwarding_loops import past, problems
from knotless.base.link_problems import link_problems, measurement_notes
from knotless.emulation.summary import fabric_notes, fabric_problems

LOOP: dict[str, Any] = {
    **{"since_us": 1_000_000, "last_us": 2_500_000, "passes": 9, "present": True},
    "channels": ["s1:2", "s2:2", "s3:3"],
}
LINE = "forwarding loop: the same frames come again and again by s1:2 -> s2:2 -> s3:3 -> s1:2"
RULE = {"table": 1, "match": "in_port=3", "priority": 7, "cookie": "0x1"}
MISS = {"table": 0, "match": "", "priority": 0, "cookie": "0x0"}


def step(switch: str, by: str, rule: dict[str, Any] | None) -> dict[str, Any]:
    return {"switch": switch, "to": f"{switch}:2", "by": by, "rule": rule}


def test_a_loop_is_named_with_what_sends_frames_on() -> None:
    assert problems({"loops": [LOOP]}) == [LINE]
    by_rules = [step("s2", "rule", RULE), step("s3", "rule", {**RULE, "table": 2})]
    by_controllers = [
        step("s2", "controller", MISS),
        step("s3", "controller", MISS),
        step("s1", "controller", None),
    ]
    assert problems({"loops": [{**LOOP, "sent_on": by_rules}]}) == [
        f"{LINE}; sent on at s2 by the rule table=1, priority=7, in_port=3, cookie=0x1;"
        " at s3 by the rule table=2, priority=7, in_port=3, cookie=0x1"
    ]
    assert problems({"loops": [{**LOOP, "sent_on": by_controllers}]}) == [
        f"{LINE}; sent on at s2, s3 by a packet-out of a controller, which gets it by the rule"
        " table=0, priority=0, cookie=0x0; at s1 by a packet-out of a controller"
    ]


def test_long_loops_and_many_rules_are_one_line() -> None:
    channels = [f"s{number}:2" for number in range(1, 41)]
    sent_on = [step(f"s{n}", "rule", {**RULE, "cookie": hex(n)}) for n in range(1, 41)]
    (line,) = problems({"loops": [{**LOOP, "channels": channels, "sent_on": sent_on}]})
    assert "s6:2 -> (29 more) -> s36:2" in line
    assert "s40:2 -> s1:2; sent on at s1 by" in line
    assert line.endswith("cookie=0x4; and at others by 36 further rules")
    assert "\n" not in line


def test_a_loop_is_a_problem_behind_a_deadlock_and_a_note_when_it_is_over() -> None:
    knot = {"cycle": ["s1:2/0", "s2:2/0"]}
    status = {"deadlock": knot, "loops": [LOOP], "problems": ["slow"]}
    deadlock = "deadlock: s1:2/0 waits for s2:2/0 waits for s1:2/0"
    assert link_problems(status) == [deadlock, LINE, "link emulator: slow"]
    shown = fabric_problems(phase="ready", processes=["s1 died"], controller=None, emulator=status)
    assert shown == [deadlock, "s1 died", LINE, "link emulator: slow"]

    over = {"loops": [{**LOOP, "present": False}]}
    assert link_problems(over) == problems(over) == []
    line = "there was a forwarding loop until 2.500 s of virtual time: s1:2 -> s2:2 -> s3:3 -> s1:2"
    assert measurement_notes(over) == past(over) == [line]
    assert past(status) == []
    assert fabric_notes(controller=None, emulator=over) == [line]


def test_plain_links_are_said_not_to_be_watched() -> None:
    assert fabric_notes(controller=None, plain=True) == [
        "links are plain: forwarding loops and deadlocks are not watched"
    ]
    assert fabric_notes(controller=None) == []
