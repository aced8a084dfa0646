"""Multicast groups: declaration, compilation, delivery, and mistakes in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.errors import PlanError
from knotless.cli.main import main
from knotless.controller.config import ConfigError
from knotless.controller.config import parse as parse_config
from knotless.controller.desired import DesiredState
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import read_multicast, write_dir
from knotless.forwarding.openflow.rules import (
    FORWARD,
    FabricRules,
    Field,
    Group,
    Output,
    Rule,
    SetField,
    SwitchRules,
)
from knotless.routing.multicast import from_text, groups_of, parse, to_text
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.numbering import group_mac, mac_text
from knotless.verification.check import check
from knotless.verification.checked_plan import CheckedPlan
from tests.support.reference_rules import RuleReference

GROUPS = {1: ["h1", "h2", "h3"], 7: ["all"]}
TO_1 = Field("eth_dst", 0x030000000001)


def test_a_group_costs_only_the_way_to_its_members(tmp_path: Path) -> None:
    fabric = load("mesh,4,4")
    plan = make_plan(fabric, "dor", multicast={1: ["h6", "h7"]})
    rules = compile_rules(plan)
    write_dir(fabric, rules, tmp_path)
    reference = RuleReference(tmp_path)
    assert reference.sent("h5", mac_text(group_mac(1))) == {("h6", "h7")}
    assert [node[0] for node in sorted(reference.taken)] == ["s5", "s6"]  # to s6, and on to s7
    [undeclared] = reference.sent("h5", mac_text(group_mac(2)))
    assert len(set(undeclared) & reference.hosts.keys()) == 15


def test_the_group_of_all_hosts_closes_no_cycle() -> None:
    fabric = load("torus,4,4")
    plan = make_plan(fabric, "dor", multicast=GROUPS)
    rules = compile_rules(plan)
    verdict = check(fabric, rules, multicast=plan.multicast)
    assert verdict.ok
    assert (verdict.multicasts, verdict.multicasts_undelivered) == (3 * 15 + 16 * 15, 0)
    assert CheckedPlan(plan).cycle == []


def _with(rules: FabricRules, switch: str, rule: Rule, *groups: Group) -> FabricRules:
    switch_rules = rules[switch]
    return {
        **rules,
        switch: replace(
            switch_rules, rules=(*switch_rules.rules, rule), groups=(*switch_rules.groups, *groups)
        ),
    }


def _without(rules: FabricRules, switch: str) -> FabricRules:
    kept = tuple(rule for rule in rules[switch].rules if TO_1 not in rule.match)
    assert len(kept) < len(rules[switch].rules)
    return {**rules, switch: replace(rules[switch], rules=kept)}


def test_who_is_dropped_is_undelivered_though_the_only_member_sends_nothing_either() -> None:
    fabric = load("ring,4")
    plan = make_plan(fabric, "updown", multicast={1: ["h1"]})
    dropped = _with(compile_rules(plan), "s3", Rule(FORWARD, 900, (TO_1,)))
    verdict = check(fabric, dropped, multicast=plan.multicast)
    assert verdict.multicasts_undelivered == 1
    assert "h1 does not receive multicasts from h3 to group 1" in verdict.problems


DAMAGE: list[tuple[str, Callable[[FabricRules], FabricRules], str]] = [
    (
        "dropped on the way",
        lambda rules: _with(rules, "s2", Rule(FORWARD, 900, (TO_1,))),
        "h1 does not receive multicasts from h2 to group 1",
    ),
    (
        "treated as a broadcast",
        lambda rules: _without(rules, "s1"),
        "a multicast of h1 to group 1 reaches h4, which it is not for",
    ),
    (
        "twice",
        lambda rules: _with(
            rules,
            "s1",
            Rule(FORWARD, 900, (Field("in_port", 2), TO_1), (Output(1), Output(1))),
        ),
        "h1 does not receive multicasts from h3 to group 1 exactly once and unchanged",
    ),
]


@pytest.mark.parametrize(
    ("damage", "message"), [row[1:] for row in DAMAGE], ids=[d[0] for d in DAMAGE]
)
def test_damage_is_found(damage: Callable[[FabricRules], FabricRules], message: str) -> None:
    fabric = load("ring,4")
    plan = make_plan(fabric, "updown", multicast=GROUPS)
    rules = compile_rules(plan)
    assert check(fabric, rules, multicast=plan.multicast).ok
    verdict = check(fabric, damage(rules), multicast=plan.multicast)
    assert verdict.multicasts_undelivered > 0
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (0, 0)
    assert not verdict.ok
    assert message in verdict.problems


def test_a_cycle_that_only_multicasts_close_is_found() -> None:
    fabric = load("ring,4")
    plan = make_plan(fabric, "updown", multicast={1: ["all"]})
    rules = compile_rules(plan)
    round_and_round = {}
    for name, switch_rules in rules.items():
        rule = Rule(FORWARD, 900, (TO_1,), (SetField("vlan_pcp", 0), Output(2)))
        round_and_round[name] = SwitchRules((*switch_rules.rules, rule), switch_rules.groups)
    assert check(fabric, round_and_round, any_address=False).ok  # there is no such group
    verdict = check(fabric, round_and_round)  # but anybody can send to its address
    assert not verdict.acyclic
    assert "03:00:00:00:00:01" in {step.destination for step in verdict.witnesses}
    verdict = check(fabric, round_and_round, multicast=plan.multicast)
    assert verdict.cycle == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert any("goes round for ever" in problem for problem in verdict.problems)


def test_groups_survive_text() -> None:
    fabric = load("ring,4")
    groups = groups_of(fabric, {2: ["h3", "h1"], 1: ["all"]})
    assert [group.members for group in groups] == [("h1", "h2", "h3", "h4"), ("h1", "h3")]
    assert from_text(fabric, to_text(groups)) == groups
    assert parse(["2=h3, h1", "1=all"]) == {2: ["h3", "h1"], 1: ["all"]}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["1"], "must be NUMBER=HOST"),
        (["x=h1"], "must be NUMBER=HOST"),
        (["1=h1", "1=h2"], "already declared"),
        (["0=h1"], "from 1 to 65535"),
        (["65536=h1"], "from 1 to 65535"),
        (["1=h9"], "has no host 'h9'"),
        (["1=h1,h1"], "at least one member"),
        (["1="], "has no host ''"),
    ],
)
def test_mistakes_are_reported(wanted: list[str], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        make_plan(load("ring,4"), "updown", multicast=parse(wanted))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"x": ["h1"]}', '{"1": "h1"}', '{"1": [1]}'])
def test_other_texts_are_refused_as_groups(text: str) -> None:
    with pytest.raises(PlanError, match="must be an object"):
        from_text(load("ring,4"), text)


def test_check_reads_the_groups_that_flows_wrote(tmp_path: Path) -> None:
    fabric = load("ring,4")
    plan = make_plan(fabric, "updown", multicast=GROUPS)
    write_dir(fabric, compile_rules(plan), tmp_path, plan.multicast)
    assert read_multicast(fabric, tmp_path) == plan.multicast
    write_dir(fabric, compile_rules(make_plan(fabric, "updown")), tmp_path)
    assert read_multicast(fabric, tmp_path) == ()
    (tmp_path / "multicast.json").write_text('{"1": ["h9"]}')
    with pytest.raises(PlanError, match=r"multicast.json: multicast group 1: .* no host 'h9'"):
        read_multicast(fabric, tmp_path)


def test_flows_and_check_support_groups(tmp_path: Path) -> None:
    out = str(tmp_path / "rules")
    groups = ["--multicast", "1=h1,h3", "--multicast", "2=all"]
    flows = ["flows", "ring,4", "--engine", "updown", "--out", out]
    exported = CliRunner().invoke(main, [*flows, *groups])
    assert exported.exit_code == 0, exported.output
    checked = CliRunner().invoke(main, ["check", out, "--json"])
    assert checked.exit_code == 0
    assert json.loads(checked.output)["multicasts"] == 2 * 3 + 4 * 3
    wrong = CliRunner().invoke(main, [*flows, "--multicast", "1"])
    assert wrong.exit_code == 2
    assert "must be NUMBER=HOST" in wrong.output


def test_the_controller_declares_groups_by_its_configuration() -> None:
    config = parse_config("fabric: ring,4\nmulticast: {1: [h1, h2], 3: [all]}")
    state = DesiredState.compute(config, load("ring,4"))
    assert [group.number for group in state.plan.multicast] == [1, 3]
    assert state.verdict.multicasts == 2 * 3 + 4 * 3
    with pytest.raises(PlanError, match="multicast group 70000: .* from 1 to 65535"):
        DesiredState.compute(parse_config("multicast: {70000: [h1]}"), load("ring,4"))
    with pytest.raises(ConfigError, match="multicast: must map numbers to lists of hosts"):
        parse_config("multicast: {1: h1}")
