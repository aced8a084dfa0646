"""The columns of the traffic experiment: lists are in the order of ``flows``.

A sample is a flow of a row; its times are those from message to acknowledgement, if messages are
acknowledged.
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


def _remarks(row: Row) -> str:
    return "; ".join([*(["DEADLOCK"] if row["deadlock"] else []), *row["problems"]])


COLUMNS = columns(
    Column("part", "string", heading="part", role=Role.CASE),
    ON,
    Column.case("fabric", "string"),
    Column.condition("engine", "string"),
    Column.condition("vcs", "int32"),
    Column.condition("select", "string"),
    Column.case("routes", "string"),
    Column.case("pattern", "string"),
    Column.case("protocol", "string"),
    Column("message_bytes", "int32", "bytes", "bytes", Role.CASE, brief=True),
    Column.condition("rate_mbps", "double", "Mbit/s"),
    Column.condition("delay_us", "double", "us"),
    Column("cut_through", "int32", "bytes", role=Role.PARAMETER),
    REPEAT,
    Column("flows", "list<string>"),
    Column("mean_mbps", "double", "Mbit/s", "Mbit/s mean", Role.MEASURE, "{:.4g}", brief=True),
    Column(
        *("flows_mbps", "list<double>", "Mbit/s", "Mbit/s min"),
        form=lambda flows: f"{min(flows):.4g}",
        meaning="goodput in window_s: message bytes over the time until acknowledgement, or bytes "
        "that arrived",
    ),
    Column(
        *("max_mbps", "double", "Mbit/s", "Mbit/s max", Role.SHOWN),
        cell=lambda row: f"{max(row['flows_mbps']):.4g}",
    ),
    Column("theory_mbps", "double", "Mbit/s", "theory", form="{:.4g}"),
    Column(
        *("theory_flows_mbps", "list<double>", "Mbit/s"),
        meaning="a flow's rate in an empty store-and-forward fabric for acknowledged messages, "
        "else its max-min fair share",
    ),
    Column("of_theory", "double", heading="of theory", form="{:.3f}", brief=True),
    Column(
        *("mean_switches", "double", "", "switches"), form="{:.2f}", meaning="mean over the flows"
    ),
    Column(
        *("max_channel_load", "int32", "flows", "load"),
        meaning="most flows on one channel between switches",
    ),
    Column("lost_frames", "int64", "frames", "lost", form="{:,}"),
    Column("deadlock", "bool"),
    Column("window_s", "double", "s"),
    SHA,
    *validity(_remarks),
    samples=(
        *("part", "fabric", "routes", "pattern", "protocol", "message_bytes", "repeat"),
        Column.sample("flow", "string"),
        Column.sample("goodput_mbps", "double", "Mbit/s"),
        Column.sample("theory_mbps", "double", "Mbit/s"),
        Column.sample("messages", "int64"),
        Column.sample("mean_us", "double", "us"),
        Column.sample("p50_us", "double", "us"),
        Column.sample("max_us", "double", "us"),
    ),
)
