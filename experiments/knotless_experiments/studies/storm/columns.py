"""The columns of the storm experiment; a sample is a look at a running fabric."""

from __future__ import annotations

from knotless_experiments.framework.columns import (
    ON,
    REPEAT,
    SHA,
    Column,
    Role,
    Row,
    columns,
    hidden,
    validity,
)


def _channels(row: Row) -> str:
    return f"{row['stopped_channels']} of {row['channels']}"


def _flows(row: Row) -> str:
    return f"{row['stopped_flows']} of {row['flows']}"


def _ms(value: float) -> str:
    return f"{value:.0f} ms"


COLUMNS = columns(
    ON,
    Column.case("fabric", "string"),
    Column.case("traffic", "string"),
    Column.case("protection", "string"),
    REPEAT,
    Column("seed", "int64"),
    Column("engine", "string", heading="engine", role=Role.CONDITION),
    Column.condition("flow_control", "string"),
    Column.condition("rate_mbps", "double", "Mbit/s"),
    Column(
        "host", "string", meaning="the host that pauses its link from the beginning of the storm"
    ),
    Column("channels", "int32", meaning="all channels but that to the host"),
    Column(
        *("stopped_channels", "int32", "", "channels stopped", Role.MEASURE),
        cell=_channels,
        brief=True,
        meaning="the most that stood still behind the host at a look",
    ),
    Column("flows", "int32", meaning="those of which the host is not the destination"),
    Column(
        *("stopped_flows", "int32", "", "flows stopped", Role.MEASURE),
        cell=_flows,
        brief=True,
        meaning="the most of which nothing arrived between two looks",
    ),
    Column(
        *("spread_ms", "double", "ms", "after", Role.RESULT, _ms),
        meaning="from the beginning of the storm until so many channels stood still",
    ),
    Column(
        *("depth", "int32", "", "depth"),
        meaning="channels one behind the other in the tree of first pauses that begins at the host",
    ),
    Column(
        *("first_pauses", "list<string>"),
        meaning="the channels of this tree, each with the time from the beginning of the storm and"
        " the channel because of which it was paused",
    ),
    Column(
        *("well_again_ms", "double", "ms", "well again after", Role.MEASURE),
        form=_ms,
        brief=True,
        meaning="from the beginning of the storm until nothing stood still any more, although the"
        " host still asks for its pause; None: never",
    ),
    Column(
        *("storms", "int32", "", "queues in storms"),
        meaning="in which a watchdog has detected a storm",
    ),
    Column(
        *("lost_frames", "int64", "frames", "lost", Role.MEASURE, "{:,}"),
        meaning="to the host that pauses, or from it",
    ),
    Column(
        *("lost_others", "int64", "frames", "lost of others", Role.MEASURE, "{:,}"),
        brief=True,
        meaning="of the other flows",
    ),
    Column(
        *("delivered_share", "double", "", "others delivered", Role.MEASURE, "{:.1%}"),
        brief=True,
        meaning="of what the other flows send from the beginning of the storm, on average, what"
        " arrived",
    ),
    Column("deadlock", "bool", meaning="whether a deadlock formed as well"),
    SHA,
    *hidden(*validity()),
    samples=(
        *("fabric", "traffic", "protection", "repeat"),
        Column.sample("t_ms", "double", "ms", meaning="from the beginning of the storm"),
        Column.sample("standing", "int32", meaning="channels that stand still"),
        Column.sample("silent", "int32", meaning="other flows that stand still"),
    ),
)
