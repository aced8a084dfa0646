"""The check finds damaged rules: each kind of damage must be reported."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.errors import PlanError, RuleError
from knotless.cli.main import main
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import (
    CONTROLLER,
    FORWARD,
    IN_PORT,
    OUTPUT,
    Action,
    FabricRules,
    Field,
    Group,
    Output,
    PopVlan,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
)
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.check import check, problems_of

H2 = Field("eth_dst", 0x020000000201)
TO_H2 = Field("eth_dst", 0x020000000200, 0xFFFFFFFFFF00)


def _without(rules: FabricRules, switch: str, unwanted: Callable[[Rule], bool]) -> FabricRules:
    kept = tuple(rule for rule in rules[switch].rules if not unwanted(rule))
    assert len(kept) < len(rules[switch].rules)
    return {**rules, switch: replace(rules[switch], rules=kept)}


def _with(rules: FabricRules, switch: str, *more: Rule) -> FabricRules:
    return {**rules, switch: replace(rules[switch], rules=(*rules[switch].rules, *more))}


def _to(rules: FabricRules, switch: str, *actions: Action) -> FabricRules:
    """Return the rules with one more on ``switch``, which applies ``actions`` to frames to h2."""
    return _with(rules, switch, Rule(FORWARD, 900, (TO_H2,), actions))


DAMAGE: list[tuple[str, Callable[[FabricRules], FabricRules], int, str]] = [
    (
        "a switch without rules",
        lambda rules: {k: v for k, v in rules.items() if k != "s3"},
        6,
        "s3: there are no rules for this switch",
    ),
    (
        "a missing rule",
        lambda rules: _without(rules, "s2", lambda rule: H2 in rule.match),
        3,
        "h1 to h2: the frame is dropped at s2",
    ),
    (
        "the wrong host",
        lambda rules: _to(rules, "s1", Output(1)),
        2,
        "h4 to h2: the frame arrives at h1",
    ),
    (
        "a loop",
        lambda rules: {
            name: _to(rules, name, Output(3))[name] for name in ("s1", "s2", "s3", "s4")
        },
        3,
        "h1 to h2: the frame goes round for ever",
    ),
    (
        "a frame sent back",
        lambda rules: _to(rules, "s1", Output(IN_PORT)),
        2,
        "h1 to h2: the frame arrives at h1",
    ),
    (
        "a copy too many",
        lambda rules: _with(
            rules,
            "s2",
            Rule(OUTPUT, 900, (Field("metadata", 1),), (Output(1), Output(1))),
        ),
        3,
        "h1 to h2: the frame arrives at h2, h2",
    ),
    (
        "copies on the same channel",
        lambda rules: _to(rules, "s1", Output(2), Output(2)),
        2,
        "h1 to h2: the frame arrives more than once",
    ),
    (
        "a tag left on",
        lambda rules: _with(rules, "s2", Rule(OUTPUT, 900, (Field("metadata", 1),), (Output(1),))),
        3,
        "h1 to h2: the frame arrives tagged",
    ),
    (
        "a changed address",
        lambda rules: _with(
            rules,
            "s2",
            Rule(FORWARD, 900, (TO_H2,), (PopVlan(), SetField("eth_src", 5), Output(1))),
        ),
        3,
        "h1 to h2: what s2 does with the frame cannot be followed",
    ),
    (
        "a port with nothing there",
        lambda rules: _to(rules, "s1", Output(9)),
        2,
        "s1: frames go out of port 9, where nothing is",
    ),
    (
        "the controller",
        lambda rules: _to(rules, "s1", Output(CONTROLLER)),
        2,
        "s1: a rule sends frames to the controller; they are not followed",
    ),
    (
        "a group that is not there",
        lambda rules: _to(rules, "s1", ToGroup(99)),
        2,
        "s1: a rule uses group 99, which is not there",
    ),
    (
        "a group in itself",
        lambda rules: {
            **_to(rules, "s1", ToGroup(99)),
            "s1": replace(
                _to(rules, "s1", ToGroup(99))["s1"],
                groups=(Group(99, ((ToGroup(99),), (ToGroup(99),))),),
            ),
        },
        2,
        "s1: group 99 uses groups without end",
    ),
    (
        "a field that is not followed",
        lambda rules: _with(rules, "s1", Rule(0, 900, (Field("tcp_dst", 80),))),
        0,
        "s1: a rule of table 0 matches tcp_dst: not followed here",
    ),
    (
        "a table that goes back",
        lambda rules: _with(rules, "s1", Rule(OUTPUT, 900, (TO_H2,), goto=0)),
        2,
        "s1: a rule of table 3 goes back to table 0",
    ),
]


@pytest.mark.parametrize(
    ("damage", "undelivered", "message"),
    [row[1:] for row in DAMAGE],
    ids=[row[0] for row in DAMAGE],
)
def test_damage_is_found(
    damage: Callable[[FabricRules], FabricRules], undelivered: int, message: str
) -> None:
    fabric = load("ring,4")
    rules = compile_rules(make_plan(fabric, "updown"))
    assert check(fabric, rules).ok
    verdict = check(fabric, damage(rules))
    assert verdict.undelivered == undelivered
    assert message in verdict.problems
    assert verdict.ok == (undelivered == 0)


def test_a_broadcast_that_misses_a_host_is_found() -> None:
    fabric = load("ring,4")
    rules = compile_rules(make_plan(fabric, "updown"))
    bit = 0x010000000000
    broken = _without(
        rules, "s3", lambda rule: Field("eth_dst", bit, bit) in rule.match and rule.priority == 300
    )
    verdict = check(fabric, broken)
    assert verdict.undelivered == 0
    assert verdict.broadcasts_undelivered > 0
    assert not verdict.ok
    assert "h3 does not receive broadcasts from h1" in verdict.problems


def test_a_cycle_of_broadcasts_alone_is_found() -> None:
    fabric = load("ring,4")
    rules = compile_rules(make_plan(fabric, "updown"))
    flood = {}
    for name, of_switch in rules.items():
        dst = Field("eth_dst", 0xFFFFFFFFFFFF)
        more = tuple(
            Rule(FORWARD, 900, (dst, Field("in_port", port)), (Output(2),)) for port in (1, 3)
        )
        flood[name] = SwitchRules((*of_switch.rules, *more), of_switch.groups)
    verdict = check(fabric, flood)
    assert verdict.cycle == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert any("goes round for ever" in problem for problem in verdict.problems)


def test_a_broadcast_of_which_copies_meet_goes_round_nowhere() -> None:
    fabric = load("mesh,3,1")
    rules = compile_rules(make_plan(fabric, "updown"))
    all_bits = Field("eth_dst", 0xFFFFFFFFFFFF)
    twice = _with(
        rules, "s1", Rule(FORWARD, 900, (all_bits, Field("in_port", 1)), (Output(2), Output(2)))
    )
    verdict = check(fabric, twice)
    assert (verdict.acyclic, verdict.broadcasts_undelivered) == (True, 1)
    assert verdict.problems == ["two copies of a broadcast of h1 take the same channel"]


def test_a_loop_of_which_the_dependencies_have_no_cycle_is_a_contradiction() -> None:
    fabric = load("ring,4")
    rules = compile_rules(make_plan(fabric, "updown"))
    loop = {name: _to(rules, name, Output(3))[name] for name in rules}
    for flow_control in ("pause", "pfc", "switch"):
        assert not check(fabric, loop, flow_control=flow_control).acyclic
    for flow_control in ("none", "host"):  # what goes round waits for nothing
        verdict = check(fabric, loop, flow_control=flow_control)
        assert verdict.acyclic
        assert "h1 to h2: the frame goes round for ever" in verdict.problems
    state = state_of_rules(fabric, loop)
    with pytest.raises(AssertionError, match="h1 to h2 goes round on channels whose waits have no"):
        problems_of(state, may_loop=False)


def test_rules_that_do_not_fit_the_fabric_are_refused() -> None:
    with pytest.raises(RuleError, match="'s9', which is not a switch of ring,4"):
        check(load("ring,4"), {"s9": SwitchRules(())})
    with pytest.raises(PlanError, match="'pause', 'pfc'"):
        check(load("ring,4"), {}, flow_control="some")


def test_problems_are_a_bounded_number_of_lines() -> None:
    verdict = check(load("mesh,5,5"), {})
    assert verdict.undelivered == verdict.pairs == 600
    assert len(verdict.problems) < 160
    assert verdict.problems[-1].startswith("and ")


def test_each_step_of_a_cycle_has_a_packet_that_takes_it(tmp_path: Path) -> None:
    run = CliRunner()
    folder = str(tmp_path / "my rules")
    words = ["flows", "ring,5", "--engine", "minimal", "--multicast", "3=h1,h4", "--out", folder]
    assert run.invoke(main, words).exit_code == 0
    checked = run.invoke(main, ["check", folder, "--json"])
    assert checked.exit_code == 1
    verdict = json.loads(checked.output)
    assert len(verdict["witnesses"]) == len(verdict["cycle"]) == 5
    for step in verdict["witnesses"]:
        followed = run.invoke(main, [*shlex.split(step["command"])[1:], "--json"])
        assert followed.exit_code == 0
        links = [link["link"] for link in json.loads(followed.output)["links"]]
        place = links.index(step["held"])
        assert links[place + 1] == step["wanted"]


def test_one_packet_is_followed_link_by_link(tmp_path: Path) -> None:
    run, folder = CliRunner(), str(tmp_path)
    words = ["flows", "mesh,3,1", "--engine", "dor", "--multicast", "3=h1,h3", "--out", folder]
    assert run.invoke(main, words).exit_code == 0
    follow = ["check", folder, "--pair", "h1"]
    alone = run.invoke(main, [*follow, "h3"])
    assert alone.output.splitlines() == [
        "h1 to h3: delivered to h3",
        "  s1:2/0  VLAN 2",
        "  s2:2/0  VLAN 2",
        "  h3",
    ]
    assert run.invoke(main, [*follow, "all"]).output.startswith("h1 to all: delivered to h2, h3\n")
    group = run.invoke(main, [*follow, "multicast:3"])
    assert group.output.startswith("h1 to multicast:3: delivered to h3\n")
    itself = run.invoke(main, [*follow, "h1"])
    assert (itself.exit_code, itself.output) == (
        1,
        "h1 to h1: not delivered, it is dropped at s1\n",
    )
    nobody = run.invoke(main, [*follow, "h9"])
    assert "has no host 'h9'" in nobody.output


def test_incomplete_and_contradictory_dumps_are_judged_with_few_words() -> None:
    fabric = load("mesh,16,16")
    rules = compile_rules(make_plan(fabric, "dor"))
    others = compile_rules(make_plan(fabric, "updown"))
    half = {name: rules[name] for place, name in enumerate(rules) if place % 2}
    mixed = {name: (rules, others)[place % 2][name] for place, name in enumerate(rules)}
    for dump in ({}, half):
        verdict = check(fabric, dump)
        assert 0 < verdict.undelivered <= verdict.pairs == 256 * 255
        assert 0 < len(verdict.problems) < 160
    verdict = check(fabric, mixed)
    assert verdict.broadcasts_undelivered > 0
    assert not verdict.acyclic
    assert verdict.problems[0] == "two copies of a broadcast of h17 take the same channel"
    assert not any("for ever" in text for text in verdict.problems)
    assert len(verdict.problems) < 160
