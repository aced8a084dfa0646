"""Mistakes in the tables of routers that lose packets or change their priorities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from knotless.importers.causes import Place, content, places_of
from knotless.importers.paths import read_paths
from knotless.importers.prefixes import prefix_of, ranges_of
from knotless.importers.routers.buffers import headroom_bytes
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.changed_fabrics import Config, changed
from tests.support.router_nets import leaf_spine

NO_BUFFERS = ["no BUFFER_PROFILE of leaf0 and 2 more: reserves and headroom are not known"]


def line_of(place: Place) -> str:
    return Path(place.file).read_text().splitlines()[(place.line or 1) - 1]


def judged(folder: Path, change: dict[str, dict[str, dict[str, Any]]]) -> ImportedVerdict:
    """Judge a fabric in which rows of leaf1 have other fields."""
    file = leaf_spine(2, 2).write(folder) / "leaf1" / "config_db.json"
    config = json.loads(file.read_text())
    for table, rows in change.items():
        for key, fields in rows.items():
            config.setdefault(table, {}).setdefault(key, {}).update(fields)
    file.write_text(json.dumps(config))
    return verdict_of_imported(read_paths([folder]))


@pytest.mark.parametrize(
    ("length", "rate", "xoff", "needed"),
    [
        ("300m", 100_000, 48_043, 48_043),
        ("300m", 100_000, 48_042, 48_043),
        ("5m", 400_000, 9, 12690),
    ],
)
def test_headroom(length: str, rate: int, xoff: int, needed: int, tmp_path: Path) -> None:
    """300 m of cable hold 37,878 bytes in both directions at 100 Gb/s, and two frames are sent."""
    assert headroom_bytes(float(length[:-1]), rate, 9100, 1024) == needed
    verdict = judged(
        tmp_path,
        {
            "PORT": {"Ethernet0": {"speed": str(rate), "mtu": "9100"}},
            "CABLE_LENGTH": {"AZURE": {"Ethernet0": length}},
            "BUFFER_PG": {"Ethernet0|3-4": {"profile": "lossless"}},
            "BUFFER_PROFILE": {"lossless": {"xoff": str(xoff), "size": "20000"}},
        },
    )
    lines = [line for line in verdict.problems if "headroom" in line]
    assert verdict.acyclic is True
    assert len(lines) == (xoff < needed)
    for line in lines:
        assert line.startswith("leaf1:Ethernet0: priority groups 3 to 4 have a headroom (xoff) of")
        assert f"need at least {needed}" in line


def test_a_lossless_pattern_and_a_profile_that_the_switch_computes(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path,
        {
            "PORT": {"Ethernet0": {"speed": "100000", "mtu": "1500"}},
            "CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m", "Ethernet4": "2000m"}},
            "LOSSLESS_TRAFFIC_PATTERN": {"AZURE": {"mtu": "4096"}},
            "BUFFER_PG": {
                "Ethernet0|3": {"profile": "a"},
                "Ethernet4|3": {"profile": "computed"},
            },
            "BUFFER_PROFILE": {"a": {"xoff": "10000"}, "computed": {"dynamic_th": "0"}},
        },
    )
    needed = headroom_bytes(40, 100_000, 1500, 4096)
    assert [line.rpartition("least ")[2] for line in verdict.problems if "headroom" in line] == [
        f"{needed}: packets can be lost"
    ]


def test_asymmetric_pfc_and_priorities_that_change(tmp_path: Path) -> None:
    maps = {"TC_TO_PRIORITY_GROUP_MAP": {"OTHER": {"3": "4", "4": "3"}}}
    uses = {"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3", "tc_to_pg_map": "OTHER"}}}
    verdict = judged(tmp_path, {**maps, **uses})
    text = "\n".join(verdict.problems)
    assert "spine0:Ethernet4 has priority 4 lossless, which leaf1:Ethernet0 neither pauses" in text
    assert "leaf1:Ethernet0: DSCP" in text


@pytest.mark.parametrize(
    ("port", "line", "loses"),
    [
        ({"mtu": "1500"}, "r0:Ethernet0 takes no more than 1500: longer ones are lost", True),
        ({"speed": "40000"}, "r0:Ethernet0 has 40000 Mbit/s, and r1:Ethernet4 100000", False),
        ({"speed": "40000", "autoneg": "on"}, "", False),
        ({"fec": "rs"}, "", False),
        ({"mtu": "9100"}, "", False),
    ],
)
def test_the_ends_of_a_link_are_judged_together(
    tmp_path: Path, port: dict[str, str], line: str, loses: bool
) -> None:
    def config(tables: Config) -> None:
        tables["PORT"]["Ethernet0"].update(port)

    folder = changed(tmp_path, "control-safe", config, routers=("r0",))
    verdict = verdict_of_imported(read_paths([folder]))
    ends = [text for text in verdict.problems if "Ethernet4" in text and "r1" in text]
    assert len(ends) == bool(line)
    for text in ends:
        assert line in text
        assert (text in verdict.losses) == loses
        places = places_of(verdict.causes, content)[text]
        assert [Path(place.file).parent.name for place in places] == ["r0", "r1"]
        assert all(f'"{next(iter(port))}"' in line_of(place) for place in places)


def test_a_management_vrf_is_left_out(tmp_path: Path) -> None:
    folder = leaf_spine(2, 1).write(tmp_path)
    file = folder / "leaf0" / "appl_db.json"
    values = json.loads(file.read_text())
    values["ROUTE_TABLE:mgmt:0.0.0.0/0"] = {"nexthop": "192.168.0.1", "ifname": "eth0"}
    file.write_text(json.dumps(values))
    verdict = verdict_of_imported(read_paths([folder]))
    assert (verdict.acyclic, verdict.missing, verdict.notes) == (True, [], NO_BUFFERS)
    assert verdict.switches == 3


def test_vlans_between_switches_are_named(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"VLAN_MEMBER": {"Vlan10|Ethernet0": {}, "Vlan10|Ethernet64": {}}})
    assert verdict.acyclic is None
    assert verdict.missing == ["what Vlan10 of leaf1 sends to spine0 by Ethernet0: it is switched"]


@pytest.mark.parametrize("prefix", ["2001:db8::/32", "ffff::/16"])
def test_nothing_lies_between_the_addresses_of_two_kinds(prefix: str, tmp_path: Path) -> None:
    """A router without routes can do anything with the addresses that others know: no others."""
    folder = leaf_spine(2, 2).write(tmp_path)
    routes = folder / "leaf1" / "appl_db.json"
    table = json.loads(routes.read_text())
    hops = {"nexthop": "", "ifname": "Vlan1000"}
    known = {f"ROUTE_TABLE:{text}": hops for text in ("0.0.0.0/0", prefix)}
    (routes.parent / "appl_db.json").write_text(json.dumps({**table, **known}))
    (folder / "leaf0" / "appl_db.json").unlink()
    verdict = verdict_of_imported(read_paths([folder]))
    assert verdict.acyclic is None
    assert "the routes of leaf0" in verdict.missing


def test_ranges_have_a_name_and_end_with_their_kind() -> None:
    prefixes = [prefix_of(text) for text in ("10.0.0.0/8", "::/0", "02:00:00:00:00:01@10")]
    ranges = ranges_of(prefixes)
    texts = [ranges.text(place) for place in np.flatnonzero(~ranges.gaps).tolist()]
    assert texts == [
        "10.0.0.0/8",
        "11.0.0.0..",
        "::/0",
        "00:00:00:00:00:00@0",
        "02:00:00:00:00:01@10",
    ]
    assert int(ranges.gaps.sum()) == 2
