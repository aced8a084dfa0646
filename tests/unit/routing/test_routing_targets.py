"""Loads, virtual channels and rules on the fabrics on which other routers were measured."""

from __future__ import annotations

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan


@pytest.mark.parametrize(
    ("spec", "bound"),
    [
        ("torus,4,4,hosts=4", 128),
        ("torus,8,8,hosts=4", 1024),
        ("torus,16,16,hosts=4", 8192),
        ("torus,8,8,8", 512),
    ],
)
def test_dimension_order_spread_over_ties_reaches_the_bound(spec: str, bound: int) -> None:
    plan = make_plan(load(spec), "dor")
    assert CheckedPlan(plan).loads.tolist() == [bound] * len(plan.channels)
    assert plan.vcs == 2
    assert CheckedPlan(plan).cycle == []


@pytest.mark.parametrize(
    ("spec", "engine", "vcs", "load_"),
    [
        ("torus,8,8,hosts=4", "lash", 2, 1100),
        ("torus,8,8,hosts=4", "dfsssp", 2, 1100),
        pytest.param("torus,16,16,hosts=4", "dl", 2, 9216, marks=pytest.mark.long),
        ("random,128,degree=4,hosts=4", "lash", 5, 2300),
        ("random,128,degree=4,hosts=4", "dl", 3, 2300),
        ("random,128,degree=4,hosts=4", "dfsssp", 8, 2300),
        pytest.param("torus,8,8,8", "dl", 2, 640, marks=pytest.mark.long),
    ],
)
def test_minimal_within_few_virtual_channels(spec: str, engine: str, vcs: int, load_: int) -> None:
    """OpenSM's lash and dfsssp fail here with 8, or load more; see docs/performance.md."""
    plan = make_plan(load(spec), engine)
    assert plan.vcs <= vcs
    assert CheckedPlan(plan).loads.max() <= load_
    assert CheckedPlan(plan).is_minimal
    assert CheckedPlan(plan).cycle == []


@pytest.mark.parametrize("spec", ["lsft,3", "lsft,4", "fattree2,6", "fattree,2,4,2", "fattree3,4"])
def test_updown_goes_by_tiers_on_trees(spec: str) -> None:
    fabric = load(spec)
    plan = make_plan(fabric, "updown")
    assert CheckedPlan(plan).is_minimal
    assert plan.vcs == 1
    assert CheckedPlan(plan).loads.max() <= CheckedPlan(make_plan(fabric, "fattree")).loads.max()


def test_updown_with_a_leaf_as_root_has_longer_paths() -> None:
    assert not CheckedPlan(make_plan(load("lsft,3"), "updown", root="s1")).is_minimal


@pytest.mark.parametrize(
    ("spec", "engine", "most"), [("lsft,17", "lsft", 400), ("torus,16,16,hosts=4", "dor", 100)]
)
def test_rules_of_the_largest_switch(spec: str, engine: str, most: int) -> None:
    rules = compile_rules(make_plan(load(spec), engine))
    assert max(len(of_switch.rules) for of_switch in rules.values()) < most
