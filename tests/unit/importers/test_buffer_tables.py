"""The buffer tables of a SONiC switch, as one value."""

from __future__ import annotations

import pytest

from knotless.importers.sonic.buffer_tables import (
    COMPUTED,
    BufferTables,
    read_buffers,
)

LOSSLESS = {"pool": "in", "size": "9000", "xoff": "4000", "xon_offset": "1500", "dynamic_th": "-3"}


def read(**tables: dict[str, dict[str, str]]) -> BufferTables:
    return read_buffers({f"BUFFER_{name}": rows for name, rows in tables.items()})


def test_rows_of_appl_db_are_in_force() -> None:
    buffers = read(
        PROFILE={"a": LOSSLESS},
        PROFILE_TABLE={"a": {**LOSSLESS, "size": "7000"}},
        PG={"Ethernet0,Ethernet4|3-4": {"profile": "a"}},
        PG_TABLE={"Ethernet4:3-4": {"profile": "b"}},
    )
    assert buffers.profiles["a"].size == 7000
    assert [row.name for row in buffers.groups["Ethernet0"]] == ["a"]
    assert [(row.name, row.profile) for row in buffers.groups["Ethernet4"]] == [
        ("a", buffers.profiles["a"]),
        ("b", None),
    ]


def test_what_the_switch_computes_comes_last() -> None:
    buffers = read(
        PROFILE={"a": LOSSLESS},
        PG={"Ethernet0|3-4": {"profile": COMPUTED}, "Ethernet0|3": {"profile": "a"}},
    )
    rows = [(row.name, list(row.numbers)) for row in buffers.groups["Ethernet0"]]
    assert rows == [("a", [3]), (COMPUTED, [3, 4])]


@pytest.mark.parametrize(
    ("fields", "size", "xoff", "alpha", "limit", "is_lossless"),
    [
        (LOSSLESS, 9000, 4000, 0.125, None, True),
        ({"size": "0", "static_th": "0"}, 0, None, None, 0, False),
        ({"size": "-1", "xoff": "much", "dynamic_th": "x"}, None, None, None, None, True),
        ({"size": "1" * 11}, None, None, None, None, False),
    ],
)
def test_what_is_no_number_is_not_known(
    fields: dict[str, str],
    size: int | None,
    xoff: int | None,
    alpha: float | None,
    limit: int | None,
    is_lossless: bool,
) -> None:
    profile = read(PROFILE={"a": fields}).profiles["a"]
    assert (profile.size, profile.xoff, profile.alpha) == (size, xoff, alpha)
    assert (profile.limit, profile.is_lossless) == (limit, is_lossless)


@pytest.mark.parametrize(
    ("pool", "profile", "reserved"),
    [
        ({}, LOSSLESS, 5000),
        ({"xoff": "100000"}, LOSSLESS, 9000),
        ({}, {**LOSSLESS, "size": "3000"}, 3000),
        ({}, {**LOSSLESS, "pool": "other"}, 9000),
    ],
)
def test_a_size_may_include_headroom(
    pool: dict[str, str], profile: dict[str, str], reserved: int
) -> None:
    buffers = read(POOL={"in": {"type": "ingress", "size": "1", **pool}}, PROFILE={"a": profile})
    assert buffers.reserved(buffers.profiles["a"]) == reserved


def test_limits_of_whole_ports_name_their_profiles() -> None:
    buffers = read(
        PROFILE={"a": LOSSLESS},
        PORT_INGRESS_PROFILE_LIST={"Ethernet0": {"profile_list": "a,gone"}, "Ethernet4": {}},
    )
    assert buffers.limits_of_ports == {buffers.profiles["a"], None}
