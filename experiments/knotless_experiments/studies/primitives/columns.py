"""The columns of the primitives experiment; a sample is a stage of a row, or the whole of it."""

from __future__ import annotations

from knotless_experiments.framework.columns import Column, Role, columns
from knotless_experiments.workloads.messages.columns import HOSTS, JUDGED, case, metric

COLUMNS = columns(
    case("on", "string"),
    case("operation", "string"),
    case("bytes", "int64", "bytes"),
    *HOSTS,
    metric("median_us", "us"),
    metric("p99_us", "us", Role.RESULT),
    metric("mbit_per_s", "Mbit/s"),
    Column("stages_us", "map<double>", "us", meaning="when each stage of a push begins"),
    *JUDGED,
    samples=(
        Column("stage", "string", role=Role.SAMPLE),
        Column("us", "double", "us", role=Role.SAMPLE),
    ),
)
