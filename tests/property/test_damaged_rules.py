"""One damaged rule is found, whatever destinations and hosts the check follows as one."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FabricRules, Output, Rule, SwitchRules
from knotless.forwarding.state import ForwardingState
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, load
from knotless.topologies.numbering import mac_value
from knotless.verification.check import verdict_of
from knotless.verification.dependencies import edges_of
from tests.support.one_switch import Frame, OneByOne, Pipeline
from tests.support.random_fabrics import seeded

Damage = Callable[[Rule, list[int]], Rule | None]


def _dropped(_rule: Rule, _ports: list[int]) -> Rule | None:
    return None


def _sent_elsewhere(rule: Rule, ports: list[int]) -> Rule:
    """Return the rule with another port, or with no effect where it names none."""
    if rule.metadata is not None:
        return rule._replace(metadata=next(p for p in ports if p != rule.metadata))
    if any(isinstance(action, Output) for action in rule.actions):
        used = {action.port for action in rule.actions if isinstance(action, Output)}
        other = Output(next(p for p in ports if p not in used))
        sent = tuple(other if isinstance(a, Output) else a for a in rule.actions)
        return rule._replace(actions=sent)
    return rule._replace(actions=(), goto=None)


def _with_lowest_priority(rule: Rule, _ports: list[int]) -> Rule | None:
    """Return the rule with the priority of that which drops everything else; None if it has it."""
    return rule._replace(priority=0) if rule.priority else None


DAMAGES: list[Damage] = [_dropped, _sent_elsewhere, _with_lowest_priority]


def _without(held: SwitchRules, rule: Rule) -> list[Rule]:
    return [other for other in held.rules if other != rule]


def _rule_on_a_path(
    fabric: Fabric, rules: FabricRules, rng: random.Random
) -> tuple[int, int, str, Rule]:
    """Return a source, a target, and a switch with a rule that decides about a packet of theirs."""
    source, target = rng.sample(range(len(fabric.hosts)), 2)
    a, b = fabric.hosts[source], fabric.hosts[target]
    follower, passed = OneByOne(fabric, rules), []
    name, port = a.switch, a.port
    frame = Frame(mac_value(b.mac), mac_value(a.mac), 0x0800)
    while (name, port) != (b.switch, b.port):
        passed.append((name, port, frame))
        ((out, frame),) = Pipeline(name, rules[name]).outputs(port, frame)
        if (name, out) == (b.switch, b.port):
            break
        channel = follower.channels.leaving[fabric.switch_index[name], out]
        name = follower.channels.names[follower.channels.head[channel]]
        port = int(follower.channels.in_port[channel])
    name, port, frame = rng.choice(passed)
    held = rules[name]
    sent = Pipeline(name, held).outputs(port, frame)

    def decides(rule: Rule) -> bool:
        left = SwitchRules(tuple(_without(held, rule)), held.groups)
        return Pipeline(name, left).outputs(port, frame) != sent

    return source, target, name, rng.choice([rule for rule in held.rules if decides(rule)])


def _damaged(
    fabric: Fabric, rules: FabricRules, name: str, rule: Rule, damage: Damage
) -> FabricRules:
    ports = sorted({*fabric.hosts_at[name], *fabric.neighbours[name]})
    other = damage(rule, ports)
    left = [*_without(rules[name], rule), *([] if other is None else [other])]
    held = SwitchRules(tuple(sorted(left, key=lambda of: of.order)), rules[name].groups)
    return {**rules, name: held}


def _delivers(fabric: Fabric, state: ForwardingState, source: int, target: int) -> bool:
    found = state.trace(fabric.hosts[source].name, fabric.hosts[target].name)
    wrong = found.dropped or found.unsupported or found.repeated
    return found.delivered == [(target, 0)] and not wrong


@pytest.mark.parametrize("spec", ["fattree3,12", "torus,12,12,hosts=2", "dragonfly,a=6,h=3,p=3"])
def test_one_damaged_rule_is_found(spec: str) -> None:
    fabric = load(spec)
    plan = make_plan(fabric)
    rules = dict(compile_rules(plan))
    intact = state_of_rules(fabric, rules)
    assert verdict_of(intact, plan.flow_control).failed == 0
    failed = 0
    for seed, rng in seeded(range(12)):
        source, target, name, rule = _rule_on_a_path(fabric, rules, rng)
        state = state_of_rules(
            fabric, _damaged(fabric, rules, name, rule, DAMAGES[seed % len(DAMAGES)])
        )
        assert intact.difference(state), (name, rule)
        verdict = verdict_of(state, plan.flow_control)
        if not _delivers(fabric, state, source, target):
            failed += 1
            assert verdict.undelivered > 0
            assert verdict.problems
        same = np.array_equal(intact.loads, state.loads)
        same &= np.array_equal(edges_of(intact), edges_of(state))
        assert verdict.undelivered > 0 or not same
    assert failed > 4


def test_what_a_damaged_rule_does_is_found_packet_by_packet() -> None:
    fabric = load("fattree3,6")
    rules = dict(compile_rules(make_plan(fabric)))
    for seed, rng in seeded(range(12)):
        *_, name, rule = _rule_on_a_path(fabric, rules, rng)
        # Of rules with equal priority the follower takes one, the check considers all.
        damage = DAMAGES[seed % 2]
        damaged = _damaged(fabric, rules, name, rule, damage)
        state, singly = (
            state_of_rules(fabric, damaged, any_address=False),
            OneByOne(fabric, damaged),
        )
        singly.pairs()
        singly.floods([None])
        assert state.core.undelivered == singly.undelivered
        assert sum(state.core.floods_undelivered) == singly.floods_undelivered
        assert np.array_equal(state.loads, singly.loads)
        assert set(map(tuple, edges_of(state).tolist())) == singly.edges
