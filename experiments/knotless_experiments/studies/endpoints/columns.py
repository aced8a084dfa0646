"""The columns of the endpoints experiment: lists are in the order of ``flows``."""

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


def _frozen(row: Row) -> str:
    return f"after {row['frozen_after_ms']:,.0f} ms" if row["deadlock"] else "no"


def _cycle(names: list[str]) -> str:
    return " ".join(names) or "-"


COLUMNS = columns(
    ON,
    Column.case("fabric", "string"),
    Column.case("endpoints", "string", meaning="the preset or file of message classes"),
    REPEAT,
    Column.condition("flow_control", "string"),
    Column.condition("rate_mbps", "double", "Mbit/s"),
    Column.condition("delay_us", "double", "us"),
    Column(
        *("safe", "bool", "", "called safe"),
        brief=True,
        meaning="the verdict on the plan with these hosts",
    ),
    Column(
        *("reserves", "list<string>"),
        meaning="for each class that requires another, the inequality of what a host reserves",
    ),
    Column("window_s", "double", "s", meaning="how long hosts sent requests"),
    Column("flows", "list<string>", meaning="who sends requests to whom"),
    Column("requests", "list<int64>", meaning="of each flow, those that were taken"),
    Column(
        *("deadlock", "bool", "", "froze", Role.RESULT),
        cell=_frozen,
        brief=True,
        meaning="emulated: at the end, no frame had moved for a second, and some were in the"
        " network; simulated: the model's exact condition",
    ),
    Column(
        *("frozen_after_ms", "double", "ms"),
        meaning="when the last frame moved at the latest; simulated: when the last channel stopped",
    ),
    Column(
        *("cycle", "list<string>", "", "cycle", Role.RESULT, _cycle),
        meaning="emulated: of waits in the verdict, between channels that were paused all the time"
        " since; simulated: the knot",
    ),
    Column(
        *("buffer_peak_bytes", "int64", "bytes", "peak of a receive buffer", Role.MEASURE, "{:,}"),
        meaning="emulated: the most bytes that a host had received and could not take; more than it"
        " has room for if its program ran late, and paused late",
    ),
    Column("buffer_bytes", "int64", "bytes", meaning="what a host has room for, of headroom too"),
    Column("lost_frames", "int64", "frames", "lost", Role.MEASURE, "{:,}"),
    SHA,
    *hidden(*validity()),
)
