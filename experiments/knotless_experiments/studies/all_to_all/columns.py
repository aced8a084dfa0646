"""The columns of the all-to-all experiment: a sample is a phase of an emulated exchange."""

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


def place_of(row: Row) -> str:
    """Return the configuration, of the large ones with the part of their hosts."""
    part = f" {row['share']} %" if row["configuration"].startswith("L") else ""
    return f"{row['configuration']}{part}"


COLUMNS = columns(
    ON,
    Column.case("configuration", "string", cell=place_of),
    Column("share", "int32", "%", role=Role.CASE, meaning="the part of the hosts that takes part"),
    Column("hosts", "int32", heading="hosts", role=Role.CONDITION, form="{:,}", brief=True),
    Column("fabric", "string", heading="fabric", role=Role.CONDITION),
    Column.case("schedule", "string"),
    Column.condition("phases", "int32"),
    REPEAT,
    Column(
        *("throughput_ratio", "double", "", "ratio by paths", Role.MEASURE, "{:.4f}"),
        brief=True,
        meaning="the mean, over flows and phases, of 1 / (flows on the most loaded channel of the "
        "flow's path)",
    ),
    Column("max_channel_load", "int32", "flows", "fullest channel"),
    Column.condition("datagrams", "int32", meaning="sent to each host; None for path loads only"),
    Column.condition("rate_mbps", "double", "Mbit/s"),
    Column("delay_us", "double", "us", role=Role.PARAMETER),
    Column(
        *("mbps", "double", "Mbit/s", "Mbit/s a host", Role.RESULT, "{:.3f}"),
        meaning="what a host sends, divided by the total time",
    ),
    Column(
        *("of_line", "double", "", "of line", Role.MEASURE, "{:.4f}"),
        brief=True,
        meaning="mbps divided by the rate of the host's line",
    ),
    Column("seconds", "double", "s", "seconds", form="{:.3f}", brief=True, meaning="total time"),
    Column("lost_frames", "int64", "frames", "lost", form="{:,}"),
    SHA,
    *validity(),
    samples=(
        *("configuration", "schedule", "repeat"),
        Column.sample("phase", "int32"),
        Column.sample("seconds", "double", "s"),
    ),
)
