"""The columns of the message passing experiment; a sample is a repetition of a row."""

from __future__ import annotations

from knotless_experiments.framework.columns import ON, REPEAT, Column, Role, Row, columns, validity
from knotless_experiments.framework.routed import Routed

TITLES = {
    "pingpong": "PingPong",
    "sendrecv": "SendRecv",
    "alltoall": "Alltoall",
    "barrier": "Barrier",
}


def ms(value_us: float | None) -> str:
    """Return a time in milliseconds as text."""
    return "-" if value_us is None else f"{value_us / 1000:.2f} ms"


def _time(row: Row) -> str:
    return "froze" if row["deadlock"] else ms(row["time_us"])


COLUMNS = columns(
    ON,
    Column.case("fabric", "string", form=lambda spec: Routed(spec).name),
    Column.condition("engine", "string"),
    Column.condition("vcs", "int32"),
    Column.case("routes", "string"),
    Column("measurement", "string", "", "measurement", Role.CASE, TITLES.__getitem__, brief=True),
    Column.case("bytes", "int64", "bytes", form=lambda size: str(size) if size else "-"),
    Column.case("processes", "int32"),
    REPEAT,
    Column("repetitions", "int32"),
    Column(
        *("time_us", "double", "us", "time", Role.MEASURE),
        cell=_time,
        brief=True,
        meaning="median over the repetitions, each the time of the slowest process",
    ),
    Column("min_us", "double", "us", "from", form=ms),
    Column("max_us", "double", "us", "to", form=ms),
    Column(
        *("mbps", "double", "Mbit/s", "Mbit/s", Role.MEASURE, "{:.2f}"),
        brief=True,
        meaning="payload that a process sends in that time",
    ),
    Column("deadlock", "bool"),
    Column("cycle", "list<string>"),
    *validity(),
    samples=(
        Column.sample("repetition", "int32"),
        Column.sample("time_us", "double", "us"),
    ),
)
