"""The columns of the NAS kernels; a sample is a pair of processes of a row."""

from __future__ import annotations

from knotless_experiments.framework.columns import ON, REPEAT, Column, Role, Row, columns, validity
from knotless_experiments.framework.routed import Routed


def name_of(row: Row) -> str:
    """Return the name of a kernel with its class, such as ``CG.S``."""
    return f"{row['kernel'].upper()}.{row['class']}"


def _seconds(row: Row) -> str:
    return "froze" if row["deadlock"] else f"{row['seconds']:.4g}"


COLUMNS = columns(
    ON,
    Column.case("fabric", "string", form=lambda spec: Routed(spec).name),
    Column.condition("engine", "string"),
    Column.condition("vcs", "int32"),
    Column.case("routes", "string"),
    Column.case("kernel", "string", cell=name_of),
    Column("class", "string", role=Role.CASE),
    Column.case("processes", "int32"),
    Column("computing", "double", role=Role.PARAMETER, meaning="a factor for times of computing"),
    REPEAT,
    Column("seconds", "double", "s", "seconds", Role.MEASURE, cell=_seconds, brief=True),
    Column(
        *("verified", "bool", "", "verified"), brief=True, meaning="the result is the official one"
    ),
    Column("error", "double", meaning="how far it is from the official one"),
    Column("messages", "int64", heading="messages", form="{:,}"),
    Column(
        *("bytes", "int64", "bytes", "MB", Role.MEASURE, lambda size: f"{size / 1e6:.2f}"),
        brief=True,
        meaning="payload of all messages",
    ),
    Column("deadlock", "bool"),
    Column("cycle", "list<string>"),
    *validity(),
    samples=(
        Column.sample("source", "int32"),
        Column.sample("destination", "int32"),
        Column.sample("messages", "int64"),
        Column.sample("bytes", "int64", "bytes"),
    ),
)
