"""The columns of the agreement: a row is a case in both, lists are in the order of ``flows``.

Frames count in ``window_s`` after the emulator's queues were emptied and its counters reset; the
simulator starts in this state. A sample is a channel that carried frames.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from knotless.base.flow_control import FlowControl
from knotless_experiments.framework.columns import REPEAT, SHA, Column, Role, Row, columns, validity

CLOCKS = ("emulated", "simulated")


def _both(
    name: str,
    kind: str,
    unit: str = "",
    heading: str = "",
    role: Role = Role.RESULT,
    form: str | Callable[[Any], str] = "{}",
    meaning: str = "",
) -> tuple[Column, Column]:
    """Return the column of the emulator's value, and that of the simulator's."""
    first, second = (
        Column(
            *(f"{clock}_{name}", kind, unit, f"{heading} {clock}" if heading else "", role, form),
            meaning=meaning,
        )
        for clock in CLOCKS
    )
    return first, second


def pattern_of(row: Row) -> str:
    """Return the pattern, with its seed if it is random."""
    drawn = row["pattern"] == "permutation"
    return f"{row['pattern']} (seed {row['seed']})" if drawn else str(row["pattern"])


def _description(flow_control: str) -> str:
    return FlowControl(flow_control).description


def _settings(row: Row) -> str:
    return row.get("settings") or "-"


def _pools_apart(row: Row) -> str:
    """Return the cell of the pools; rows of older runs have none."""
    return f"{len(row['pools_apart'])} of {row['pools']}" if row.get("pools") else "-"


def _marked(clock: str) -> Callable[[Row], str]:
    return lambda row: f"{row.get(f'{clock}_marked', 0):,}"


def _pause_frames(clock: str) -> Callable[[Row], str]:
    return lambda row: f"{row.get(f'{clock}_pause_frames') or 0:,}"


def _storms(clock: str) -> Callable[[Row], str]:
    return lambda row: f"{row.get(f'{clock}_storms') or 0:,}"


def _peaks_apart(row: Row) -> str:
    return f"{len(row['peaks_apart'])} of {row['channels']}"


def _remarks(row: Row) -> str:
    storms = [f"storms of {name}" for name in row.get("storms_apart") or ()]
    apart = [*row["peaks_apart"][:4], *row.get("pools_apart", ())[:4], *storms[:4]]
    return "; ".join([*row["problems"], *apart])


_STRETCH, *_VALIDITY = validity(_remarks)
COLUMNS = columns(
    Column.case("fabric", "string"),
    Column.case("routes", "string"),
    Column.case("pattern", "string", cell=pattern_of),
    Column("flow_control", "string", "", "flow control", Role.CASE, _description, brief=True),
    Column(
        *("settings", "string", "", "switches", Role.CASE),
        cell=_settings,
        brief=True,
        meaning="what switches are like inside, see docs/switch-settings.md",
    ),
    Column.condition("seed", "int64"),
    Column.condition("rate_mbps", "double", "Mbit/s"),
    Column.condition("delay_us", "double", "us"),
    REPEAT,
    Column("window_s", "double", "s"),
    Column("start_known_us", "double", "us", meaning="how exactly the time of the reset is known"),
    Column("flows", "list<string>", heading="flows", form=lambda flows: str(len(flows))),
    *_both("flows_frames", "list<int64>"),
    *_both("mbps", "double", "Mbit/s", "Mbit/s", Role.MEASURE, "{:.3f}"),
    Column(
        *("ratio", "double", "", "ratio", Role.RESULT, "{:.4f}"),
        brief=True,
        meaning="the emulator's total over the simulator's",
    ),
    Column(
        *("worst_ratio", "double", "", "worst flow", Role.RESULT, "{:.4f}"),
        meaning="the ratio of the flow farthest from 1",
    ),
    Column(
        *("apart_frames", "int64", "frames", "frame difference"),
        brief=True,
        meaning="the largest difference of a flow",
    ),
    *_both("deadlock", "bool"),
    *_both("knot", "list<string>", "", "knot", form=lambda knot: " ".join(knot) or "-"),
    *_both("frozen_ms", "double", "ms"),
    *_both("lost", "int64", "frames"),
    *_both("pauses", "int64", "", "pauses", Role.MEASURE, "{:,}"),
    Column(
        "pauses_apart", "int64", heading="pause difference", meaning="the largest one of a channel"
    ),
    *_both("paused_s", "double", "s", "paused", form="{:.2f} s", meaning="over all channels"),
    *_both("account_peak_bytes", "int64", "bytes", "peak", form="{:,}"),
    Column("channels", "int64", meaning="those that carried frames"),
    Column(
        *("peaks_apart", "list<string>", "", "peaks that differ"),
        cell=_peaks_apart,
        meaning="channels between switches or from hosts whose peak ingress buffer occupancy "
        "differs",
    ),
    *(
        Column(
            *(f"{clock}_marked", "int64", "frames", f"marked {clock}", Role.MEASURE),
            cell=_marked(clock),
        )
        for clock in CLOCKS
    ),
    Column("pools", "int64"),
    Column(
        *("pools_apart", "list<string>", "", "pools that differ"),
        cell=_pools_apart,
        meaning="pools of switches whose peak, or that of their headroom, differs",
    ),
    *(
        Column(
            *(f"{clock}_pause_frames", "int64", "frames", f"pause frames {clock}", Role.MEASURE),
            cell=_pause_frames(clock),
            meaning="that took their place on the wire",
        )
        for clock in CLOCKS
    ),
    *(
        Column(
            *(f"{clock}_storms", "int64", "", f"storms {clock}", Role.MEASURE),
            cell=_storms(clock),
            meaning="detected by watchdogs",
        )
        for clock in CLOCKS
    ),
    Column(
        *("storms_apart", "list<string>"),
        meaning="channels whose storms (detected, restored, only counted) or whose frames that "
        "watchdogs dropped differ",
    ),
    _STRETCH,
    Column(
        *("agrees", "bool", "", "agrees"),
        brief=True,
        meaning="ratio is within 1 %, every flow, the lost frames and the pause frames within 1 % "
        "or two frames, the verdict, the knot and all storms are equal, and marked frames differ "
        "by at most three standard deviations",
    ),
    SHA,
    *_VALIDITY,
    samples=(
        *("fabric", "routes", "pattern", "flow_control", "settings", "seed", "repeat"),
        Column.sample("channel", "string"),
        Column.sample(
            "kind",
            "string",
            meaning="host leaves a host, delivery leads to a host, inner is between switches",
        ),
        *_both("frames", "int64", role=Role.SAMPLE),
        *("emulated_pauses", "simulated_pauses"),
        *_both("paused_us", "double", "us", role=Role.SAMPLE),
        *("emulated_account_peak_bytes", "simulated_account_peak_bytes"),
        *_both("queue_peak_bytes", "int64", "bytes", role=Role.SAMPLE),
    ),
)
