"""The columns of the clos-failure experiment; a sample is the run of a seed."""

from __future__ import annotations

from knotless_experiments.framework.columns import (
    ON,
    REPEAT,
    Column,
    Role,
    Row,
    columns,
    hidden,
    validity,
)


def _frozen(row: Row) -> str:
    return f"{row['frozen']:,} of {row['seeds']:,} ({row['frozen'] / row['seeds']:.1%})"


def _cycle(names: list[str]) -> str:
    return " ".join(names) or "none"


COLUMNS = columns(
    ON,
    Column.case("fabric", "string"),
    Column.case("without", "string"),
    Column.case("routes", "string"),
    Column("traffic", "string", heading="traffic", role=Role.CASE),
    REPEAT,
    Column.condition("flow_control", "string"),
    Column.condition("rate_mbps", "double", "Mbit/s"),
    Column("vcs", "int32", heading="VCs", role=Role.CONDITION, brief=True),
    Column("first_seed", "int64"),
    Column("seeds", "int32", meaning="runs, each with the next seed"),
    Column(
        *("predicted_cycle", "list<string>", "", "predicted cycle", Role.RESULT, _cycle),
        brief=True,
        meaning="a shortest cycle of channel dependencies that the static check finds",
    ),
    Column(
        *("frozen", "int32", "", "froze", Role.MEASURE),
        cell=_frozen,
        brief=True,
        meaning="runs that deadlocked",
    ),
    Column(
        *("as_predicted", "int32", "", "as predicted"),
        brief=True,
        meaning="of these, runs whose knot is a cycle of the channel dependencies",
    ),
    Column(
        *("knots", "map<int64>"),
        meaning="how many runs froze in each cycle, which begins at its first channel by name",
    ),
    Column(
        *("frozen_after_us", "double", "us", "after", Role.RESULT, "{:.0f} us"),
        meaning="median, over the runs that deadlocked",
    ),
    Column(
        *("lost_frames", "int64", "frames", "lost", Role.MEASURE, "{:,}"), meaning="over all runs"
    ),
    Column("delivered_frames", "int64", "frames", "delivered", form="{:,}", meaning="likewise"),
    *hidden(*validity()),
    samples=(
        *("fabric", "without", "routes", "traffic", "repeat"),
        Column.sample("seed", "int64"),
        Column.sample("deadlock", "bool"),
        Column.sample("since_us", "double", "us"),
        Column.sample("cycle", "string"),
        Column.sample("delivered", "int64", "frames"),
        Column.sample("lost", "int64", "frames"),
    ),
)
