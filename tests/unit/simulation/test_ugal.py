"""UGAL in simulations: sources avoid what is busy, and take what is short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from knotless.base.errors import SimulationError
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Result, Scenario, simulate
from knotless.topologies import load
from knotless.traffic.multipath import analyse_multipath
from knotless.traffic.patterns import pattern_named

LINES = "rate=10000,delay=1"
DRAGONFLY = f"dragonfly,a=4,h=2,p=2,{LINES}"
GROUP_SHIFT = "shift:8"
"""Each group of a=4 switches with p=2 hosts sends to the next, which one link leads to."""


def result_of(spec: str, engine: str, pattern: str, cores: int = 1, **more: Any) -> Result:
    times: dict[str, Any] = {"warm_up_us": 500.0, "duration_us": 1500.0}
    scenario = Scenario(
        make_plan(load(spec), engine), pattern, Load("poisson", 0.9), **{**times, **more}
    )
    result = simulate(scenario, cores=cores)
    assert result.report.deadlock is None
    assert result.report.flow_lost.sum() == 0
    return result


def throughput(spec: str, engine: str, pattern: str) -> float:
    return float(result_of(spec, engine, pattern).summary()["throughput_mbps"])


@pytest.mark.parametrize(
    ("spec", "minimal", "valiant", "uneven"),
    [
        (DRAGONFLY, "dragonfly", "dragonfly-valiant", GROUP_SHIFT),
        (f"fullmesh,8,hosts=7,{LINES}", "hyperx", "valiant", "shift:7"),
    ],
)
def test_it_is_about_as_good_as_valiant_or_as_minimal_whichever_is_better(
    spec: str, minimal: str, valiant: str, uneven: str
) -> None:
    engines = (minimal, valiant, "ugal")
    shifted = {engine: throughput(spec, engine, uneven) for engine in engines}
    assert shifted["ugal"] > 0.95 * shifted[valiant]
    assert shifted["ugal"] > 2 * shifted[minimal]
    even = {engine: throughput(spec, engine, "uniform") for engine in engines}
    assert even["ugal"] > 0.95 * even[minimal]
    assert even["ugal"] > 1.2 * even[valiant]


@pytest.mark.thin(2)
@pytest.mark.parametrize("pattern", [GROUP_SHIFT, "uniform"])
@pytest.mark.parametrize("flow_control", ["pfc", "credits"])
def test_a_seed_has_one_result_on_any_number_of_cores(pattern: str, flow_control: str) -> None:
    def run(cores: int, seed: int = 1) -> Result:
        return result_of(DRAGONFLY, "ugal", pattern, cores, seed=seed, flow_control=flow_control)

    one, two, again, other = run(1), run(2), run(1), run(1, seed=2)
    assert (two.cores, two.one_core_because) == (2, None)
    assert one.result_sha256 == two.result_sha256 == again.result_sha256 != other.result_sha256


def test_a_high_threshold_keeps_all_frames_on_direct_paths() -> None:
    plan = make_plan(load(DRAGONFLY), "ugal")
    found = analyse_multipath(plan, pattern_named(GROUP_SHIFT), seed=1, seeds=1)
    names = np.array(found.lines.names())
    directly, either = (set(names[found.loads[name] > 0]) for name in ("minimal", "half"))
    assert directly < either
    for threshold, expected in ((2**39, directly), (0, either)):
        result = result_of(DRAGONFLY, "ugal", GROUP_SHIFT, ugal_threshold=threshold)
        sent = zip(result.channels.names, result.report.channel_tx_frames.tolist(), strict=True)
        assert {name for name, frames in sent if frames} == expected


def test_order_is_not_kept() -> None:
    summary = result_of(DRAGONFLY, "ugal", "uniform").summary()
    assert (summary["multipath"], summary["order"]) == ("ugal", "not kept")


@pytest.mark.parametrize(
    ("engine", "threshold", "text"),
    [
        ("dragonfly", 1, "dragonfly has no threshold of ugal: use engine ugal"),
        ("ugal", -1, "threshold of ugal: -1 bytes are not in 0..2"),
        ("ugal", 2**40, "bytes are not in 0..2"),
    ],
)
def test_a_wrong_threshold_is_refused(engine: str, threshold: int, text: str) -> None:
    with pytest.raises(SimulationError, match=text):
        result_of(DRAGONFLY, engine, "uniform", ugal_threshold=threshold)
