"""Columns of the experiments on messages between two hosts."""

from __future__ import annotations

from knotless_experiments.framework.columns import Column, Role, hidden, validity


def three_digits(value: float) -> str:
    """Return a number as text: whole ones as they are, others with three digits."""
    return f"{value:,.3f}" if isinstance(value, float) else str(value)


def metric(name: str, unit: str, role: Role = Role.MEASURE) -> Column:
    """Return a column of a metric that is headed by its name."""
    return Column(name, "double", unit, name, role, three_digits, brief=True)


HOSTS = (
    Column("fabric", "string", role=Role.CASE),
    Column("engine", "string", role=Role.CASE),
    Column("hosts", "string", role=Role.CASE, meaning="CLIENT-SERVER"),
    Column("send_us", "double", "us", role=Role.PARAMETER, meaning="o_s of simulated processors"),
    Column("receive_us", "double", "us", role=Role.PARAMETER, meaning="o_r of them"),
)
"""The fabric, its two hosts, and their processors."""
JUDGED = (
    Column("lost_frames", "int64", "frames"),
    *validity(stretch=False)[:-1],
    *hidden(validity()[-1]),
)
"""Columns that :meth:`knotless_experiments.workloads.messages.pair.Exchanging.judge` adds."""
