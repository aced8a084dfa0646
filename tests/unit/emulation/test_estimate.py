"""What a fabric will take, against what fabrics took that were measured."""

from __future__ import annotations

from functools import cache
from statistics import median
from typing import NamedTuple

import pytest

from knotless.emulation.estimate import HOPS_PER_S, Estimate, estimate
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.fabric import with_lines
from knotless.verification.checked_plan import CheckedPlan


class Size(NamedTuple):
    """A fabric that was measured, and its processes with the one that sent its traffic."""

    fabric: str
    switch_processes: int
    processes: int
    memory_mb: float


# docs/decisions/settled-comparisons.md has the tables from which these are.
SIZES = [
    Size("ring,4", 1, 15, 228),
    Size("torus,4,4", 1, 39, 281),
    Size("torus,4,4,hosts=4", 1, 87, 438),
    Size("torus,10,10", 10, 225, 760),
]
PACES_HOPS_PER_S = (29_315, 76_094, 89_236)
"""Of `ring,4` at 1, 10 and 100 Gbit/s, at ordinary priority and without other work."""


@cache
def mean_switches(spec: str) -> float:
    return CheckedPlan(make_plan(load(spec), PlanRequest())).verdict.mean_switches


def of_size(size: Size) -> Estimate:
    return estimate(
        load(size.fabric),
        switch_processes=size.switch_processes,
        controllers=1,
        mean_switches=mean_switches(size.fabric),
        emulated=True,
    )


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size.fabric))
def test_the_rule_fits_what_fabrics_took(size: Size) -> None:
    expected = of_size(size)
    assert expected.processes + 1 == size.processes
    assert 0.7 < expected.memory_mb / size.memory_mb < 1.4


def test_the_pace_is_that_of_runs_that_the_machine_limited() -> None:
    assert 0.5 < median(PACES_HOPS_PER_S) / HOPS_PER_S < 2


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
