"""The simulator shows what theory says: line rate, fair shares, latency, deadlock, loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from routing import check, compile_rules, make_plan
from simulation import Load, Result, Scenario, simulate
from topologies import load

PACKET_BYTES = 1500
HOST_WIRE_BYTES = PACKET_BYTES + 18 + 20
WIRE_BYTES = HOST_WIRE_BYTES + 4


def run(spec: str, engine: str, pattern: str, load_: Load | None = None, **more: Any) -> Result:
    routing = {key: more.pop(key) for key in ("vcs", "select") if key in more}
    plan = make_plan(load(spec), engine, **routing)
    return simulate(Scenario(plan, pattern, load_ or Load(), **more))


def test_a_flow_alone_gets_the_line_rate() -> None:
    found = run("flat,2,rate=1000,delay=1", "updown", "shift:1", duration_us=100_000)
    # Both links of the path carry untagged frames.
    theory_mbps = 1000 * PACKET_BYTES / HOST_WIRE_BYTES
    assert found.flows_mbps == pytest.approx([theory_mbps] * 2, rel=1e-3)
    assert found.lost_frames == 0
    assert found.report.deadlock is None


@pytest.mark.parametrize("flow_control", ["all", "pfc"])
def test_cyclic_routes_freeze_as_the_check_predicts(flow_control: str) -> None:
    plan = make_plan(load("ring,4"), "dor", vcs=1, select="low-port")
    found = simulate(Scenario(plan, "shift:2", flow_control=flow_control, duration_us=5e6))
    kind = "pfc" if flow_control == "pfc" else "pause"
    predicted = check(plan.fabric, compile_rules(plan), flow_control=kind).cycle
    assert sorted(found.knot) == sorted(predicted)
    assert found.lost_frames == 0
    # Who waits in the knot: each channel of the ring is wanted by two flows.
    assert all(len(flows) == 2 for flows in found.knot_frames().values())
    later = simulate(Scenario(plan, "shift:2", flow_control=flow_control, duration_us=10e6))
    assert later.report.flow_packets.sum() == found.report.flow_packets.sum()


def test_acyclic_routes_share_fairly() -> None:
    found = run("ring,4", "prefix", "shift:2", duration_us=30e6)
    assert found.flows_mbps == pytest.approx([5 * PACKET_BYTES / WIRE_BYTES] * 4, rel=0.01)
    assert found.report.deadlock is None
    assert found.lost_frames == 0


def test_without_flow_control_frames_are_lost_and_nothing_freezes() -> None:
    found = run(
        "ring,4", "dor", "shift:2", vcs=1, select="low-port", flow_control="none", duration_us=10e6
    )
    assert found.report.deadlock is None
    assert found.summary()["drops"]["queue"] == found.lost_frames > 1000


def test_one_seed_gives_one_result() -> None:
    plan = make_plan(load("torus,4,4,rate=1000,delay=1"), "dor")
    scenario = Scenario(plan, "uniform", Load("poisson", 0.4), duration_us=2000)
    first, again = simulate(scenario), simulate(scenario)
    assert first.result_sha256 == again.result_sha256
    assert first.result_sha256 != simulate(replace(scenario, seed=2)).result_sha256


@pytest.mark.parametrize("hosts", [3, 4])
def test_flows_into_one_host_share_its_line(hosts: int, tmp_path: Any) -> None:
    lines = ["time_us,source,destination,bytes"]
    lines += [f"0,h{h},h1,15000000" for h in range(2, hosts + 1)]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(lines))
    plan = make_plan(load(f"flat,{hosts},rate=1000,delay=1"), "updown")
    found = simulate(Scenario(plan, "trace", trace=str(path), duration_us=50_000))
    share_mbps = 1000 * PACKET_BYTES / HOST_WIRE_BYTES / (hosts - 1)
    assert found.flows_mbps[1:] == pytest.approx([share_mbps] * (hosts - 1), rel=0.01)
