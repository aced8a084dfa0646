"""A measured row that says nothing about a flow is not valid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.tests.support.experiment_rows import rows_of
from knotless.results.validity import judge, silent_flows
from knotless_experiments.framework.experiment import SIMULATION, Common
from knotless_experiments.framework.routed import in_simulation, with_validity
from knotless_experiments.studies.deadlock import EXPERIMENT as DEADLOCK
from tests.unit.results.test_validity import RATES, row_of

STATUS = {
    **{"stretch": 1.0, "slow_down": 1.0, "host_wait_us": 0.0, "datapath": "userspace"},
    **{"valid": True, "problems": []},
}


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
