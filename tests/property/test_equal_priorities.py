"""Rules of equal priority: ours never tie; of foreign ones that do, any one may count."""

from __future__ import annotations

import random

import pytest

from knotless.base.errors import PlanError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import Field, Output, Rule, SwitchRules
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import mac_value
from knotless.verification.changes.planner import between_plans
from tests.support.rule_engines import RULE_ENGINES
from tests.support.ties import ties

SPECS = ("mesh,4,4", "torus,5,5", "ring,6,hosts=2", "random,12,degree=4,hosts=2,seed=1")


@pytest.mark.parametrize("spec", SPECS)
def test_our_own_rules_do_not_tie(spec: str) -> None:
    routed = set[str]()
    for engine in RULE_ENGINES:
        try:
            plan = make_plan(load(spec), engine)
        except PlanError:
            continue  # engines of some families
        routed.add(engine)
        assert next(ties(compile_rules(plan)), None) is None, engine
    assert {"updown", "minimal", "lash"} <= routed


def _random_rules(seed: int, fabric: Fabric) -> tuple[Rule, ...]:
    """Return rules with two priorities that match bits of destinations and send to one port."""
    rng = random.Random(seed)  # noqa: S311
    macs = [mac_value(host.mac) for host in fabric.hosts]
    ports = [host.port for host in fabric.hosts]
    rules = []
    for _ in range(rng.randint(2, 12)):
        mac = rng.randrange(len(macs))
        mask = rng.choice([None, 1 << rng.randrange(16), 0xFF, 0xFFFF])
        value = macs[mac] if mask is None else macs[mac] & mask
        match = (Field("eth_dst", value, mask),)
        port = ports[mac] if rng.random() < 0.7 else rng.choice(ports)
        rules.append(Rule(0, rng.choice([4, 5]), match, (Output(port),)))
    return tuple(rules)


def _delivers(rules: tuple[Rule, ...], mac: int, in_port: int, port: int) -> bool:
    """Tell whether all rules that may count send a frame to its host."""
    matching = [
        rule
        for rule in rules
        for f in rule.match
        if (mac ^ f.value) & (-1 if f.mask is None else f.mask) == 0
    ]
    best = [rule for rule in matching if rule.priority == max(r.priority for r in matching)]
    outs = [action.port for rule in best for action in rule.actions if isinstance(action, Output)]
    return bool(outs) and all(out == port != in_port for out in outs)


@pytest.mark.seeds(150)
def test_any_of_the_rules_that_tie_may_count(seed: int) -> None:
    fabric = load("hub,5")
    rules = _random_rules(seed, fabric)
    switch = fabric.switches[0].name
    state = state_of_rules(fabric, {switch: SwitchRules(rules)})
    expected = sum(
        not _delivers(rules, mac_value(to.mac), source.port, to.port)
        for source in fabric.hosts
        for to in fabric.hosts
        if source is not to
    )
    assert state.core.undelivered == expected


def test_most_random_rules_tie() -> None:
    fabric = load("hub,5")
    tied = [next(ties({"s1": SwitchRules(_random_rules(n, fabric))}), None) for n in range(150)]
    assert sum(1 for tie in tied if tie is not None) > 75


@pytest.mark.parametrize(
    ("spec", "engine", "choices"),
    [
        ("torus,3,3,hosts=2", "dl", {"vcs": 2}),
        ("torus,4,4", "dor", {}),
        ("mesh,3,3", "sbp", {}),
        ("clos,4,hosts=2", "updown", {}),
    ],
)
def test_rules_with_backups_do_not_tie(spec: str, engine: str, choices: dict[str, int]) -> None:
    plan = make_plan(load(spec), engine, protection="fast-failover", **choices)
    assert next(ties(compile_rules(plan)), None) is None


@pytest.mark.parametrize(
    ("spec", "old", "new"),
    [
        ("mesh,3,3", "updown", "sbp"),
        ("ring,6,hosts=2", "updown", "dl"),
        ("torus,5,5", "dor", "updown"),
    ],
)
def test_rules_between_two_plans_do_not_tie(spec: str, old: str, new: str) -> None:
    fabric = load(spec)
    change = between_plans(make_plan(fabric, old), make_plan(fabric, new))
    assert len(change.steps) > 1
    assert [next(ties(step.rules), None) for step in change.steps] == [None] * len(change.steps)
