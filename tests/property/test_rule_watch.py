"""What others change in switches while they are connected is noticed, reported and put right."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from knotless.base.errors import KnotlessError
from knotless.controller import runtime
from knotless.controller.reconcile import normal
from knotless.controller.status import Status
from knotless.forwarding.openflow.rules import (
    COOKIE,
    FLOOD,
    Field,
    Group,
    Output,
    Rule,
    SwitchRules,
)
from knotless.topologies.numbering import mac_value
from knotless.verification.check import check
from tests.property.test_switches import DESIRED, FABRIC, Case, _slow_answers
from tests.support.model_controllers import _simulated_time
from tests.support.model_switch import REFUSAL, ModelSwitch

__all__ = ["_simulated_time", "_slow_answers"]
TURNS = 400
OTHERS = 0xF0
"""The cookie of rules of others."""


def settled(seed: int = 1) -> Case:
    case = Case(seed)
    case.settle()
    return case


def read_all(case: Case, max_age_s: float = 0.0) -> str | None:
    """Have all switches read again; return why not all hold their rules."""
    refusals: list[str] = []

    def read() -> None:
        try:
            case.controller.rule_watch.read_all(max_age_s)
        except KnotlessError as error:
            refusals.append(str(error))

    thread = runtime.spawn(read)
    for _ in range(TURNS):
        runtime.sleep(0)
    assert thread.dead
    return refusals[0] if refusals else None


def problems(case: Case) -> list[str]:
    return Status(case.state).problems(1e9)


def delete_all(switch: ModelSwitch, _rng: random.Random) -> None:
    switch.rules.clear()


def delete_some(switch: ModelSwitch, rng: random.Random) -> None:
    for key in rng.sample(sorted(switch.rules, key=str), len(switch.rules) // 2):
        del switch.rules[key]


def delete_groups(switch: ModelSwitch, _rng: random.Random) -> None:
    switch.restart()


def change_some(switch: ModelSwitch, rng: random.Random) -> None:
    for key in rng.sample(sorted(switch.rules, key=str), len(switch.rules) // 3):
        rule = switch.rules[key]
        actions = tuple(
            Output(rng.choice((1, 2, 3))) if isinstance(action, Output) else action
            for action in rule.actions
        )
        switch.rules[key] = rule._replace(actions=actions)


def add_ours(switch: ModelSwitch, rng: random.Random) -> None:
    match = (Field("eth_dst", mac_value(rng.choice(FABRIC.hosts).mac)),)
    rule = Rule(rng.randrange(4), 0xFFF0, match, (Output(rng.choice((1, 2, 3))),), cookie=COOKIE)
    switch.rules[rule.key] = rule


def change_groups(switch: ModelSwitch, _rng: random.Random) -> None:
    switch.groups = {number: Group(number, ()) for number in switch.groups}
    switch.groups[777] = Group(777, ((Output(1),),))


DAMAGE: tuple[Callable[[ModelSwitch, random.Random], None], ...] = (
    delete_all,
    delete_some,
    delete_groups,
    change_some,
    add_ours,
    change_groups,
)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.seeds(8)
def test_what_others_have_changed_is_put_right(
    damage: Callable[[ModelSwitch, random.Random], None], seed: int
) -> None:
    case = settled(seed)
    before = case.reports.installations
    hurt = case.rng.choice(case.switches)
    held = dict(hurt.rules), dict(hurt.groups)
    damage(hurt, case.rng)
    is_hurt = held != (hurt.rules, hurt.groups)
    refusal = read_all(case)
    # What was in force may have been able to deadlock: then all are read, as after a takeover.
    for _ in range(4 * TURNS):
        runtime.sleep(0)
    case.held_as_wanted()
    assert case.state.ready
    assert problems(case) == []
    assert case.reports.kinds.count("changed-by-others") == is_hurt
    started_over = case.reports.kinds.count("takeover") - 1
    assert (refusal is None) or started_over
    if not started_over:
        assert case.reports.installations == before + is_hurt, "nothing else is written"


def test_nothing_is_written_if_nothing_has_changed() -> None:
    case = settled()
    before = case.reports.installations
    assert read_all(case) is None
    assert case.reports.installations == before
    assert "changed-by-others" not in case.reports.kinds


def test_rules_that_can_deadlock_are_replaced_as_after_a_takeover() -> None:
    case = settled()
    hurt = case.switches[2]
    at_home = mac_value(next(host for host in FABRIC.hosts if host.switch == "s3").mac)
    for port in (2, 3):  # frames for the host of this switch go on to its neighbours instead
        match = (Field("in_port", 5 - port), Field("eth_dst", at_home))
        rule = normal(Rule(0, 0xFFF0, match, (Output(port),), cookie=COOKIE))
        hurt.rules[rule.key] = rule
    read_all(case)
    for _ in range(4 * TURNS):
        runtime.sleep(0)
    case.held_as_wanted()
    assert case.state.ready
    assert problems(case) == []


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        ((), "cannot deadlock under PAUSE, and 18 deliveries fail"),
        ((Output(FLOOD),), "CAN DEADLOCK under PAUSE"),
        (None, "some do what cannot be followed"),
    ],
)
def test_rules_of_others_are_reported_with_the_verdict_until_they_are_gone(
    actions: tuple[Output, ...] | None, text: str
) -> None:
    case = settled()
    hurt = case.switches if actions else case.switches[:1]
    rule = Rule(0, 60000, (), actions or (), cookie=OTHERS)
    for switch in hurt:
        switch.rules[rule.key] = rule
        switch.unreadable = {OTHERS} if actions is None else set()
    read_all(case)
    lines = problems(case)
    assert len(lines) == len(hurt)
    line = lines[0]
    assert line.startswith("s1 (dpid 1) holds 1 rules that are not Knotless's (cookie 0xf0 in tab")
    assert text in line
    assert case.state.ready, "what is wanted is held"
    if actions is not None:
        rules = {name: case.state.update.progress.wanted(name) for name in case.state.desired.rules}
        for name in list(rules)[: len(hurt)]:
            every = sorted([*rules[name].rules, rule], key=lambda each: each.order)
            rules[name] = SwitchRules(tuple(every), rules[name].groups)
        assert check(FABRIC, rules).text in line
    for switch in hurt:
        del switch.rules[rule.key]
    assert read_all(case) is None
    assert problems(case) == []


def test_a_refused_change_is_tried_again_when_there_is_room() -> None:
    case = settled()
    full = case.switches[1]
    full.rules.clear()
    full.refuses = lambda _change: True
    refusal = read_all(case)
    assert refusal is not None
    assert refusal.startswith("s2: rules are missing that could not be put back")
    assert not case.state.ready
    assert any(REFUSAL in line for line in problems(case))
    assert case.reports.kinds.count("installed") == 4, "the first ones"
    full.refuses = lambda _change: False
    assert read_all(case) is None
    assert case.state.ready
    case.held_as_wanted()


def test_a_step_on_what_is_not_held_any_more_reads_first() -> None:
    case = settled()
    hurt = case.switches[3]
    hurt.groups.clear()
    hurt.rules.clear()
    hurt.refuses = lambda change: change.command == "modify" and bool(not hurt.rules)
    case.controller.change_to(DESIRED[1])
    case.settle()
    read_all(case)
    case.held_as_wanted()


def test_switches_that_were_just_read_are_not_read_again() -> None:
    case = settled()
    assert read_all(case) is None
    ages = [switch.read_s for switch in case.state.observed.switches.values()]
    assert read_all(case, max_age_s=1000) is None
    assert [switch.read_s for switch in case.state.observed.switches.values()] == ages
