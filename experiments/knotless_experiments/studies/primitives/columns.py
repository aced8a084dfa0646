"""The columns of the primitives experiment; a sample is a stage of a row, or the whole of it."""

from __future__ import annotations

from knotless_experiments.framework.columns import Column, Role, columns
from knotless_experiments.workloads.messages.columns import HOSTS, JUDGED, metric

COLUMNS = columns(
    Column.case("on", "string"),
    Column.case("operation", "string"),
    Column.case("bytes", "int64", "bytes"),
    *HOSTS,
    metric("median_us", "us"),
    metric("p99_us", "us", Role.RESULT),
    metric("mbit_per_s", "Mbit/s"),
    Column("stages_us", "map<double>", "us", meaning="when each stage of a push begins"),
    *JUDGED,
    samples=(
        Column.sample("stage", "string"),
        Column.sample("us", "double", "us"),
    ),
)
