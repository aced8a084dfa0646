"""The columns of the hops experiment: times from message to acknowledgement, and what follows.

For barriers, the times are those that a host takes to pass. A sample is a message, or a host and
barrier.
"""

from __future__ import annotations

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


def _bandwidth(row: Row) -> str:
    return f"{row['bandwidth_mbps']:.4f}" if row["message_bytes"] else "-"


COLUMNS = columns(
    ON,
    Column("measure", "string", heading="what", role=Role.CASE, brief=True),
    Column.case("tagging", "string"),
    Column.case("switches", "int32"),
    Column(
        *("message_bytes", "int32", "bytes", "bytes", Role.CASE, lambda size: str(size or "-")),
        brief=True,
    ),
    Column.condition("rate_mbps", "double", "Mbit/s"),
    Column.condition("delay_us", "double", "us"),
    REPEAT,
    Column("messages", "int64", heading="messages"),
    Column("mean_us", "double", "us", "mean us", form="{:,.1f}", brief=True),
    Column("p50_us", "double", "us", "median us", Role.MEASURE, "{:,.1f}"),
    Column("min_us", "double", "us"),
    Column("max_us", "double", "us"),
    Column("theory_us", "double", "us", "theory us", form="{:,.1f}", brief=True),
    Column(
        *("bandwidth_mbps", "double", "Mbit/s", "Mbit/s", Role.MEASURE),
        cell=_bandwidth,
        brief=True,
        meaning="D / T with the mean T, for both hosts together if both send",
    ),
    Column(
        *("latency_us", "double", "us"),
        meaning="half of T: the one-way time if message and acknowledgement have the same, minimum "
        "size",
    ),
    Column("lost_frames", "int64", "frames", "lost"),
    SHA,
    *validity(),
    samples=(
        *("measure", "tagging", "switches", "message_bytes", "repeat"),
        Column.sample("time_us", "double", "us"),
    ),
)
