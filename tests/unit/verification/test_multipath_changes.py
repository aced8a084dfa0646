"""Changes from and to plans with multipath are proven over every choice of both."""

from __future__ import annotations

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import make_plan
from knotless.routing.repair import repair
from knotless.topologies import load
from knotless.topologies.failures import Failures, usable
from knotless.verification.changes.change import Installed
from knotless.verification.changes.in_place import common_rules
from knotless.verification.changes.planner import between_plans, plan_change, plan_in_place


@pytest.mark.parametrize(
    ("spec", "engine", "cut", "kind", "tier"),
    [
        ("fattree3,4", "fattree", "s1-s9", "repaired", 1),
        ("fattree2,4", "fattree", "s1-s5", "repaired", 2),
        ("hyperx,S=3x3,hosts=1", "updown", "s1-s2", "replanned", 2),
    ],
)
def test_every_step_of_a_repair_is_safe(
    spec: str, engine: str, cut: str, kind: str, tier: int
) -> None:
    plan = make_plan(load(spec), engine, multipath="ecmp")
    failures = Failures.from_names(plan.fabric, [cut])
    found = repair(plan, failures)
    left, rules = usable(plan.fabric, failures), compile_rules(plan)
    before = Installed(left, rules, plan.flow_control, plan=plan, whole=plan.fabric)
    change = plan_change(before, found.plan)
    assert (found.kind, change.tier) == (kind, tier)
    assert all(step.proof.safe for step in change.steps)
    # A repair in place is proven on single paths, which are not all that packets take here.
    assert common_rules(plan, found.plan) is None
    assert plan_in_place(before, found.plan) is None


@pytest.mark.parametrize(
    ("spec", "engine"), [("fattree2,4", "fattree"), ("hyperx,S=3x3,hosts=1", "updown")]
)
def test_fabrics_change_between_one_path_and_several_and_between_seeds(
    spec: str, engine: str
) -> None:
    one = make_plan(load(spec), engine)
    several = make_plan(load(spec), engine, multipath="ecmp")
    other = make_plan(load(spec), engine, multipath="ecmp", hash_seed=9)
    for old, new in ((one, several), (several, one), (several, other)):
        change = between_plans(old, new)
        assert change.tier in (1, 2)
        assert all(step.proof.safe for step in change.steps)
    assert between_plans(several, several).tier == 0
