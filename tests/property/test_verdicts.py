"""Verdicts against the simulator: safe plans never deadlock, known rings do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from knotless.base.errors import PlanError
from knotless.forwarding.from_plan import state_of_plan
from knotless.routing.engine import engines
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import Buffers, Load, Result, Scenario, simulate
from knotless.topologies import load
from knotless.verification.check import check, verdict_of
from knotless.verification.checked_plan import CheckedPlan
from tests.property.test_every_engine import PROMISES

LINKS = "rate=1000,delay=1"
BY_CREDITS = ("credits", "bubble")
PAUSING = ("pause", "pfc", "switch", *BY_CREDITS)
FABRICS = (
    *("mesh,3,3,hosts=2", "torus,4,3", "torus,5,5", "ring,4", "ring,5,hosts=2", "flat,4"),
    *("mtree,2,3", "fattree,2,2,2", "fattree2,4", "fattree3,4", "clos,2,hosts=2", "lsft,2"),
    *("irregular-a", "irregular-b", "random,9,degree=4,hosts=2,seed=3"),
    *("dragonfly,a=2,h=1,p=2", "dragonfly,a=3,h=1,p=1", "dragonfly,a=2,h=2,p=1,g=3"),
    *("dragonflyplus,l=2,s=2,h=1,p=2", "dragonflyplus,l=1,s=2,h=2,p=2,g=4"),
    "dragonflyplus,l=1,s=1,h=2,p=2",
    *("hyperx,S=3x3,hosts=2", "hyperx,S=2x2x2,K=1x2x1", "fullmesh,5,hosts=2", "slimfly,3,hosts=1"),
    *("polarfly,2,hosts=2", "rail,4,2,2,unit=2", "clos3,4,over=3,hosts=1"),
)
"""One fabric of each family at least, so small that 500 of its packets take milliseconds."""
LARGE = {"cube": ("cube,4x4x4", "cube,4x4x4,hosts=2", "cube,4x4x8,twist")}
"""The fabrics of an engine whose smallest fabric is larger than those."""
TIGHT = Buffers(xoff=3_100, xon=1_550, credit=2 * 1_536)
"""Two packets: senders are paused all the time, and every cycle that can close, closes."""
SELECTIVE_ENGINES = {"ugal", *(one.engine for one in PROMISES if one.needs != "any")}
"""The engines that cannot route every fabric."""
DURATION_US = 2_000
GROUP = 1
ONE_WAY = {"vcs": 1, "select": "low-port"}


def overloaded(plan: Plan, flow_control: str, pattern: str, seed: int) -> Result:
    """Return the result if hosts send at full line rate."""
    everybody = tuple((host.name, GROUP) for host in plan.fabric.hosts)
    return simulate(
        Scenario(
            plan,
            pattern,
            Load("poisson") if pattern == "uniform" else Load("saturate"),
            senders=everybody if pattern == "broadcast" else (),
            flow_control=flow_control,
            buffers=TIGHT,
            duration_us=DURATION_US,
            seed=seed,
        )
    )


def plans(engine: str) -> Iterator[Plan]:
    """Yield the plans of all fabrics that the engine can route."""
    for spec in LARGE.get(engine, FABRICS):
        for select in ("spread", "low-port"):
            request = PlanRequest.from_options(
                engine=engine, select=select, multicast={GROUP: ["all"]}
            )
            try:
                yield make_plan(load(f"{spec},{LINKS}"), request)
            except PlanError:
                assert engine in SELECTIVE_ENGINES, (engine, spec)


@pytest.mark.parametrize("engine", engines())
def test_plans_verified_as_safe_never_deadlock(engine: str) -> None:
    runs = 0
    for number, plan in enumerate(plans(engine)):
        state = state_of_plan(plan)
        for flow_control in PAUSING:
            if plan.multipath == "adaptive" and flow_control in BY_CREDITS:
                continue  # refused: frames cannot wait for several credits at once
            if not verdict_of(state, flow_control).safe:
                continue
            for pattern in ("uniform", f"shift:{len(plan.fabric.hosts) // 2}", "broadcast"):
                result = overloaded(plan, flow_control, pattern, seed=number)
                assert result.report.deadlock is None, (plan.fabric.name, flow_control, pattern)
                assert result.report.flow_packets.sum() > 0
                runs += 1
    assert runs >= 18


@pytest.mark.parametrize(
    ("spec", "engine", "choices", "flow_control", "pattern"),
    [
        ("ring,4", "dor", ONE_WAY, "pause", "shift:2"),
        ("ring,4", "dor", ONE_WAY, "pfc", "shift:2"),
        ("ring,4", "dor", ONE_WAY, "switch", "shift:2"),
        ("ring,4", "dor", {"vcs": 2, "select": "low-port"}, "pause", "shift:2"),
        ("ring,4", "minimal", {"select": "low-port"}, "pause", "shift:2"),
        ("ring,5", "minimal", {}, "pfc", "shift:2"),
        ("torus,5,5", "dor", {"vcs": 1}, "pause", "shift:2"),
        ("torus,5,5", "dor", {"vcs": 1}, "pfc", "shift:2"),
        ("ring,4", "dor", ONE_WAY, "credits", "shift:2"),
        ("ring,5", "minimal", {}, "credits", "shift:2"),
        ("torus,5,5", "dor", {"vcs": 1}, "credits", "shift:2"),
        ("torus,5,5", "dor", {}, "pause", "shift:2"),
        ("torus,5,5", "dor", {}, "switch", "shift:2"),
    ],
)
def test_rings_of_channels_deadlock_as_they_were_called(
    spec: str, engine: str, choices: dict[str, object], flow_control: str, pattern: str
) -> None:
    plan = make_plan(load(f"{spec},{LINKS}"), engine, **choices)
    checked = CheckedPlan(plan)
    cycle = verdict_of(checked.state, flow_control).cycle
    assert cycle
    assert check(plan.fabric, checked.rules, flow_control=flow_control).cycle == cycle
    assert overloaded(plan, flow_control, pattern, seed=1).knot


@pytest.mark.parametrize("flow_control", ["none", "host"])
def test_without_pause_between_switches_nothing_deadlocks(flow_control: str) -> None:
    plan = make_plan(load(f"ring,4,{LINKS}"), "dor", **ONE_WAY)
    assert verdict_of(state_of_plan(plan), flow_control).cycle == []
    assert not overloaded(plan, flow_control, "shift:2", seed=1).knot


def test_where_dimension_order_needs_two_virtual_channels_auto_means_pfc() -> None:
    assert make_plan(load("torus,4,4"), "dor").flow_control == "pause"
    plan = make_plan(load("torus,5,5"), "dor")
    assert (plan.flow_control, CheckedPlan(plan).cycle) == ("pfc", [])
    assert CheckedPlan(plan).verdict.text == "cannot deadlock under PFC"
