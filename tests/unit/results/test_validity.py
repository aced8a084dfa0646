"""A row that says nothing about a flow is not valid, when it is measured and when it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.tests.support.experiment_rows import rows_of
from knotless.base.errors import KnotlessError
from knotless.results import document, stored
from knotless.results.validity import judge, silent_flows
from knotless_experiments.framework.experiment import SIMULATION, Common
from knotless_experiments.framework.routed import in_simulation, with_validity
from knotless_experiments.studies.deadlock import EXPERIMENT as DEADLOCK

STATUS = {
    **{"stretch": 1.0, "slow_down": 1.0, "host_wait_us": 0.0, "datapath": "userspace"},
    **{"valid": True, "problems": []},
}
RATES = st.lists(st.sampled_from([0.0, 0.02, 5.0]), min_size=1, max_size=8)


def row_of(flows_mbps: list[float], *, deadlock: bool) -> dict[str, Any]:
    flows = [f"h{i}" for i in range(len(flows_mbps))]
    return {"flows": flows, "flows_mbps": flows_mbps, "deadlock": deadlock, "window_s": 0.5}


def test_a_flow_that_a_deadlock_stops_is_what_the_row_shows() -> None:
    assert silent_flows(row_of([0.0, 1.0], deadlock=True)) == []
    assert silent_flows(row_of([0.0, 1.0], deadlock=False)) == [
        "h0: nothing arrived in 0.5 s, and no deadlock has stopped it"
    ]


def test_a_flow_that_has_hardly_begun_says_as_little_as_one_of_which_nothing_arrives() -> None:
    """Of the first, 300 bytes have arrived; of the second, a frame."""
    row = {**row_of([0.0227, 0.115], deadlock=False), "window_s": 0.106}
    assert silent_flows(row) == [
        "h0: 0.0227 Mbit/s arrived in 0.106 s, and no deadlock has stopped it"
    ]


@given(RATES, st.booleans())
def test_a_row_is_valid_if_all_flows_arrive_or_a_deadlock_stops_them(
    flows_mbps: list[float], deadlock: bool
) -> None:
    row = row_of(flows_mbps, deadlock=deadlock)
    valid = deadlock or 0.0 not in flows_mbps
    for measured in (in_simulation(row), with_validity(row, STATUS, [])):
        assert measured["valid"] == valid
        assert len(measured["problems"]) == (0 if valid else flows_mbps.count(0.0))
        judged = dict(measured)
        judge(judged)
        assert judged == measured
    older = {**row, "valid": True, "problems": []}
    judge(older)
    assert older == {**row, "valid": valid, "problems": in_simulation(row)["problems"]}


@pytest.mark.parametrize("routes", ["cyclic", "acyclic"])
def test_transfers_of_which_nothing_arrives_make_a_row_invalid(routes: str) -> None:
    """The window is shorter than the way of a frame."""
    (row,) = rows_of(
        DEADLOCK,
        Common(on=SIMULATION, duration_s=0.001, rate_mbps=1.0),
        **{"pattern": "mesh-3x3", "routes": routes, "flow_control": "host"},
    )
    assert not row["deadlock"]
    assert 0.0 in row["flows_mbps"]
    assert not row["valid"]
    assert row["problems"] == silent_flows(row)


def test_stored_rows_are_judged_when_they_are_read(tmp_path: Path) -> None:
    row = {**row_of([0.0, 1.0], deadlock=False), "valid": True, "problems": []}
    run = {
        **{"experiment": "deadlock", "id": "x", "status": "complete", "reason": None, "pid": None},
        **{"started": "", "finished": None, "seed": 1, "parameters": {}, "versions": {}},
        **{"machine": {}, "rows": [row, {}, {"problems": 3}]},
    }
    (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    first, *others = document.read(tmp_path / "run.json", KnotlessError)["rows"]
    assert not first["valid"]
    assert first["problems"] == silent_flows(row)
    assert others == [{}, {"problems": 3}]


def test_no_stored_row_counts_that_says_nothing_about_a_flow() -> None:
    rows = [row for run in stored.read().runs for row in run["rows"]]
    assert rows
    assert not [row for row in rows if row["valid"] and silent_flows(row)]
