"""The settings of simulations with which explanations of differences are tested."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.tests.support.experiment_rows import rows_of
from knotless_experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    ExperimentError,
    load,
)


def simulated(name: str, common: dict[str, Any], **options: Any) -> dict[str, Any]:
    (row,) = rows_of(load(name), Common(on=SIMULATION, **common), **options)
    assert row["valid"]
    return row


def ring(**options: Any) -> dict[str, Any]:
    case = {"pattern": "a", "routes": "cyclic", "flow_control": "pause", "protocol": "udp"}
    common = {"rate_mbps": 1000.0, "duration_s": 0.5}
    return simulated("deadlock", common, **case, delay=1.0, **options)


def test_a_watchdog_keeps_a_deadlocked_ring_moving() -> None:
    frozen, guarded = ring(), ring(watchdog=1000.0)
    assert frozen["flows_mbps"] == [0, 0, 0, 0]
    assert frozen["lost_frames"] == 0
    assert min(guarded["flows_mbps"]) > 10
    assert guarded["lost_frames"] > 0
    assert sum(guarded["flows_mbps"]) > sum(ring(watchdog=50_000.0)["flows_mbps"])


def messages(**options: Any) -> dict[str, Any]:
    case: dict[str, Any] = {"part": "acknowledged", "engine": "dor", "pattern": "complement"}
    case |= {"fabric": ("mesh,4,4,hosts=2",), "size": "1024", "delay": 0.2}
    return simulated("traffic", {"rate_mbps": 6000.0, "duration_s": 0.001}, **case, **options)


def test_messages_are_faster_through_switches_that_cut_through() -> None:
    assert messages(cut_through=40)["mean_mbps"] > 1.2 * messages()["mean_mbps"]


def kernel(**options: Any) -> dict[str, Any]:
    case = {"fabric": ("flat,4",), "engines": "auto", "kernels": "is", "problem_class": "S"}
    return simulated("nas", {}, **case, processes=4, traces=None, **options)


def test_computing_takes_time_only_if_asked_for() -> None:
    assert kernel() == kernel(computing=0.0)
    assert kernel(computing=10.0)["seconds"] > kernel()["seconds"]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("deadlock", {"watchdog": 1000.0}, "only simulated switches"),
        ("traffic", {"cut_through": 40}, "emulated switches store and forward"),
        (
            "nas",
            {"fabric": ("flat,4",), "engines": "auto", "kernels": "is", "problem_class": "S"}
            | {"processes": 4, "traces": None, "computing": 1.0},
            "emulated processes always compute",
        ),
    ],
)
def test_emulation_has_none_of_these(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        load(name).prepare(Common(on=EMULATION), options)
