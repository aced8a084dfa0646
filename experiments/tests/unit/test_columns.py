"""Columns are declared once: stored rows, samples and tables follow from the declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from knotless.results import stored
from knotless_experiments.framework import experiment as catalogue
from knotless_experiments.framework.columns import REPEAT, Column, Role, columns, validity
from tests.support.every import holds_for_every

OLD = {"lateness_us_p99", "late", "late_attempts"}
"""Keys of stored rows that are not written any more."""
EXAMPLE = columns(
    Column("fabric", "string", heading="fabric", role=Role.CASE, brief=True),
    Column("mbps", "double", "Mbit/s", "Mbit/s", Role.MEASURE, "{:.1f}"),
    Column("lost", "int32", default=0),
    Column("rate", "double", role=Role.PARAMETER),
    REPEAT,
    *validity(),
    samples=("fabric", "repeat", Column("t_s", "double", role=Role.SAMPLE)),
)


def rows_have_declared_columns(run: Mapping[str, Any]) -> None:
    declared = catalogue.load(run["experiment"]).columns.stored()
    for row in run["rows"]:
        assert set(row) - OLD <= set(declared)
        for name in set(row) - OLD:
            assert declared[name].accepts(row[name]), (name, row[name])


def test_stored_rows_have_declared_columns_of_their_types() -> None:
    holds_for_every(rows_have_declared_columns, stored.read().runs, lambda run: str(run["id"]))


@pytest.mark.parametrize("name", catalogue.names())
def test_columns_are_declared_once(name: str) -> None:
    declared = catalogue.load(name).columns
    for names in (
        [c.name for c in declared.every],
        declared.headings,
        [c.name for c in declared.samples],
    ):
        assert len(names) == len(set(names))
    assert set(declared.measures) == {c.name for c in declared.every if c.role is Role.MEASURE}
    assert set(declared.brief.headings) <= set(declared.headings)


def test_a_row_has_what_is_declared_and_nothing_else() -> None:
    assert EXAMPLE.row(repeat=1, fabric="a", mbps=2) == {
        "repeat": 1,
        "fabric": "a",
        "mbps": 2,
        "lost": 0,
    }
    with pytest.raises(TypeError, match="there is no column 'speed'"):
        EXAMPLE.row(repeat=1, fabric="a", mbps=2.0, speed=1)
    with pytest.raises(TypeError, match="'mbps': '2' is not of type double"):
        EXAMPLE.row(repeat=1, fabric="a", mbps="2")
    with pytest.raises(TypeError, match="'repeat' has no value"):
        EXAMPLE.row(fabric="a", mbps=2.0)
    with pytest.raises(TypeError, match="column 'x': there is no type 'list<text>'"):
        Column("x", "list<text>")


def test_tables_and_samples_follow_from_columns() -> None:
    row = {**EXAMPLE.row(fabric="a", mbps=2.25, repeat=3), "stretch": None, "valid": False}
    row["problems"] = ["one", "two"]
    assert EXAMPLE.headings == ["fabric", "Mbit/s", "run", "stretch", "valid", "remarks"]
    assert EXAMPLE.table([row]) == [["a", "2.2", "3", "-", "NO", "one; two"]]
    assert EXAMPLE.brief.headings == ["fabric", "valid"]
    assert EXAMPLE.less_brief("fabric").brief.headings == ["valid"]
    assert EXAMPLE.head(row) == {"fabric": "a", "repeat": 3}
    assert EXAMPLE.sample_types == {
        "row": "int32",
        "fabric": "string",
        "repeat": "int32",
        "t_s": "double",
    }
    assert (EXAMPLE.identity, EXAMPLE.measures) == (("fabric",), ("mbps",))
    assert EXAMPLE.conditions == ("fabric", "rate", "slow_down")
