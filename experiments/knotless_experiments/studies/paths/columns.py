"""The columns of the paths experiment, from the rules of a plan; a sample is a switch of a row."""

from __future__ import annotations

from knotless_experiments.framework.columns import (
    ON,
    REPEAT,
    Column,
    Role,
    columns,
    hidden,
    validity,
)

COLUMNS = columns(
    ON,
    Column.case("fabric", "string"),
    Column.condition("engine", "string"),
    Column.case("routes", "string"),
    Column("select", "string", heading="selection", role=Role.CONDITION),
    Column("vlan_assignment", "string", heading="VLANs as", role=Role.CASE),
    REPEAT,
    Column("hosts", "int32", heading="hosts"),
    Column("switches", "int32", heading="switches"),
    Column("links", "int32", heading="links"),
    Column("vlans", "int32", heading="VLANs", role=Role.MEASURE, brief=True),
    Column("vcs", "int32", heading="VCs", role=Role.CONDITION, brief=True),
    Column(
        *("mean_switches", "double", "", "mean", Role.MEASURE, "{:.2f}"),
        brief=True,
        meaning="over the paths of all ordered pairs of hosts; a host to itself counts as one",
    ),
    Column(
        *("max_switches", "int32", "", "most", Role.MEASURE), brief=True, meaning="over the same"
    ),
    Column(
        *("max_channel_load", "int32", "paths", "paths on a channel", Role.MEASURE, "{:,}"),
        brief=True,
        meaning="the most on a channel between switches",
    ),
    Column("rules_max_switch", "int32", heading="rules", form="{:,}"),
    Column(
        *("minimal", "bool", "", "minimal", Role.RESULT, lambda flag: "yes" if flag else "no"),
        meaning="all paths are shortest paths",
    ),
    Column("acyclic", "bool", heading="acyclic", brief=True),
    Column("cycle", "list<string>", meaning="of channel dependencies under PFC"),
    Column(
        *("undelivered", "int32", "pairs", "undelivered"),
        meaning="pairs whose frames do not arrive as they should",
    ),
    *hidden(*validity()),
    samples=(
        Column.sample("switch", "string"),
        Column.sample("rules", "int32"),
    ),
    measures=("mean_switches", "max_switches", "max_channel_load", "vlans"),
)
