"""The columns of the barrier experiment; times are over all passages of all processes.

As in Iwasaki et al., minimum and maximum are those of each process, averaged over the processes.
A sample is a passage.
"""

from __future__ import annotations

from knotless_experiments.framework.columns import ON, REPEAT, Column, Role, Row, columns, validity


def off(row: Row) -> float:
    """Return the deviation of the mean from the formula, as a fraction of the formula."""
    return float(row["mean_us"] / row["predicted_us"] - 1) if row["predicted_us"] else 0.0


COLUMNS = columns(
    ON,
    Column("algorithm", "string", heading="algorithm", role=Role.CONDITION, brief=True),
    Column("hosts", "int32", heading="hosts", role=Role.CONDITION, brief=True),
    Column("fabric", "string", heading="fabric", role=Role.CONDITION, brief=True),
    Column("engine", "string", heading="engine", role=Role.CONDITION, brief=True),
    Column("vcs", "int32", heading="VCs", role=Role.CONDITION, brief=True),
    Column("networks", "int32", heading="networks", role=Role.CONDITION, brief=True),
    REPEAT,
    Column("barriers", "int32"),
    Column.condition("lists", "int32", meaning="visiting lists; 1 where there are none"),
    Column("rate_mbps", "double", "Mbit/s", role=Role.PARAMETER),
    Column("delay_us", "double", "us", role=Role.PARAMETER),
    Column("message_bytes", "int32", "bytes", role=Role.PARAMETER),
    Column("cut_through", "int32", "bytes", role=Role.PARAMETER),
    Column("computing_us", "double", "us", role=Role.PARAMETER),
    Column("costs", "map<double>", "us", role=Role.PARAMETER),
    Column("mean_us", "double", "us", "mean us", form="{:.2f}", brief=True),
    Column("p99_us", "double", "us", "p99 us", form="{:.2f}"),
    Column("min_us", "double", "us", "min us", form="{:.2f}"),
    Column("max_us", "double", "us", "max us", form="{:.2f}"),
    Column(
        *("predicted_us", "double", "us", "LogP us", Role.RESULT, "{:.2f}"),
        meaning="The formulas of Iwasaki et al. with the measured o_s, L, o_r and g.",
    ),
    Column(
        *("off", "double", "", "off", Role.SHOWN),
        cell=lambda row: f"{100 * off(row):+.1f} %",
        brief=True,
        meaning="How far the measured mean is above the formula.",
    ),
    Column(
        *("one_way_us", "double", "us", "one way us", Role.RESULT, "{:.2f}"),
        meaning="o_s + L + o_r: the mean over pairs of these hosts.",
    ),
    Column(
        *("switches", "double", "", "switches", Role.RESULT, "{:.3f}"),
        meaning="Mean number of switches on a path between two of the hosts.",
    ),
    Column("list_means_us", "list<double>", "us", meaning="the mean of each visiting list"),
    Column(
        *("asked", "int32", "", "asked"),
        meaning="Retransmissions that a process requested because messages were late or lost.",
    ),
    *validity(),
    samples=(
        Column.sample("barrier", "int32"),
        Column.sample("process", "int32"),
        Column.sample("duration_us", "double", "us"),
    ),
)
