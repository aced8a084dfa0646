"""Rules while links are cut: what is lost, and what is not."""

from __future__ import annotations

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.plan import Plan, make_plan
from knotless.routing.plan_of_parts import new_plan
from knotless.topologies import load
from knotless.topologies.failures import Failures
from knotless.verification.check import Verdict, check, verdict_of
from knotless.verification.cut_links import CutLinks, with_losses


def _judged(plan: Plan, rules: FabricRules, dead: set[str], down: set[str]) -> Verdict:
    cut = CutLinks(frozenset(dead), frozenset(down))
    verdict = check(plan.fabric, rules)
    effective = cut.rules_in_effect(plan.fabric, rules)
    return with_losses(verdict, verdict_of(state_of_rules(plan.fabric, effective)), ["the link"])


@pytest.mark.parametrize("spec", ["ring,4", "mesh,3,3", "fattree,2,2,2", "torus,3,3"])
def test_pairs_are_lost_by_the_directions_that_are_dead(spec: str) -> None:
    """As many as have a path there: every channel, alone and with its opposite."""
    plan = make_plan(load(spec), "updown")
    fabric, rules = plan.fabric, compile_rules(plan)
    state = state_of_rules(fabric, rules)
    paths = {
        (a.name, b.name): {hop.channel for hop in state.trace(a.name, b.name).hops}
        for a in fabric.hosts
        for b in fabric.hosts
        if a != b
    }
    names = state.channels
    for number, link in enumerate(fabric.links):
        one, other = f"{link.a}:{link.a_port}", f"{link.b}:{link.b_port}"
        for dead in ({one}, {other}, {one, other}):
            numbers = {n for n in range(len(names)) if names.name(n, 0).partition("/")[0] in dead}
            verdict = _judged(plan, rules, dead, set())
            lost = sum(bool(path & numbers) for path in paths.values())
            assert verdict.undelivered == lost, (number, dead)
            assert verdict.acyclic
            assert verdict.problems[:1] == (["cut: the link"] if verdict.failed else [])
            assert not [line for line in verdict.problems if "where nothing is" in line]


def test_a_host_that_is_cut_off_sends_and_gets_nothing() -> None:
    plan = make_plan(load("ring,4"), "updown")
    rules = compile_rules(plan)
    assert _judged(plan, rules, {"h2"}, set()).undelivered == 3
    assert _judged(plan, rules, {"s2:1"}, set()).undelivered == 3
    both = _judged(plan, rules, {"h2", "s2:1"}, {"h2", "s2:1"})
    assert (both.undelivered, both.broadcasts_undelivered) == (6, 6)


def test_nothing_is_lost_where_rules_avoid_the_link() -> None:
    """A rule that nothing reaches is no fault."""
    plan = make_plan(load("torus,3,3"), "dor")
    for link in plan.fabric.links[:4]:
        failures = Failures.from_names(plan.fabric, [link.name])
        rules = compile_rules(new_plan(plan, failures, plan.flow_control)[1])
        dead = {*link.name.split("-")}
        for down in (set(), dead):
            verdict = _judged(plan, rules, dead, down)
            assert (verdict.failed, verdict.problems) == (0, [])
            assert _judged(plan, compile_rules(plan), dead, down).failed > 0


def test_backups_are_taken_if_ports_see_the_cut() -> None:
    fabric = load("torus,3,3")
    plan, protected = (
        make_plan(fabric, "updown", protection=kind) for kind in ("none", "fast-failover")
    )
    rules, backups = compile_rules(plan), compile_rules(protected)
    link = plan.fabric.links[0]
    dead = {*link.name.split("-")}
    lost = _judged(plan, rules, dead, dead).undelivered
    assert _judged(plan, backups, dead, dead).undelivered < lost
    assert _judged(plan, backups, dead, set()).undelivered == lost
