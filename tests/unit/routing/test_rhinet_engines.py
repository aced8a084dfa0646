"""Statements of Koibuchi et al. on the engines on RHiNET-2's four topologies.

The irregular topologies are ours, with the properties that the paper states.
"""

from __future__ import annotations

import pytest

from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan

FOUR = ["mesh,4,4,hosts=4", "torus,4,4,hosts=4", "irregular-a", "irregular-b"]


@pytest.mark.parametrize("spec", FOUR)
def test_two_descending_layers_are_minimal(spec: str) -> None:
    plan = make_plan(load(spec), "dl", vcs=2)
    assert CheckedPlan(plan).summary()["minimal"] is True
    assert plan.vcs == 2


@pytest.mark.parametrize(("spec", "vcs"), zip(FOUR, [6, 4, 6, 6], strict=True))
def test_buffer_pools_need_the_diameter(spec: str, vcs: int) -> None:
    plan = make_plan(load(spec), "sbp")
    assert plan.vcs == vcs
    assert make_plan(load(spec), "sbp-reduced").vcs <= vcs


@pytest.mark.parametrize("spec", FOUR)
def test_prefix_is_minimal_nowhere(spec: str) -> None:
    assert CheckedPlan(make_plan(load(spec), "prefix")).summary()["minimal"] is False


@pytest.mark.parametrize(("spec", "minimal"), zip(FOUR, [True, True, False, False], strict=True))
def test_updown_is_minimal_on_grids_only(spec: str, minimal: bool) -> None:
    assert CheckedPlan(make_plan(load(spec), "updown")).summary()["minimal"] is minimal


@pytest.mark.parametrize("spec", FOUR)
def test_paths_and_loads_are_in_the_order_of_the_engines(spec: str) -> None:
    """Mean: descending layers <= L-turn <= up*/down* <= prefix; loads of the last three too."""
    plans = [
        make_plan(load(spec), "dl", vcs=2),
        make_plan(load(spec), "lturn"),
        make_plan(load(spec), "updown"),
        make_plan(load(spec), "prefix"),
    ]
    means = [float(str(CheckedPlan(plan).summary()["mean_switches"])) for plan in plans]
    assert means == sorted(means)
    loads = [int(CheckedPlan(plan).loads.max()) for plan in plans[1:]]
    assert loads == sorted(loads)
