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
    Column("fabric", "string", heading="fabric", role=Role.CASE, brief=True),
    Column("without", "string", heading="without", role=Role.CASE, brief=True),
    Column("routes", "string", heading="routes", role=Role.CASE, brief=True),
    Column("traffic", "string", heading="traffic", role=Role.CASE),
    REPEAT,
    Column("flow_control", "string", role=Role.CONDITION),
    Column("rate_mbps", "double", "Mbit/s", role=Role.CONDITION),
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
        Column("seed", "int64", role=Role.SAMPLE),
        Column("deadlock", "bool", role=Role.SAMPLE),
        Column("since_us", "double", "us", role=Role.SAMPLE),
        Column("cycle", "string", role=Role.SAMPLE),
        Column("delivered", "int64", "frames", role=Role.SAMPLE),
        Column("lost", "int64", "frames", role=Role.SAMPLE),
    ),
)
