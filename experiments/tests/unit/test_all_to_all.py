"""The all-to-all experiment: paper 002's figures from paths and from the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.tests.support.experiment_rows import Rows, rows_of
from knotless.routing.request import PlanRequest
from knotless_experiments.framework.experiment import ANALYSIS, SIMULATION, Common, ExperimentError
from knotless_experiments.framework.routed import Routed
from knotless_experiments.studies.all_to_all import EXPERIMENT
from knotless_experiments.studies.all_to_all.cases import SHIFT, Case, Configuration
from knotless_experiments.studies.all_to_all.measure import simulated
from knotless_experiments.studies.all_to_all.presentation import gains


def row_of(rows: Rows, configuration: str, schedule: str, share: int = 100) -> dict[str, Any]:
    wanted = (configuration, schedule, share)
    (row,) = [r for r in rows if (r["configuration"], r["schedule"], r["share"]) == wanted]
    return row


def test_paths_give_the_papers_ratios() -> None:
    rows = rows_of(EXPERIMENT, Common(on=ANALYSIS), configuration="S1,S2,S3,S1',S2',S3',L1,L2,L3")
    assert all(r["throughput_ratio"] == 1.0 for r in rows if r["schedule"] == "contention-free")
    assert all(r["throughput_ratio"] == 1.0 for r in rows if r["configuration"].endswith("'"))
    # The digest of the paper has these, computed apart.
    assert row_of(rows, "S1", "shift")["throughput_ratio"] == pytest.approx(0.5646, abs=5e-5)
    assert row_of(rows, "L1", "shift")["throughput_ratio"] == pytest.approx(0.4342, abs=5e-5)
    assert row_of(rows, "L3", "shift")["throughput_ratio"] == pytest.approx(0.2323, abs=5e-5)
    # Tables 4 and 5: how many hosts take part.
    assert [row_of(rows, f"S{i}", "shift")["hosts"] for i in (1, 2, 3)] == [21, 8, 27]
    assert [row_of(rows, f"S{i}'", "shift")["hosts"] for i in (1, 2, 3)] == [25, 10, 28]
    assert [row_of(rows, "L3", "shift", share)["hosts"] for share in (75, 50, 25)] == [
        343,
        252,
        112,
    ]


def test_shares_choose_among_the_large_ones() -> None:
    rows = rows_of(EXPERIMENT, Common(on=ANALYSIS), configuration="L1,L3", share="25,75")
    chosen = dict.fromkeys((row["configuration"], row["share"]) for row in rows)
    assert list(chosen) == [("L1", 25), ("L3", 75), ("L3", 25)]
    with pytest.raises(ExperimentError, match="only L1 .. L6 have parts"):
        rows_of(EXPERIMENT, Common(on=ANALYSIS), configuration="S1", share="25")


def test_simulated_exchanges_are_faster_without_contention_and_repeatable() -> None:
    common = Common(on=SIMULATION, repeats=2)
    rows = rows_of(EXPERIMENT, common, configuration="S1", datagrams=16, delay=100.0)
    assert 2.0 < gains(rows)["S1"] < 3.0
    assert len({row["result_sha256"] for row in rows}) == 2
    free = [row for row in rows if row["schedule"] == "contention-free"]
    # In one of 21 phases a host sends to itself; the others include the last frame's travel time.
    assert 0.8 < free[0]["of_line"] < 20 / 21 + 0.001
    assert all(row["lost_frames"] == 0 for row in rows)


def test_a_run_is_shown_with_its_findings() -> None:
    rows = rows_of(EXPERIMENT, Common(on=ANALYSIS), configuration="S1,S1'")
    shown = EXPERIMENT.present({"rows": rows, "parameters": {"on": ANALYSIS}}, [], True)
    assert "1.77 (S1) to 1.77 times (S1)" in shown.sentences[0]
    assert "no two flows of a phase shared a channel" in shown.sentences[1]
    worse = [{**row, "throughput_ratio": 0.5} for row in rows]
    again = EXPERIMENT.present({"rows": worse, "parameters": {"on": ANALYSIS}}, [], False)
    assert "SHARED" in again.sentences[1]


@pytest.mark.parametrize(("engine", "frozen"), [("minimal", True), ("updown", False)])
def test_an_exchange_that_a_deadlock_stops_has_no_throughput(engine: str, frozen: bool) -> None:
    request = PlanRequest.from_options(engine=engine, select="low-port", flow_control="pause")
    case = Case(Configuration("ring", "ring,8"), SHIFT, Routed("ring,8,hosts=4", request))
    row, _ = simulated(case, datagrams=400, seed=1)
    assert (row["seconds"] is None) == (row["mbps"] is None) == frozen
    assert row["valid"] != frozen
    assert [problem.split(": ")[1][:14] for problem in row["problems"]] == (
        ["DEADLOCK since"] if frozen else []
    )
