"""Repaired plans of every engine, on generated fabrics with failed links and switches."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knotless.base.errors import PlanError
from knotless.routing.plan import make_plan
from knotless.routing.vlans.assignment import TAGGINGS
from knotless.topologies import Fabric
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
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_repaired_plans_keep_the_promises_of_the_intact_plan(
    promise: Promise, data: st.DataObject
) -> None:
    repairs_hold(promise, data, SINGLE_LINKS)
