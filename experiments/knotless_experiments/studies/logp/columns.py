"""The columns of the LogP experiment; a sample is a parameter of a pair of hosts."""

from __future__ import annotations

from dataclasses import replace

from knotless_experiments.framework.columns import ON, Column, Role, Row, columns, hidden, validity


def _us(name: str, heading: str = "", meaning: str = "") -> Column:
    """Return a column of a time of LogP, see :class:`knotless_experiments.messages.logp.LogP`."""
    shown = bool(heading)
    return Column(
        *(name, "double", "us", heading, Role.RESULT, "{:.2f}"), brief=shown, meaning=meaning
    )


def _valid(row: Row) -> str:
    return "yes" if row["valid"] else "NO: " + "; ".join(row["problems"])


*_HOW, _VALID, _PROBLEMS = validity()
COLUMNS = columns(
    ON,
    Column.condition("fabric", "string"),
    Column.condition("engine", "string"),
    Column("pair", "string", heading="pair", role=Role.CONDITION, brief=True),
    Column(*("switches", "int32", "", "switches"), brief=True, meaning="on the path of the pair"),
    _us("send_us", "o_s us"),
    _us("latency_us", "L us"),
    _us("receive_us", "o_r us"),
    _us("gap_us", "g us"),
    _us("interrupt_us"),
    _us("line_us"),
    _us("one_way_us", "one way us", "o_s + L + o_r"),
    Column("hosts", "int32", meaning="of the fabric"),
    Column("predicted_us", "map<double>", "us", meaning="a barrier of all hosts, by algorithm"),
    *hidden(*_HOW),
    replace(_VALID, cell=_valid),
    *hidden(_PROBLEMS),
    samples=(
        Column.sample("parameter", "string"),
        Column.sample("us", "double", "us"),
    ),
)
