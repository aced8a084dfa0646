"""The parallel experiment: its cases, the figures it derives, and how it shows them."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from experiments.experiment import Common
from experiments.parallel import EXPERIMENT, cases, show
from experiments.parallel.measure import _row
from topologies.errors import KnotlessError

DEFAULTS: dict[str, Any] = {
    "fabric": (),
    "engines": "native",
    "measurements": "pingpong,sendrecv,alltoall,barrier",
    "sizes": None,
    "processes": None,
}


def test_cases_and_figures() -> None:
    found = cases(Common(repeats=2), {**DEFAULTS, "sizes": "100,200"})
    assert len(found) == 2 * (3 * 2 + 1)
    pingpong = next(c for c in found if c.measurement == "pingpong" and c.message_bytes == 200)
    row = _row(pingpong, [0.004, 0.002, 0.006])
    assert row["time_us"] == pytest.approx(2000)  # half the round trip
    assert row["mbps"] == pytest.approx(200 * 8 / 2000)
    alltoall = next(c for c in found if c.measurement == "alltoall" and c.message_bytes == 100)
    assert _row(alltoall, [0.001])["mbps"] == pytest.approx(15 * 100 * 8 / 1000)
    barrier = next(c for c in found if c.measurement == "barrier")
    assert _row(barrier, [0.001])["mbps"] is None
    assert _row(barrier, [])["time_us"] is None


def test_a_run_is_shown() -> None:
    judged = {"lateness_us_p99": 0.0, "valid": True, "problems": [], "deadlock": False}
    rows = [
        {**_row(case, [0.001, 0.003]), **judged} for case in cases(Common(quick=True), DEFAULTS)
    ]
    rows[0] = {**rows[0], "valid": False, "problems": ["late"]}
    shown = show.present({"rows": rows}, [], True)
    assert len(shown.table) == len(rows)
    assert "a barrier takes 2.00 ms" in shown.sentences[0]
    assert shown.sentences[-1] == f"Not valid, and left out: 1 of {len(rows)} runs."
    assert len(shown.plots) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sizes": "12,x"}, "'x' is no number of bytes"),
        ({"sizes": "0"}, "is not within 1"),
        ({"measurements": "pong"}, "'pong' is none of pingpong"),
        ({"processes": 64}, "has 16 hosts"),
        ({"engines": "nope"}, "nope"),
    ],
)
def test_wrong_settings_are_told(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(KnotlessError, match=message):
        EXPERIMENT.prepare(Common(), {**DEFAULTS, **changed})


def test_a_missing_open_mpi_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(KnotlessError, match="apt-get install openmpi-bin python3-mpi4py"):
        EXPERIMENT.prepare(Common(), DEFAULTS)
