"""What a fabric will take, against what the stored ones took."""

from __future__ import annotations

import json
from functools import cache
from statistics import median
from typing import Any

import pytest

from knotless.emulation.estimate import HOPS_PER_S, Estimate, estimate
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.fabric import with_lines
from knotless.verification.checked_plan import CheckedPlan
from tests.support import REPOSITORY

STORED = json.loads((REPOSITORY / "docs" / "benchmarks" / "fair-share.json").read_text())
SIZES = [row for row in STORED["rows"] if row["part"] == "sizes"]


@cache
def mean_switches(spec: str) -> float:
    return CheckedPlan(make_plan(load(spec), PlanRequest())).verdict.mean_switches


def of_row(row: dict[str, Any]) -> Estimate:
    return estimate(
        load(row["fabric"]),
        switch_processes=row["switch_processes"],
        controllers=1,
        mean_switches=mean_switches(row["fabric"]),
        emulated=True,
    )


@pytest.mark.parametrize("row", SIZES, ids=lambda row: str(row["fabric"]))
def test_the_rule_fits_the_stored_runs(row: dict[str, Any]) -> None:
    expected = of_row(row)
    assert expected.processes + 1 == row["processes"]  # one sends the traffic of the run
    assert 0.7 < expected.memory_mb / row["memory_mb"] < 1.4


def test_the_pace_is_that_of_stored_runs_that_the_machine_limits() -> None:
    path = REPOSITORY / "docs" / "benchmarks" / "emulation-time.json"
    paces = [
        line["hops_per_s"]
        for line in json.loads(path.read_text())["lines"]
        if line["priority"] == "normal" and not line["loops"] and (line["stretch"] or 0) > 2
    ]
    assert len(paces) >= 3
    assert 0.5 < median(paces) / HOPS_PER_S < 2


def test_faster_links_and_longer_paths_take_more_time() -> None:
    slow, fast = (
        estimate(
            with_lines(load("torus,4,4"), rate, None),
            switch_processes=1,
            controllers=1,
            mean_switches=mean_switches("torus,4,4"),
            emulated=True,
        )
        for rate in (1, 1000)
    )
    assert slow.stretch == 1
    assert slow.text.endswith("two cores carry all that its hosts can send in real time")
    assert fast.stretch is not None
    assert fast.stretch > 10
    assert f"take about {fast.stretch:.1f} s for a second of the fabric" in fast.text


def test_plain_links_have_no_virtual_time() -> None:
    plain = estimate(
        load("flat,2"), switch_processes=1, controllers=0, mean_switches=1.0, emulated=False
    )
    assert plain.stretch is None
    assert plain.text == f"about {plain.memory_mb} MB in {plain.processes} processes"
