"""Bubbles in the simulator: what freezes without them goes on, and each rule is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.routing.plan import Plan, make_plan
from knotless.simulation import Buffers, Load, Scenario, simulate
from knotless.simulation.freezing import find_freeze
from knotless.simulation.verdict import cautions
from knotless.topologies import load
from knotless.traffic.endpoint_presets import endpoints_named
from knotless.verification.bubbles import Bubbles
from knotless.verification.checked_plan import CheckedPlan

FABRICS = [*(f"ring,{switches}" for switches in range(4, 9)), "torus,4,4", "torus,5,5"]
SMALL = Buffers(credit=2 * 1536)
"""Room for two frames, where deadlocks come soon."""


def plan_of(spec: str) -> Plan:
    return make_plan(load(spec), "dor", vcs=1, select="low-port")


@pytest.mark.parametrize("spec", FABRICS)
def test_what_freezes_under_credits_goes_on_with_bubbles(spec: str) -> None:
    scenario = Scenario(
        plan_of(spec), "shift:2", flow_control="credits", buffers=SMALL, duration_us=2e5
    )
    assert simulate(scenario).knot
    result = simulate(scenario.changed(flow_control="bubble"))
    assert (result.knot, result.lost_frames) == ([], 0)
    assert result.report.flow_packets.min() > 20


@pytest.mark.thin(7)
@pytest.mark.parametrize("spec", FABRICS)
def test_no_seed_freezes_a_fabric_with_bubbles(spec: str) -> None:
    plan, deadlocks = plan_of(spec), 0
    for seed in range(1, 21):
        scenario = Scenario(
            plan,
            "uniform",
            Load("poisson", 1.0, message_bytes=400 * seed),
            flow_control="bubble",
            buffers=Buffers(credit=(2 + seed % 2) * 1536),
            duration_us=4e5,
            seed=seed,
        )
        result = simulate(scenario)
        assert result.knot == [], seed
        assert result.report.flow_packets.sum() > 100
        deadlocks += bool(simulate(scenario.changed(flow_control="credits")).knot)
    assert deadlocks or spec in ("ring,4", "ring,5", "torus,5,5")


def test_no_traffic_that_freezes_a_ring_with_bubbles_is_found() -> None:
    state = CheckedPlan(plan_of("ring,4")).state
    assert find_freeze(state, FlowControl.CREDITS).freezes
    found = find_freeze(state, FlowControl.BUBBLE, searches=5)
    assert (found.freezes, found.tried) == (False, 5)
    assert "leave room for another" in found.reason


@pytest.mark.parametrize(
    ("changes", "caution"),
    [
        ({}, None),
        ({"bubbles": Bubbles(entry_units=1)}, "it needs credit for two longest frames"),
        ({"bubbles": Bubbles(apart=False)}, "they must wait apart"),
        (
            {"buffers": Buffers(credit=2 * 1536, credit_unit=64)},
            "the unit must be the longest",
        ),
    ],
)
def test_each_rule_is_needed(changes: dict[str, object], caution: str | None) -> None:
    scenario = Scenario(
        plan_of("ring,4"), "shift:2", flow_control="bubble", buffers=SMALL, duration_us=2e6
    ).changed(**changes)
    assert bool(simulate(scenario).knot) == (caution is not None)
    said = [line for line in cautions(scenario) if line.startswith("bubbles: ")]
    assert [str(caution) in line for line in said] == ([] if caution is None else [True])


def test_frames_that_enter_starve_while_the_ring_is_full(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time_us,source,destination,bytes\n0,h1,h4,9000000\n100000,h2,h4,9000000\n")
    scenario = Scenario(
        plan_of("ring,8"), "trace", trace=str(trace), flow_control="credits", duration_us=2e6
    )
    fair, first = (
        simulate(scenario.changed(flow_control=name)).report.flow_packets.tolist()[:2]
        for name in ("credits", "bubble")
    )
    assert fair[1] > 0.4 * sum(fair)
    assert first[1] < 0.01 * sum(first)


def test_several_cores_give_the_same_result() -> None:
    scenario = Scenario(
        plan_of("torus,4,4"),
        "tornado",
        flow_control="bubble",
        buffers=SMALL,
        duration_us=100_000.0,
    )
    one, two = (simulate(scenario, cores=cores) for cores in (1, 2))
    assert (two.cores, two.one_core_because) == (2, None)
    assert one.result_sha256 == two.result_sha256


def test_message_classes_of_hosts_are_refused() -> None:
    with pytest.raises(KnotlessError, match="message classes of hosts do not go together"):
        Scenario(
            plan_of("ring,4"),
            "shift:1",
            flow_control="bubble",
            messages=endpoints_named("request-reply"),
        )
