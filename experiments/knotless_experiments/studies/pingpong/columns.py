"""The columns of the ping-pong experiment; a sample has the figures of a row."""

from __future__ import annotations

from knotless_experiments.framework.columns import Column, Role, columns
from knotless_experiments.workloads.messages.columns import HOSTS, JUDGED, metric

COLUMNS = columns(
    Column.case("on", "string"),
    Column.case("kind", "string"),
    Column.case("bytes", "int64", "bytes"),
    *HOSTS,
    Column("count", "int64", meaning="round trips of an emulated row"),
    metric("median_us", "us"),
    Column("mean_us", "double", "us", meaning="of an emulated row"),
    metric("p99_us", "us", Role.RESULT),
    metric("messages_per_s", "1/s"),
    metric("mbit_per_s", "Mbit/s"),
    *JUDGED,
    samples=("median_us", "messages_per_s"),
)
