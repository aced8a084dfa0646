"""Repairs in place: what leads to a failed link is dropped, then the new routes are installed."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import VIRTUAL_CHANNEL
from knotless.routing.plan import Plan, make_plan
from knotless.routing.repair import repair
from knotless.routing.routes import common_routes
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES, Failures, parts, usable
from knotless.verification.changes.change import Change, Installed
from knotless.verification.changes.in_place import PRIORITY, common_rules
from knotless.verification.changes.planner import plan_change
from knotless.verification.changes.proof import ProofContext
from knotless.verification.changes.record import write_steps
from knotless.verification.check import check
from tests.support.random_fabrics import seeded, small_fabric
from tests.support.reference import CUT, Outcome
from tests.support.reference_rules import RuleReference


def _repaired(plan: Plan, link: str) -> Plan:
    return repair(plan, Failures.from_names(plan.fabric, [link])).plan


def _change(plan: Plan, link: str, *, plan_known: bool = True) -> Change:
    fabric = usable(plan.fabric, Failures.from_names(plan.fabric, [link]))
    rules, flow_control = compile_rules(plan), plan.flow_control
    before = Installed(fabric, rules, flow_control, plan=plan if plan_known else None)
    return plan_change(before, _repaired(plan, link))


def test_a_cut_of_a_torus_is_repaired_in_place() -> None:
    fabric = load("torus,4,4,hosts=4")
    plan = make_plan(fabric)
    for link in fabric.links[:8]:
        change = _change(plan, link.name)
        assert (change.tier, change.proven) == (1, True), link.name
        lost = check(change.before.fabric, change.before.rules).undelivered
        for step in change.steps:
            assert step.proof.mixed.outcome.undelivered <= lost, link.name
        assert change.steps[-1].rules == compile_rules(_repaired(plan, link.name))
        guards = [
            rule
            for step in change.steps[1:-1]
            for switch in step.rules.values()
            for rule in switch.rules
            if rule.priority == PRIORITY
        ]
        assert bool(guards) == any(step.await_quiescence for step in change.steps)
        assert all(
            (rule.table, rule.actions, rule.goto) == (VIRTUAL_CHANNEL, (), None) for rule in guards
        )


def test_turns_are_guarded_only_if_a_mixture_has_a_cycle() -> None:
    plan = make_plan(load("torus,10,10"))
    kinds = set()
    for link in plan.fabric.links[:12]:
        change, repaired = _change(plan, link.name), _repaired(plan, link.name)
        common = common_rules(plan, repaired)
        assert common is not None
        every = (compile_rules(plan), common, compile_rules(repaired))
        about = ProofContext(change.before.fabric, plan.flow_control)
        has_cycle = not about.judge([Generation(rules) for rules in every]).outcome.acyclic
        assert change.in_place
        assert (len(change.steps) == 3) == has_cycle, link.name
        kinds.add(has_cycle)
    assert kinds == {True, False}


def test_without_the_plan_of_the_installed_rules_two_vlan_generations_are_used() -> None:
    plan = make_plan(load("torus,4,4,hosts=4"))
    links = [link.name for link in plan.fabric.links[:8]]
    in_place = [link for link in links if _change(plan, link).in_place]
    assert in_place
    assert _change(plan, in_place[0], plan_known=False).tier == 2


def test_a_link_that_returns_is_not_used_in_place() -> None:
    """Entries that differ deliver frames now, so they must not drop."""
    plan = make_plan(load("torus,4,4,hosts=4"))
    for link in plan.fabric.links[:4]:
        repaired = _repaired(plan, link.name)
        rules, flow_control = compile_rules(repaired), plan.flow_control
        before = Installed(plan.fabric, rules, flow_control, plan=repaired)
        change = plan_change(before, plan)
        assert not change.in_place
        assert change.proven


@pytest.mark.parametrize("engine", ["dor", "dl"])
def test_common_routes_are_those_of_both_plans(engine: str) -> None:
    plan = make_plan(load("torus,4,4"), engine)
    other = _repaired(plan, plan.fabric.links[0].name)
    routes = common_routes(plan.routes, other.routes)
    assert routes is not None
    switches = range(len(plan.fabric.switches))
    for row in range(len(plan.row_switch)):
        for to in switches:
            old, new = (own.routes.path(row, to) for own in (plan, other))
            if old == new:
                assert routes.path(row, to) == old
    kept = routes.tree_channels >= 0
    assert (routes.tree_channels[kept] == other.routes.tree_channels[kept]).all()
    assert not np.array_equal(routes.tree_channels, plan.routes.tree_channels)


def test_plans_of_other_fabrics_or_forms_have_no_common_rules() -> None:
    plan = make_plan(load("torus,4,4"), "dor")
    assert common_rules(plan, make_plan(load("torus,4,4"), "dor")) is not None
    assert common_rules(plan, make_plan(load("torus,4,4"), "dl")) is None
    assert common_rules(plan, make_plan(load("mesh,4,4"), "dor")) is None


def _walk(change: Change, folder: Path) -> None:
    """Walk every rule set, and every mixture of rule sets between two drains."""
    write_steps(change, folder)
    alone = RuleReference(folder / "0")
    served = {pair for pair in alone.pairs() if alone.fates(*pair) == {(pair[1],)}}
    first = 0
    for number, step in enumerate(change.steps, 1):
        for generations in ([number], list(range(first, number + 1))):
            reference = RuleReference(*(folder / str(number) for number in generations))
            for pair in reference.pairs():
                fates = reference.fates(*pair)
                allowed: set[Outcome] = {(pair[1],)}
                if pair not in served:
                    allowed |= {(), (CUT,)}
                assert fates <= allowed, (pair, fates)
            for host in reference.hosts.values():
                for fate in reference.fates(host["name"], "all"):
                    assert len(set(fate)) == len(fate), fate
                    assert set(fate) <= {CUT, *(host["name"] for host in reference.hosts.values())}
            assert not reference.has_cycle(change.before.flow_control)
        if step.await_quiescence:
            first = number
    last = RuleReference(folder / str(len(change.steps)))
    assert all(last.fates(*pair) == {(pair[1],)} for pair in last.pairs())


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(3))
def test_every_mixture_of_a_repair_in_place_is_walked(block: int, tmp_path: Path) -> None:
    walked = 0
    for seed, rng in seeded(range(block * 40, block * 40 + 40)):
        plan = _plan(rng)
        link = rng.choice(plan.fabric.links)
        failures = Failures.from_names(plan.fabric, [link.name])
        if set(parts(usable(plan.fabric, failures), NO_FAILURES)) != {0}:
            continue
        change = _change(plan, link.name)
        assert change.proven
        if change.in_place:
            walked += 1
            _walk(change, tmp_path / str(seed))
    assert walked >= 3


def _plan(rng: random.Random) -> Plan:
    if rng.random() < 0.4:
        return make_plan(load(rng.choice(("ring,5", "torus,3,3", "mesh,3,3", "ring,6"))))
    return make_plan(small_fabric(rng), rng.choice(("updown", "lturn", "dl", "lash")))


GROUPS: tuple[dict[int, list[str]], ...] = (
    {},
    {1: ["h1", "h2"]},
    {1: ["h2", "h3"]},
    {7: ["h1", "h2"]},
    {1: ["h1", "h2"], 2: ["h2", "h3"]},
)


@pytest.mark.thin(1)
@pytest.mark.parametrize("spec", ["ring,4", "torus,4,4", "lsft,3", "torus,3,3,3"])
def test_plans_with_other_groups_have_no_common_rules_but_proven_steps(spec: str) -> None:
    fabric = load(spec)
    for before in GROUPS:
        for after in GROUPS:
            old, new = (make_plan(fabric, multicast=groups) for groups in (before, after))
            assert (common_rules(old, new) is None) == (before != after)
            rules, flow_control = compile_rules(old), old.flow_control
            installed = Installed(fabric, rules, flow_control, multicast=old.multicast, plan=old)
            change = plan_change(installed, new)
            assert change.proven
            assert not any(step.dropped for step in change.steps)
            last = change.steps[-1].rules if change.steps else rules
            assert check(fabric, last, multicast=new.multicast).ok


def test_states_of_other_groups_are_refused() -> None:
    """What the core would look up in one state does not exist in the other."""
    fabric = load("ring,4")
    plain, grouped = make_plan(fabric), make_plan(fabric, multicast=GROUPS[1])
    for one, other in ((plain, grouped), (grouped, plain)):
        with pytest.raises(ValueError, match="different fabrics or groups"):
            state_of_plan(one, [state_of_plan(other)])
