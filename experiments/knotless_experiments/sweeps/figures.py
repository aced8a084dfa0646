"""Running a point and collecting its figures, which is the work of the workers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.routing.plan import Plan
from knotless.simulation import Result, simulate
from knotless.traffic.analysis import analyse
from knotless.traffic.patterns import pattern_named
from knotless_experiments.sweeps.settings import (
    KINDS,
    Analysis,
    Settings,
    Simulation,
    keys,
    settings_of,
)

INDEX, ERROR = "index", "error"

_SETTINGS = {
    **dict.fromkeys(
        ("fabric", "engine", "select", "tagging", "vlans", "root", "pattern"), "string"
    ),
    **dict.fromkeys(
        ("arrivals", "flow_control", "multipath", "protection", "source_check"), "string"
    ),
    **dict.fromkeys(("load", "watchdog_us", "warm_up_us", "duration_us"), "double"),
    "barrier": "bool",
}
"""Arrow types of the columns of settings; the default is int64."""
_PLAN = {"plan_engine": "string", "plan_vcs": "int64", "switches": "int64", "hosts": "int64"}
_FIGURES = {
    "analyse": {
        **_PLAN,
        "flows": "int64",
        "throughput_ratio": "double",
        "max_channel_load": "int64",
        "max_host_load": "int64",
        **dict.fromkeys(("fair_min_mbps", "fair_mean_mbps", "fair_max_mbps"), "double"),
    },
    "simulate": {
        **_PLAN,
        **dict.fromkeys(("flows", "packets", "packet_hops", "events"), "int64"),
        **dict.fromkeys(("simulated_us", "measured_us", "complete_us"), "double"),
        **dict.fromkeys(("throughput_mbps", "flow_mbps_min", "flow_mbps_max"), "double"),
        **dict.fromkeys(("messages", "messages_under_way", "in_network", "lost_frames"), "int64"),
        **{
            f"{what}_{which}_us": "double"
            for what in ("latency", "completion")
            for which in ("mean", "min", "p50", "p99", "max")
        },
        "max_channel_load": "double",
        "pauses": "int64",
        "paused_us": "double",
        **dict.fromkeys(("queue_peak_bytes", "account_peak_bytes"), "int64"),
        "deadlock": "bool",
        "knot": "string",
        "result_sha256": "string",
    },
}


def columns(do: str) -> Mapping[str, str]:
    """Return the columns of the samples with their Arrow types.

    The point's number and settings come first, then its figures, then ``error``. If there is an
    error, the figures are null.
    """
    settings = {key: _SETTINGS.get(key, "int64") for key in keys(do)}
    return {INDEX: "int64", **settings, **_FIGURES[do], ERROR: "string"}


def sample(do: str, index: int, point: Settings) -> dict[str, Any]:
    """Return a sample with only the point's settings."""
    return {**dict.fromkeys(columns(do)), INDEX: index, **settings_of(do, point)}


def run_point(do: str, index: int, settings: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """Run a point; return its sample and the run time in seconds.

    If the point fails for any reason, the sample has an ``error``.
    """
    began = time.perf_counter()
    point = KINDS[do].model_validate(settings)
    row = sample(do, index, point)
    try:
        row |= figures(point)
    except KnotlessError as error:
        row[ERROR] = str(error)
    except Exception as error:  # noqa: BLE001 - the other points must still run
        row[ERROR] = f"{type(error).__name__}: {error}"
    return row, time.perf_counter() - began


def figures(point: Settings) -> dict[str, Any]:
    """Run a point and return its figures. Raises KnotlessError if it cannot be run."""
    plan = _planned(point)
    fabric = plan.fabric
    of_plan = {
        "plan_engine": plan.engine,
        "plan_vcs": plan.vcs,
        "switches": len(fabric.switches),
        "hosts": len(fabric.hosts),
    }
    if isinstance(point, Simulation):
        return of_plan | _simulated(simulate(point.scenario(plan)))
    return of_plan | analyse(plan, pattern_named(point.pattern), point.seed).metrics()


_last: list[tuple[tuple[Any, ...], Plan]] = []


def _planned(point: Analysis) -> Plan:
    """Return the plan of a point; the last plan is reused if it is the same."""
    if not _last or _last[0][0] != point.routes:
        _last[:] = [(point.routes, point.plan())]
    return _last[0][1]


def _simulated(result: Result) -> dict[str, Any]:
    summary = result.summary()
    for what in ("latency", "completion"):
        times_us = summary[f"{what}_us"]
        summary |= {f"{what}_{which}_us": value for which, value in times_us.items()}
    summary["knot"] = " ".join(summary["knot"])
    return {key: summary[key] for key in _FIGURES["simulate"] if key not in _PLAN}
