"""The change experiment in the simulator: naive changes deadlock, proven steps never do."""

from __future__ import annotations

from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.reader import Generation, state_of_rules, state_to_replay
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Scenario, SimulationError, simulate
from knotless.simulation.rule_changes import RuleChanges
from knotless.topologies import load
from knotless.verification.changes.proof import ProofContext
from knotless.verification.check import verdict_of
from knotless_experiments.framework.experiment import EMULATION, SIMULATION, Common, ExperimentError
from knotless_experiments.studies import change as study
from knotless_experiments.studies.change import presentation
from knotless_experiments.studies.change.cases import (
    NAIVE,
    PROVEN,
    SWAPS,
    Case,
    naive_rules,
    naive_verdict,
)
from knotless_experiments.studies.change.cases import cases as cases_of
from knotless_experiments.studies.change.simulated import simulated

RUNS = 6


def run(case: Case, seed: int) -> dict[str, Any]:
    return simulated(case, duration_s=1.0, spread_s=0.2, seed=seed)[0]


@pytest.mark.parametrize("swap", [swap.name for swap in SWAPS])
def test_both_plans_are_safe_and_their_mixture_is_not(swap: str) -> None:
    case = Case(swap, FlowControl.PAUSE, NAIVE)
    for rules in naive_rules(*case.key):
        assert verdict_of(state_of_rules(case.routed.fabric, rules), "pause").acyclic
    assert naive_verdict(*case.key).outcome.cycle


def test_naive_changes_deadlock_where_the_check_says_and_proven_ones_drop_nothing() -> None:
    runs = {
        way: [run(Case("ring-4", FlowControl.PAUSE, way), seed) for seed in range(RUNS)]
        for way in (NAIVE, PROVEN)
    }
    naive, proven = runs[NAIVE], runs[PROVEN]
    frozen = [row for row in naive if row["deadlock"]]
    assert 0 < len(frozen) < RUNS
    both = [
        Generation(rules) for rules in naive_rules(*Case("ring-4", FlowControl.PAUSE, NAIVE).key)
    ]
    mixed = ProofContext(load("ring,4,rate=10"), FlowControl.PAUSE).judge(both)
    waits = {tuple(edge) for edge in mixed.dependencies[:, :2].tolist()}
    assert waits
    for row in frozen:
        assert len(row["cycle"]) == 4
        assert row["deadlock_after_s"] > 0
    for row in proven:
        assert (row["deadlock"], row["lost_frames"], row["valid"]) == (False, 0, True)
        assert (row["tier"], row["predicted_cycle"]) == (2, [])
        assert row["stopped_frames"] == 0
    for row in (*naive, *proven):
        assert row["delivered_frames"] > 0
        assert row["lost_frames"] == 0


def test_what_a_change_drops_is_said_before_and_measured() -> None:
    rows = [run(Case("ring-6", FlowControl.PAUSE, PROVEN), seed) for seed in range(3)]
    for row in rows:
        assert (row["tier"], row["deadlock"], row["lost_frames"]) == (3, False, 0)
        assert (row["valid"], row["dropped_pairs"]) == (True, 11)
        assert 0 < row["dropped_s"] < row["change_s"]
        assert row["estimated_drop_s"] > 0
        assert row["stopped_frames"] > 0
    (finding,) = presentation.sentences(rows)
    assert "were dropped at their first switch, none elsewhere; said before: 11 pairs" in finding
    nothing = run(Case("ring-4", FlowControl.PAUSE, PROVEN), 1)
    assert (nothing["dropped_pairs"], nothing["estimated_drop_s"], nothing["dropped_s"]) == (
        0,
        0,
        0,
    )


def test_planes_need_no_stop_under_pfc() -> None:
    for seed in range(3):
        row = run(Case("ring-4", FlowControl.PFC, PROVEN), seed)
        assert (row["tier"], row["deadlock"], row["valid"]) == (2, False, True)
        assert (row["stopped_frames"], row["lost_frames"]) == (0, 0)


def test_a_seed_gives_one_result() -> None:
    case = Case("ring-4", FlowControl.PAUSE, NAIVE)
    assert run(case, 3) == run(case, 3)
    assert run(case, 3)["order"] != run(case, 4)["order"]


def test_a_simulation_of_one_generation_is_the_simulation_of_its_rules() -> None:
    fabric = load("torus,3,3")
    plans = [make_plan(fabric, "updown"), make_plan(fabric, "dor")]
    from knotless.forwarding.openflow.compiler import compile_rules

    rules = [compile_rules(plan) for plan in plans]
    both = state_to_replay(fabric, [Generation(generation_rules) for generation_rules in rules])
    for generation, generation_rules in enumerate(rules):
        about = Scenario(
            plans[0],
            "tornado",
            Load("saturate", message_bytes=1000),
            flow_control="pause",
            duration_us=50_000,
            seed=5,
            state=state_of_rules(fabric, generation_rules),
        )

        changing = RuleChanges(about.changed(state=both))
        for switch in fabric.switch_index:
            changing.hold(switch, generation)
        for at_us in (10_000, 10_001, 50_000):
            changing.run_to(at_us)
        result, expected = changing.result(), simulate(about)
        assert result.report.flow_packets.tolist() == expected.report.flow_packets.tolist()
        assert (
            result.report.channel_rx_frames.tolist() == expected.report.channel_rx_frames.tolist()
        )
        queued, arrived = changing.passed()
        assert sum(arrived.values()) > 0
        assert all(arrived[key] <= count for key, count in queued.items())
    with pytest.raises(SimulationError, match="there are 9 switches and 2 generations"):
        changing.hold("s1", 2)


def test_cases_and_mistakes() -> None:
    runs = cases_of(Common(on=SIMULATION, repeats=3), {})
    assert [(c.flow_control, c.way, c.repeat) for c in runs[:4]] == [
        ("pause", NAIVE, 1),
        ("pause", NAIVE, 2),
        ("pause", NAIVE, 3),
        ("pause", PROVEN, 1),
    ]
    assert {c.flow_control for c in runs} == {"pause", "pfc"}
    assert {c.flow_control for c in cases_of(Common(on=EMULATION), {})} == {"pause"}
    assert runs[0].routed != runs[3].routed, "a fabric of its own for each way"
    with pytest.raises(KnotlessError, match="--way: 'fast' is none of naive, proven"):
        cases_of(Common(), {"way": "fast"})
    with pytest.raises(ExperimentError, match="--spread: 99 is not within"):
        study.prepare(Common(on=SIMULATION), {"spread": 99.0})


def test_the_report_counts_what_was_measured() -> None:
    rows = [
        run(Case("ring-4", FlowControl.PAUSE, way, n), n) for way in (NAIVE, PROVEN) for n in (1, 2)
    ]
    rows[1] = {**rows[1], "deadlock": True, "deadlock_after_s": 0.1}
    about = {"rows": rows, "parameters": {"on": SIMULATION, "spread_s": 0.2}}
    shown = presentation.present(about, (), True)
    frozen = sum(row["deadlock"] for row in rows[:2])
    assert f"in random order, {frozen} of 2 runs deadlocked" in shown.sentences[0]
    assert "none of 2 runs deadlocked; no frame was dropped or lost" in shown.sentences[1]
    assert [plot.name for plot in shown.plots] == ["deadlocks"]
    lines = shown.columns.table(shown.rows)
    assert [len(line) for line in lines] == [len(shown.columns.headings)] * 4
    assert set(shown.columns.brief.headings) <= set(shown.columns.headings)
