"""The parallel experiment: its cases, the figures it derives, and how it shows them."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from experiments.tests.support.experiment_rows import rows_of
from knotless.base.errors import KnotlessError
from knotless_experiments.framework.experiment import EMULATION, SIMULATION, Common
from knotless_experiments.studies.parallel import EXPERIMENT, cases, presentation
from knotless_experiments.studies.parallel.measure import Case, row_of
from knotless_experiments.workloads.program_campaign import ProgramCampaign

DEFAULTS: dict[str, Any] = {
    "fabric": (),
    "engines": "auto",
    "measurements": None,
    "sizes": None,
    "processes": None,
}


def cases_of(common: Common, **options: Any) -> list[Case]:
    settings = {**DEFAULTS, **options}
    return cases(ProgramCampaign.from_options(common, settings), settings)


def test_cases_and_figures() -> None:
    runs = cases_of(Common(repeats=2), sizes="100,200")
    assert len(runs) == 2 * (3 * 2 + 1)
    pingpong = next(c for c in runs if c.measurement == "pingpong" and c.message_bytes == 200)
    row = row_of(EMULATION, pingpong, [0.004, 0.002, 0.006])
    assert row["time_us"] == pytest.approx(2000)  # half the round trip
    assert row["mbps"] == pytest.approx(200 * 8 / 2000)
    alltoall = next(c for c in runs if c.measurement == "alltoall" and c.message_bytes == 100)
    assert row_of(EMULATION, alltoall, [0.001])["mbps"] == pytest.approx(15 * 100 * 8 / 1000)
    barrier = next(c for c in runs if c.measurement == "barrier")
    assert row_of(EMULATION, barrier, [0.001])["mbps"] is None
    assert row_of(EMULATION, barrier, [])["time_us"] is None


def test_a_run_is_shown() -> None:
    judged = {"stretch": 1.0, "valid": True, "problems": [], "deadlock": False}
    rows = [
        {**row_of(EMULATION, case, [0.001, 0.003]), **judged}
        for case in cases_of(Common(quick=True))
    ]
    rows[0] = {**rows[0], "valid": False, "problems": ["late"]}
    shown = presentation.present({"rows": rows, "parameters": {"on": EMULATION}}, [], True)
    assert len(shown.columns.table(shown.rows)) == len(rows)
    assert "a barrier takes 2.00 ms" in shown.sentences[0]
    assert shown.sentences[-1] == f"Not valid, and excluded: 1 of {len(rows)} runs."
    assert len(shown.plots) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sizes": "12,x"}, "'x' is not a whole number from 1"),
        ({"sizes": "0"}, "'0' is not a whole number from 1"),
        ({"measurements": "pong"}, "'pong' is none of pingpong"),
        ({"processes": 64}, "has 16 hosts"),
        ({"engines": "nope"}, "nope"),
    ],
)
def test_wrong_settings_are_reported(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(KnotlessError, match=message):
        EXPERIMENT.prepare(Common(), {**DEFAULTS, **changed})


def test_simulated_measurements_take_what_lines_and_delays_take() -> None:
    options = {**DEFAULTS, "fabric": ("flat,4,rate=8,delay=100",), "processes": 4, "sizes": "1000"}
    rows = rows_of(EXPERIMENT, Common(on=SIMULATION, repeats=2), **options)
    times = {row["measurement"]: row["time_us"] for row in rows}
    assert [row["time_us"] for row in rows[::2]] == [row["time_us"] for row in rows[1::2]]
    # 1,000 bytes: 1,038 of line at a byte/us, host to switch and on, and two delays; the
    # all-to-all sends three, one after the other.
    assert times["pingpong"] == pytest.approx(2 * 1138, rel=0.01)
    assert times["sendrecv"] == pytest.approx(2 * 1138, rel=0.01)
    assert 2 * 1138 + 2 * 1038 <= times["alltoall"] <= 3 * 2 * 1138
    # Two steps of one byte, in the shortest frame: 84 bytes of line.
    assert times["barrier"] == pytest.approx(2 * 2 * 184, rel=0.01)


def test_a_simulated_all_to_all_wants_a_power_of_two() -> None:
    options = {**DEFAULTS, "fabric": ("flat,6",), "processes": 6}
    with pytest.raises(KnotlessError, match="alltoall in simulation: 6 processes"):
        EXPERIMENT.prepare(Common(on=SIMULATION), options)
    EXPERIMENT.prepare(Common(on=SIMULATION), {**options, "measurements": "barrier"})


def test_a_missing_open_mpi_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(KnotlessError, match="apt-get install openmpi-bin python3-mpi4py"):
        EXPERIMENT.prepare(Common(), DEFAULTS)
