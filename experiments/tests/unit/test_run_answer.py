"""What ``knotless run`` answers: the result first, and on one screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from knotless.cli.answer import Screen, answer_lines
from knotless.results import stored
from knotless_experiments.commands.run import run_answer
from knotless_experiments.studies.deadlock import presentation

KINDS = [
    ("ring-4", "switch", "udp", routes, flow_control)
    for routes in ("cyclic", "acyclic")
    for flow_control in ("none", "pause")
]


@pytest.fixture(scope="module")
def run() -> dict[str, Any]:
    """A stored run, with one UDP row of a ring of each kind, as of ``run deadlock --quick``."""
    whole = next(
        run
        for run in stored.read().runs
        if run["experiment"] == "deadlock" and {*KINDS} <= {*map(kind_of, run["rows"])}
    )
    by_kind = {kind_of(row): row for row in reversed(whole["rows"])}
    return {**whole, "rows": [by_kind[kind] for kind in KINDS]}


def kind_of(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(row[key] for key in ("pattern", "tagging", "protocol", "routes", "flow_control"))


def lines(rows: list[dict[str, Any]], run: dict[str, Any], *, recorded: bool = False) -> list[str]:
    shown = presentation.present({**run, "rows": rows}, [], False)
    answer = run_answer(shown, Path("results/x/report.html"), recorded=recorded)
    return [*answer_lines(answer, Screen(80))]


def test_the_main_experiment_says_what_froze_and_fits_on_a_screen(run: dict[str, Any]) -> None:
    shown = lines(run["rows"], run, recorded=True)
    assert " ".join(shown[:2]).endswith(
        ": 1 of 4 runs froze, all in a cycle   that the static check had found"
    )
    assert shown[-2:] == [
        "  report with plots: results/x/report.html",
        "  watch it: knotless replay results/x",
    ]
    assert len(shown) <= 24
    assert max(map(len, shown)) <= 80


def test_runs_that_do_not_count_are_named(run: dict[str, Any]) -> None:
    rows = [{**row, "valid": row["routes"] == "acyclic"} for row in run["rows"]]
    assert "0 of 2 runs froze, 2 of 4 runs" in lines(rows, run)[0]
    nothing = [{**row, "valid": False} for row in rows]
    assert lines(nothing, run)[0].endswith(": 0 of 4 runs valid")


def test_a_knot_that_the_check_did_not_foresee_counts_apart(run: dict[str, Any]) -> None:
    rows = [{**row, "as_predicted": False} for row in run["rows"]]
    assert presentation.answer(rows) == (
        "1 of 4 runs froze",
        ", 0 in a cycle that the static check had found",
    )
