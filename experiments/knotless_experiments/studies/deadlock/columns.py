"""The columns of the deadlock experiment: lists are in the order of ``flows``.

A sample is a flow at a reading of the counters. A simulated row has no samples.
"""

from __future__ import annotations

from collections.abc import Sequence

from knotless_experiments.framework.columns import (
    ON,
    REPEAT,
    SHA,
    Column,
    Role,
    Row,
    columns,
    validity,
)


def range_of(values: Sequence[float], digits: int = 2) -> str:
    """Return ``4.76-4.78``, or one number if both ends are equal when rounded."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low}-{high}"


def _knot(row: Row) -> str:
    if not row["deadlock"]:
        return "-"
    if row["cycle"] == row["predicted_cycle"]:
        return "predicted"
    return "predicted" if row["as_predicted"] else "NOT predicted"


def _deadlock(row: Row) -> str:
    return f"at {row['frozen_after_s']:.2f} s" if row["deadlock"] else "no"


def _remarks(row: Row) -> str:
    return "; ".join([*([" ".join(row["cycle"])] if row["cycle"] else []), *row["problems"]])


COLUMNS = columns(
    ON,
    Column.case("pattern", "string"),
    Column("tagging", "string", heading="tagging", role=Role.CASE),
    Column.case("routes", "string"),
    Column("flow_control", "string", heading="control", role=Role.CASE, brief=True),
    Column.case("protocol", "string"),
    Column.condition("rate_mbps", "double", "Mbit/s"),
    Column("delay_us", "double", "us", role=Role.PARAMETER),
    Column("watchdog_us", "double", "us", role=Role.PARAMETER),
    REPEAT,
    Column("flows", "list<string>"),
    Column(
        *("flows_mbps", "list<double>", "Mbit/s", "Mbit/s each", Role.MEASURE, range_of),
        brief=True,
        meaning="goodput (payload) in the measuring window",
    ),
    Column("theory_mbps", "double", "Mbit/s"),
    Column(
        *("theory_flows_mbps", "list<double>", "Mbit/s", "fair share"),
        form=lambda shares: range_of(shares, 3),
    ),
    Column("lost_frames", "int64", "frames", "lost", Role.MEASURE, "{:,}", brief=True),
    Column("deadlock", "bool", heading="deadlock", cell=_deadlock, brief=True),
    Column(
        *("cycle", "list<string>", "", "knot"),
        cell=_knot,
        brief=True,
        meaning="that of the emulator's detector, from its smallest member on, as frames go",
    ),
    Column(
        "predicted_cycle", "list<string>", meaning="that of the static check in the rules, likewise"
    ),
    Column(
        *("as_predicted", "bool"),
        meaning="all of cycle are dependencies found by the static check",
    ),
    Column("window_s", "double", "s", meaning="length of the measuring window"),
    Column(
        *("frozen_after_s", "double", "s"),
        default=None,
        meaning="when the deadlock began, on the time axis of the samples",
    ),
    Column("drops", "map<int64>", "frames", default=dict),
    Column("sent_frames", "int64", "frames", default=0),
    Column("delivered_frames", "int64", "frames", default=0),
    Column("iperf3_flows_mbps", "list<double>", "Mbit/s", default=list),
    Column("iperf3_lost", "int64", "frames", default=None),
    SHA,
    *validity(_remarks),
    samples=(
        *("pattern", "tagging", "routes", "flow_control", "protocol", "repeat"),
        Column.sample("t_s", "double", "s", meaning="time since the counters were reset"),
        Column.sample("flow", "string"),
        Column.sample("goodput_mbps", "double", "Mbit/s", meaning="mean since the previous sample"),
        Column.sample("delivered_frames", "int64", "frames", meaning="a total"),
        Column.sample("lost_frames", "int64", "frames", meaning="a total of the whole fabric"),
        Column.sample("in_window", "bool", meaning="in the measuring window"),
    ),
)
