"""Packets to any address: our plans hold, and foreign rules are judged as a slow walker does."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from knotless.base.errors import PlanError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.state import ForwardingState
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.check import check, verdict_of
from tests.prove_any_address import prove
from tests.support.any_address import addresses, dependencies, foreign, random_rules
from tests.support.cycles import has_cycle
from tests.support.random_fabrics import seeded, small_fabric

PLANS = [
    ("ring,4", "updown", "default"),
    ("ring,6", "dl", "default"),
    ("mesh,3,3,hosts=2", "dor", "tree"),
    ("torus,4,4", "dor", "default"),
    ("torus,3,3,hosts=3", "lash", "default"),
    ("mtree,2,3", "prefix", "default"),
    ("fattree2,6", "fattree", "default"),
    ("fattree,2,4,2", "smodk", "tree"),
    ("fattree3,4", "smodk", "tree"),
    ("lsft,3", "lsft", "default"),
    ("random,10,degree=3,hosts=2,seed=4", "lturn", "default"),
    ("random,12,degree=4,hosts=1,seed=7", "dfsssp", "default"),
    ("irregular-a", "rturn", "default"),
]


@pytest.mark.parametrize(("spec", "engine", "vlans"), PLANS)
def test_our_plans_hold_for_addresses_that_no_host_has(spec: str, engine: str, vlans: str) -> None:
    """Unknown and bit-flipped ones, broadcasts, undeclared groups; also by the slow walker."""
    plan = make_plan(load(spec), engine, vlans=vlans)
    rules = compile_rules(plan)
    state = state_of_rules(plan.fabric, rules)
    assert len(state.core.unassigned) > 0
    verdict = verdict_of(state, plan.flow_control)
    assert verdict.ok
    if plan.vcs == 1:
        tried = addresses(plan.fabric, rules, random.Random(spec))  # noqa: S311
        assert not has_cycle(dependencies(plan.fabric, rules, tried, [0x0800]))


def foreign_rules_agree(rng: random.Random) -> bool | None:
    """Compare the verdict on a plan with foreign rules with that of packets followed one by one.

    Returns whether it cannot deadlock; None if the engine refuses the fabric.
    """
    fabric = rng.choice([load("ring,4"), load("ring,5"), load("mesh,3,3"), small_fabric(rng)])
    engine = rng.choice(["updown", "prefix", "lturn", "dl", "minimal"])
    try:
        plan = make_plan(fabric, engine, vcs=1 if engine == "dl" else None)
    except PlanError:
        return None
    rules = foreign(compile_rules(plan), random_rules(fabric, rng))
    edges = dependencies(fabric, rules, addresses(fabric, rules, rng))
    state = state_of_rules(fabric, rules)
    verdict = verdict_of(state, "pause")
    assert verdict.acyclic is not has_cycle(edges)
    assert [step.held for step in verdict.witnesses] == verdict.cycle
    for step in verdict.witnesses:
        _takes(state, step.source, step.destination, (step.held, step.wanted))
    without = check(fabric, rules, flow_control="pause", any_address=False)
    assert (verdict.undelivered, verdict.pairs) == (without.undelivered, without.pairs)
    return verdict.acyclic


@pytest.mark.thin(1)
@pytest.mark.parametrize("part", range(4))
def test_foreign_rules_are_judged_as_packets_followed_one_by_one(part: int) -> None:
    seeds = range(part * 60, part * 60 + 60)
    verdicts = Counter(foreign_rules_agree(rng) for _, rng in seeded(seeds))
    assert min(verdicts[True], verdicts[False]) > 10


def test_traffic_to_any_address_freezes_where_the_verdict_says_so() -> None:
    outcome = prove(10, 10)
    assert (outcome.safe, outcome.unsafe) == (10, 10)
    assert (outcome.frozen_although_safe, outcome.not_frozen) == ([], [])


def _takes(
    state: ForwardingState, source: str, destination: str, channels: tuple[str, str]
) -> None:
    """Assert that a packet takes both channels, as ``--pair`` shows it."""
    number = state.destination_number(source, destination)
    assert number is not None
    hops = state.trace_number(source, number).hops
    taken = {state.channels.name(h.channel, 0) for h in hops if h.channel < len(state.channels)}
    assert {f"{name.partition('/')[0]}/0" for name in channels} <= taken
