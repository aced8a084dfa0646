"""Changes from one fabric to another: hosts, links and switches come and go away."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import FabricError, PlanError
from knotless.base.flow_control import FlowControl
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.planning import (
    FabricUnion,
    Goal,
    UpdatePlan,
    UpdateTask,
    plan_update,
)
from knotless.controller.updates.state import UpdateState
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.topologies import load
from knotless.topologies.fabric import Fabric, Host, Link
from knotless.topologies.failures import NO_FAILURES, Failures
from knotless.topologies.union import parts_of
from knotless.verification.changes.change import EVERYTHING
from knotless.verification.changes.record import write_steps
from tests.support.random_fabrics import seeded, two_fabrics
from tests.support.reference import LOOP
from tests.support.reference_rules import RuleReference

CASES = 240
BLOCKS = 6
ENGINES = ("updown", "updown", "lturn", "dl", "lash", "prefix")


def desired_state(fabric: Fabric, rng: random.Random) -> DesiredState:
    engine = rng.choice(ENGINES)
    root = rng.choice(fabric.switches).name if engine == "updown" else None
    return DesiredState.compute(Config(engine=engine, root=root), fabric)


def update_between(
    old: DesiredState, new: DesiredState, failed: tuple[str, ...] = ()
) -> UpdatePlan:
    """Return the steps from the rules of one desired state to those of another."""
    existing = FabricUnion(old.fabric).extended(new.fabric)
    existing = existing.failed(set(failed))
    goal = Goal(new, existing.failures.within(new.fabric))
    flow_control = (
        FlowControl.PFC
        if FlowControl.PFC in (old.plan.flow_control, new.plan.flow_control)
        else FlowControl.PAUSE
    )
    nothing = {switch.name: SwitchRules(()) for switch in existing.fabric.switches}
    held = Generation({**nothing, **old.rules})
    task = UpdateTask(goal, held, (), flow_control, old.routed, existing)
    return plan_update(replace(task, reported=existing.failures))


def walk(update: UpdatePlan, staying: frozenset[str], folder: Path) -> None:
    """Walk every rule set, and every mixture of rule sets between two drains."""
    change, first = update.change, 0
    write_steps(change, folder)
    for number, step in enumerate(change.steps, 1):
        for generations in ([number], list(range(first, number + 1))):
            reference = RuleReference(*(folder / str(rule_set) for rule_set in generations))
            dropped = {
                pair
                for rule_set in generations
                if rule_set
                for pair in change.steps[rule_set - 1].dropped
            }
            for pair in reference.pairs():
                fates = reference.fates(*pair)
                assert not any(LOOP in fate for fate in fates), (pair, fates)
                if staying.issuperset(pair):
                    is_dropped = pair in dropped or (pair[0], EVERYTHING) in dropped
                    assert fates - {(pair[1],)} <= ({()} if is_dropped else set()), (pair, fates)
            for host in staying:
                fates = reference.fates(host, "all")
                copies = [Counter(fate) for fate in fates]
                assert not any(rule_set[LOOP] for rule_set in copies), host
                is_dropped = (host, "all") in dropped or (host, EVERYTHING) in dropped
                others = staying - {host}
                assert is_dropped or all(
                    rule_set[name] == 1 for rule_set in copies for name in others
                ), host
            assert not reference.has_cycle(change.before.flow_control)
        if step.await_quiescence:
            first = number


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_intermediate_rule_set_is_walked(block: int, tmp_path: Path) -> None:
    tiers = Counter[int]()
    for seed, rng in seeded(range(block, CASES, BLOCKS)):
        fabrics = two_fabrics(rng, most_switches=6, most_hosts=5)
        old, new = (desired_state(fabric, rng) for fabric in fabrics)
        update = update_between(old, new)
        change = update.change
        assert change.proven
        staying = frozenset(host.name for host in {*old.fabric.hosts} & {*new.fabric.hosts})
        walk(update, staying, tmp_path / str(seed))
        if change.steps:
            last = change.steps[-1].rules
            names = {switch.name for switch in new.fabric.switches}
            assert not any(rules.rules for name, rules in last.items() if name not in names)
        tiers[change.tier] += 1
        if {*parts_of(old.fabric)} != {*parts_of(new.fabric)}:
            assert change.tier != 1, f"seed {seed}: rules of two fabrics are not mixed"
    assert tiers[2] > 4 * tiers[3]


RING = load("ring,4")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"hosts": (replace(RING.hosts[0], port=7), *RING.hosts[1:])},
            "the name h1 belongs to host h1 at s1:1 now, and to host h1 at s1:7 in the new",
        ),
        (
            {"switches": (replace(RING.switches[0], dpid=9), *RING.switches[1:])},
            r"the name s1 belongs to switch s1 \(dpid 1\) now, and to switch s1 \(dpid 9\)",
        ),
        (
            {"links": (replace(RING.links[0], b="s3", b_port=9), *RING.links[1:])},
            "port 2 of s1 belongs to link s1:2-s2:3 now, and to link s1:2-s3:9 in the new",
        ),
        (
            {"hosts": (replace(RING.hosts[0], name="new"), *RING.hosts[1:])},
            "MAC 02:00:00:00:01:01 belongs to host h1 at s1:1 now, and to host new at s1:1",
        ),
        ({"hosts": (Host("x", "02:00:00:00:09:09", "10.9.9.9", "s1", 9),)}, "no host stays"),
    ],
)
def test_what_cannot_exist_together_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(FabricError, match=words) as refused:
        FabricUnion(RING).extended(replace(RING, grid=None, **changed))
    assert "\n" not in str(refused.value)


def test_a_link_is_the_same_in_either_direction_and_at_another_rate() -> None:
    first = RING.links[0]
    turned = Link(first.b, first.b_port, first.a, first.a_port, rate_mbps=99.0)
    new = replace(RING, links=(turned, *RING.links[1:]))
    before = FabricUnion(RING).failed({first.name})
    extended = before.extended(new)
    assert extended == FabricUnion(new, Failures((turned.name,)), None)


def test_hosts_are_not_separated_until_a_new_link_works() -> None:
    """A path is cut in the middle, and its ends are connected instead."""
    old = replace(RING, links=RING.links[:3], grid=None)
    new = replace(RING, links=(RING.links[0], *RING.links[2:]), grid=None)
    config = Config(engine="updown")
    first, then = (DesiredState.compute(config, fabric) for fabric in (old, new))
    with pytest.raises(PlanError, match=r"could not reach each other before this works: s4:2-s1:3"):
        update_between(first, then, failed=(RING.links[3].name,))
    assert update_between(first, then).change.proven
    # What is down already holds up nothing.
    assert update_between(
        first, then, failed=(RING.links[1].name, RING.links[3].name)
    ).change.proven


def test_a_link_that_works_again_is_not_removed_while_those_beside_it_count_as_failed() -> None:
    """Two links of a ring were down for a moment: until routes have avoided both, neither is used.

    If one is removed meanwhile, the other alone would connect its hosts.
    """
    config = Config(engine="updown")
    whole = DesiredState.compute(config, RING)
    part = DesiredState.compute(config, replace(RING, links=RING.links[1:], grid=None))
    update = UpdateState(whole)
    for switch in RING.switches:
        update.confirm(switch.name)
    down = Failures.from_names(RING, [RING.links[0].name, RING.links[2].name])
    update.aim(whole, down)
    reload = update.task_to(part)
    assert reload is not None
    assert plan_update(reload).change.proven, "both are down: nothing more is lost"
    update.aim(whole, NO_FAILURES)
    reload = update.task_to(part)
    assert reload is not None
    assert {*reload.failures.names} == {*down.names}
    with pytest.raises(PlanError, match=f"before this works: {RING.links[2].name}"):
        plan_update(reload)
