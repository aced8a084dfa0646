"""What SONiC's templates make of CONFIG_DB, and links that are down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from knotless.importers.fabric import TableFabric
from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.sonic_fabrics import FOUR_LEAVES, FOUR_NUMBERS, Change, Tables, write_sonic

CYCLE = {"leaf3:Ethernet0/0", "leaf4:Ethernet4/0"}
"""What waits if leaf1 and leaf2 have one link each, to different spines."""
CUT = {"leaf1": ("Ethernet4", "10.0.0.3"), "leaf2": ("Ethernet0", "10.0.0.5")}
"""Their other links: the port, and the address of the spine."""


def _judged(folder: Path, by: str = "bgp") -> ImportedVerdict:
    return verdict_of_imported(read_paths([folder], routes_by=by))


def _cut(folder: Path, change: Change) -> ImportedVerdict:
    return _judged(write_sonic(folder, change, links=FOUR_LEAVES, numbers=FOUR_NUMBERS))


def _port_down(router: str, tables: Tables) -> None:
    if router in CUT:
        tables["PORT"][CUT[router][0]]["admin_status"] = "down"


def _port_without_status(router: str, tables: Tables) -> None:
    if router in CUT:
        del tables["PORT"][CUT[router][0]]["admin_status"]


def _far_port_down(_: str, tables: Tables) -> None:
    for port, far in tables["DEVICE_NEIGHBOR"].items():
        if (CUT.get(far["name"]) or ("",))[0] == far["port"]:
            tables["PORT"][port]["admin_status"] = "down"


def _session_down(router: str, tables: Tables) -> None:
    if router in CUT:
        tables["BGP_NEIGHBOR"][CUT[router][1]]["admin_status"] = "down"


def _sessions_down_by_default(router: str, tables: Tables) -> None:
    if router in CUT:
        tables["DEVICE_METADATA"]["localhost"]["default_bgp_status"] = "down"
        del tables["BGP_NEIGHBOR"][CUT[router][1]]["admin_status"]


def _as_lag(fields: dict[str, str], member_is_up: bool) -> Change:
    """Return what makes the cut links LAGs of one member."""

    def change(router: str, tables: Tables) -> None:
        if router not in CUT:
            return
        port = CUT[router][0]
        address = next(key for key in tables["INTERFACE"] if key.startswith(f"{port}|"))
        del tables["INTERFACE"][address], tables["INTERFACE"][port]
        tables["PORTCHANNEL"] = {"PortChannel1": dict(fields)}
        tables["PORTCHANNEL_MEMBER"] = {f"PortChannel1|{port}": {}}
        tables["PORTCHANNEL_INTERFACE"] = {
            "PortChannel1": {},
            f"PortChannel1|{address.partition('|')[2]}": {},
        }
        tables["PORT"][port]["admin_status"] = "up" if member_is_up else "down"

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(_port_down, _port_without_status, _far_port_down, _session_down),
        *(_sessions_down_by_default, _as_lag({"admin_status": "down"}, True)),
        *(_as_lag({"admin_status": "up"}, False),),
        *(_as_lag({"admin_status": "up", "min_links": "2"}, True),),
    ],
)
def test_links_and_sessions_that_are_down_carry_nothing(change: Change, tmp_path: Path) -> None:
    """Leaves with one link each reach each other over another leaf, which closes a cycle."""
    verdict = _cut(tmp_path, change)
    assert (verdict.acyclic, verdict.missing) == (False, [])
    assert {*verdict.cycle} > CYCLE
    assert verdict.text.startswith("CAN DEADLOCK under PAUSE, with assumed routes: ")


@pytest.mark.parametrize(
    "fields",
    [{"admin_status": "up"}, {"admin_status": "up", "min_links": "1", "mtu": "9100"}],
)
def test_lags_that_are_up_carry_packets(fields: dict[str, str], tmp_path: Path) -> None:
    verdict = _cut(tmp_path, _as_lag(fields, True))
    assert (verdict.acyclic, verdict.missing, verdict.undelivered) == (True, [], 0)


def _without_ports(_: str, tables: Tables) -> None:
    del tables["PORT"]


def _lag_without_status(router: str, tables: Tables) -> None:
    _as_lag({}, True)(router, tables)


@pytest.mark.parametrize("change", [_without_ports, _lag_without_status])
def test_a_state_that_no_file_tells_is_a_missing_fact(change: Change, tmp_path: Path) -> None:
    verdict = _cut(tmp_path, change)
    assert verdict.safe is None
    assert any(text.startswith("whether ") and " is up " in text for text in verdict.missing)


def _tables_of_leaf1(**more: dict[str, dict[str, str]]) -> Change:
    def change(router: str, tables: Tables) -> None:
        if router == "leaf1":
            for table, rows in more.items():
                for key, fields in rows.items():
                    tables.setdefault(table, {}).setdefault(key, {}).update(fields)

    return change


@pytest.mark.parametrize(
    ("table", "key", "fields"),
    [
        ("BGP_AGGREGATE_ADDRESS", "192.168.0.0/16", {"summary-only": "true"}),
        ("BGP_ALLOWED_PREFIXES", "DEPLOYMENT_ID|0", {"default_action": "deny"}),
        ("BGP_PEER_RANGE", "BGPSLBPassive", {"ip_range": "10.0.0.0/8"}),
        ("BGP_GLOBALS", "default", {"max_ebgp_paths": "1"}),
        ("ROUTE_REDISTRIBUTE", "default|connected|bgp|ipv4", {"NULL": "NULL"}),
        ("BGP_NEIGHBOR", "10.0.0.1", {"peer_group_name": "G"}),
        ("BGP_NEIGHBOR", "10.0.0.1", {"local_addr": "10.9.9.9"}),
        ("BGP_DEVICE_GLOBAL", "STATE", {"idf_isolation_state": "isolated_no_export"}),
        ("DEVICE_METADATA", "localhost", {"frr_mgmt_framework_config": "true"}),
        ("DEVICE_METADATA", "localhost", {"docker_routing_config_mode": "split-unified"}),
        ("DEVICE_METADATA", "localhost", {"switch_type": "voq"}),
        ("STATIC_ROUTE", "default|10.9.0.0/16", {"nexthop": "10.0.0.1", "bfd": "true"}),
        (
            "STATIC_ROUTE",
            "default|10.9.0.0/16",
            {"nexthop": "10.0.0.1,10.0.0.3", "ifname": "Ethernet0"},
        ),
    ],
)
def test_tables_that_are_not_followed_are_missing_facts(
    table: str, key: str, fields: dict[str, str], tmp_path: Path
) -> None:
    verdict = _judged(write_sonic(tmp_path, _tables_of_leaf1(**{table: {key: fields}})))
    assert verdict.safe is None
    assert any("leaf1 does to routes" in text for text in verdict.missing)


@pytest.mark.parametrize(
    ("table", "key", "fields"),
    [
        ("BGP_MONITORS", "10.20.30.40", {"asn": "65101"}),
        ("BGP_DEVICE_GLOBAL", "STATE", {"tsa_enabled": "false", "wcmp_enabled": "true"}),
        ("BGP_BBR", "all", {"status": "enabled"}),
        ("DEVICE_METADATA", "localhost", {"suppress-fib-pending": "enabled"}),
    ],
)
def test_tables_that_change_no_route(
    table: str, key: str, fields: dict[str, str], tmp_path: Path
) -> None:
    verdict = _judged(write_sonic(tmp_path, _tables_of_leaf1(**{table: {key: fields}})))
    assert (verdict.safe, verdict.missing, verdict.undelivered) == (True, [], 0)


def _shifted(router: str, tables: Tables) -> None:
    if router == "spine1":
        tables["BGP_DEVICE_GLOBAL"] = {"STATE": {"tsa_enabled": "true"}}


def test_a_spine_without_traffic_announces_its_loopback_alone(tmp_path: Path) -> None:
    fabric = read_paths([write_sonic(tmp_path, _shifted)], routes_by="bgp")
    assert isinstance(fabric, TableFabric)
    used = {
        fabric.channels.names[fabric.channels.tail[hop.channel]]
        for hop in fabric.traffics[0].state.trace("leaf1-Vlan10", "leaf2-Vlan10").hops
        if hop.channel < len(fabric.channels)
    }
    assert "spine2" in used
    assert "spine1" not in used
    verdict = verdict_of_imported(fabric)
    assert (verdict.safe, verdict.missing, verdict.undelivered) == (True, [], 0)


@pytest.mark.parametrize(
    ("fields", "ends"),
    [
        ({"nexthop": "10.0.0.{}", "ifname": "Ethernet0"}, "CAN DEADLOCK"),
        ({"nexthop": "10.0.0.{}"}, "CAN DEADLOCK"),
        ({"nexthop": "0.0.0.0", "ifname": "Ethernet0"}, "UNKNOWN"),  # noqa: S104 - no binding
        ({"ifname": "Ethernet0"}, "UNKNOWN"),
        ({"blackhole": "true"}, "cannot deadlock"),
    ],
)
@pytest.mark.parametrize("by", ["bgp", "static"])
def test_next_hops_of_static_routes(
    fields: dict[str, str], ends: str, by: str, tmp_path: Path
) -> None:
    """Two routers point at each other; by an interface alone, it depends on proxy ARP."""

    def change(router: str, tables: Tables) -> None:
        prefix, far = {"leaf1": ("0.0.0.0/0", 1), "spine1": ("10.96.0.0/16", 0)}.get(
            router, ("", 0)
        )
        if prefix:
            row = {name: value.format(far) for name, value in fields.items()}
            tables["STATIC_ROUTE"] = {f"default|{prefix}": {**row, "advertise": "false"}}
        if by == "static":
            del tables["DEVICE_METADATA"]["localhost"]["bgp_asn"]

    assert _judged(write_sonic(tmp_path, change), by).text.startswith(ends)


def test_static_routes_are_announced_unless_told_otherwise(tmp_path: Path) -> None:
    for advertise, reached in (("true", True), ("false", False)):
        row = {"nexthop": "10.0.0.1", "advertise": advertise}
        change = _tables_of_leaf1(STATIC_ROUTE={"default|10.77.0.0/16": row})
        fabric = read_paths([write_sonic(tmp_path / advertise, change)], routes_by="bgp")
        assert isinstance(fabric, TableFabric)
        name = fabric.destination_called("10.77.0.1")
        hops = fabric.traffics[0].state.trace("leaf2-Vlan10", name).hops
        assert any(hop.channel < len(fabric.channels) for hop in hops) == reached


def test_files_of_frr_and_config_db_that_differ_are_a_missing_fact(tmp_path: Path) -> None:
    folder = write_sonic(tmp_path)
    text = "frr version 8.4\nfrr defaults datacenter\nhostname leaf1\nrouter bgp {}\n"
    (folder / "leaf1" / "frr.conf").write_text(text.format(65_999))
    missing = _judged(folder).missing
    assert "which AS leaf1 has: 65999 (FRR) or 65101 (CONFIG_DB)" in missing
    (folder / "leaf1" / "frr.conf").write_text(text.format(65_101))
    config = folder / "leaf1" / "config_db.json"
    tables = json.loads(config.read_text())
    tables["STATIC_ROUTE"] = {"default|10.9.0.0/16": {"nexthop": "10.0.0.1"}}
    config.write_text(json.dumps(tables))
    assert any("static route to 10.9.0.0/16" in text for text in _judged(folder).missing)
