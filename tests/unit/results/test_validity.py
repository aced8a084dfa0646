"""A row that says nothing about a flow is not valid, when it is measured and when it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import KnotlessError
from knotless.results import document, stored
from knotless.results.validity import judge, silent_flows

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


@given(RATES, st.booleans())
def test_an_older_row_is_valid_if_all_flows_arrive_or_a_deadlock_stops_them(
    flows_mbps: list[float], deadlock: bool
) -> None:
    row = row_of(flows_mbps, deadlock=deadlock)
    valid = deadlock or 0.0 not in flows_mbps
    older = {**row, "valid": True, "problems": []}
    judge(older)
    assert older == {**row, "valid": valid, "problems": silent_flows(row)}


def test_no_stored_row_counts_that_says_nothing_about_a_flow() -> None:
    rows = [row for run in stored.read().runs for row in run["rows"]]
    assert rows
    assert not [row for row in rows if row["valid"] and silent_flows(row)]
