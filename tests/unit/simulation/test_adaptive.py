"""Adaptive plans in simulations: frames are bound to an output when they begin to be sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.routing.plan import make_plan
from knotless.simulation import Scenario, simulate
from knotless.topologies import load

BYTES = 150_000
RATE_MBPS = 1000


@pytest.mark.seeds(8)
def test_two_flows_use_both_paths_whatever_is_drawn(seed: int, tmp_path: Path) -> None:
    """Two hosts send to the opposite switch of a ring, which two paths lead to."""
    plan = make_plan(load(f"ring,4,hosts=2,rate={RATE_MBPS},delay=1"), "adaptive")
    trace = tmp_path / "two.csv"
    trace.write_text(
        f"time_us,source,destination,bytes\n0,h1,h5,{BYTES}\n0,h2,h6,{BYTES}\n", encoding="utf-8"
    )
    result = simulate(Scenario(plan, "trace", trace=str(trace), seed=seed))
    alone_us = BYTES * 8 / RATE_MBPS
    complete_us = result.summary()["complete_us"]
    assert isinstance(complete_us, float)
    # On one path they would take twice as long; headers, gaps and the last hops add less than 10 %.
    assert alone_us < complete_us < 1.1 * alone_us
