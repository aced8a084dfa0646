"""Repaired plans of every engine, on generated fabrics with failed links and switches."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import FabricError, PlanError
from knotless.routing.plan import make_plan
from knotless.routing.vlans.assignment import TAGGINGS
from knotless.topologies import Fabric
from knotless.topologies.failures import Failures
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete
from knotless.verification.checked_plan import CheckedPlan
from tests.property.test_every_engine import FABRICS, PROMISES, Promise
from tests.support.repairs import Outcome, check_repair, sampled, single_links

SINGLE_LINKS = 5
"""Links of a fabric that fail in turn; ``python -m tests.prove_repairs`` cuts each."""


def drawn_plan(promise: Promise, data: st.DataObject) -> CheckedPlan | None:
    """Draw a fabric and make its plan; None if the engine refuses."""
    fabric: Fabric = data.draw(FABRICS[promise.needs])
    groups = {1: ["all"]} if data.draw(st.booleans()) else {}
    try:
        return CheckedPlan(
            make_plan(
                fabric,
                promise.engine,
                select=data.draw(st.sampled_from(["spread", "low-port"])),
                tagging=data.draw(st.sampled_from(TAGGINGS)),
                vlans=data.draw(st.sampled_from(["default", "default", "tree"])),
                flow_control=data.draw(st.sampled_from(["auto", "auto", "pause", "pfc"])),
                multicast=groups,
            )
        )
    except PlanError:
        return None


def repairs_hold(promise: Promise, data: st.DataObject, links: int | None) -> list[Outcome]:
    """Draw a plan and check its repairs; ``links`` limits the single links that fail."""
    intact = drawn_plan(promise, data)
    if intact is None:
        return []
    fabric = intact.plan.fabric
    rng = random.Random(data.draw(st.integers(0, 1 << 32)))  # noqa: S311 - no cryptography
    failures = list(single_links(fabric))
    rng.shuffle(failures)
    failures = [*failures[:links], *sampled(fabric, rng, 2)]
    return [check_repair(intact, failed) for failed in failures]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.engine)
@pytest.mark.examples(0.08)
@given(data=st.data())
def test_repaired_plans_keep_the_promises_of_the_intact_plan(
    promise: Promise, data: st.DataObject
) -> None:
    repairs_hold(promise, data, SINGLE_LINKS)


def uneven_tree(rng: random.Random) -> Fabric | None:
    """Return two or three levels with missing and parallel cables, and 0 to 3 hosts on a leaf.

    None if it is not connected.
    """
    levels, count = list[range](), 0
    for size in (rng.randint(2, 5) for _ in range(rng.randint(2, 3))):
        levels.append(range(count, count + size))
        count += size
    links = [
        PartialLink(a, b)
        for low, high in pairwise(levels)
        for a in low
        for b in high
        for _ in range(rng.choice((0, 1, 1, 1, 2)))
    ]
    homes = [leaf for leaf in levels[0] for _ in range(rng.randint(0, 3))]
    hosts = [PartialHost(f"h{number}", home) for number, home in enumerate(homes, 1)]
    switches = [PartialSwitch(f"s{number}") for number in range(1, count + 1)]
    try:
        return complete("uneven", switches, hosts, links)
    except FabricError:
        return None


@pytest.mark.thin(1)
@pytest.mark.parametrize("engine", ["fattree", "prefix", "updown", "smodk"])
def test_repaired_plans_of_uneven_trees_send_nothing_to_another_part(engine: str) -> None:
    """Switches have different numbers of hosts: some tables of a VLAN have paths, others none."""
    apart = 0
    for seed in range(400):
        rng = random.Random(seed)  # noqa: S311
        fabric = uneven_tree(rng)
        if fabric is None:
            continue
        share = rng.choice((0.3, 0.5, 0.7))
        cut = [link.name for link in fabric.links if rng.random() < share]
        try:
            plan = make_plan(fabric, engine, select=rng.choice(["spread", "low-port"]))
        except PlanError:
            continue
        outcome = check_repair(CheckedPlan(plan), Failures.from_names(fabric, cut))
        apart += outcome.repair.summary()["unreachable"] != 0
    assert apart > 20
