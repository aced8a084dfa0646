"""Cables between routers: from LLDP, and from what there is instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knotless.importers.fabric import ImportedFabric
from knotless.importers.paths import read_paths
from knotless.topologies.layout import place_switches
from knotless.verification.imported import verdict_of_imported
from tests.support import REPOSITORY
from tests.support.classical_deadlocks import bounce
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import leaf_spine


def change(folder: Path, name: str, edit: Any) -> None:
    """Edit the JSON files of this name of all switches."""
    for file in sorted(folder.glob(f"*/{name}")):
        values = json.loads(file.read_text())
        edit(file.parent.name, values)
        file.write_text(json.dumps(values))


def without_lldp(net: RouterNet, folder: Path) -> Path:
    def edit(_switch: str, values: dict[str, Any]) -> None:
        for key in [key for key in values if key.startswith("LLDP")]:
            del values[key]

    change(net.write(folder), "appl_db.json", edit)
    return folder


def links_of(imported: ImportedFabric) -> set[str]:
    """Return the links by the names of switches and ports."""
    channels = imported.channels
    return {channels.name(channel, 0) for channel in range(len(channels))}


def test_every_source_gives_the_same_cables(tmp_path: Path) -> None:
    net = bounce()
    heard = read_paths([net.write(tmp_path / "lldp")])
    assert len(heard.fabric.links) == 6
    assert verdict_of_imported(heard).acyclic is False

    meant = without_lldp(net, tmp_path / "meant")

    def add(switch: str, values: dict[str, Any]) -> None:
        values["DEVICE_NEIGHBOR"] = {
            port: {"name": peer, "port": json_alias(net, peer, peer_port)}
            for (name, port), (peer, peer_port) in net.peers.items()
            if name == switch
        }

    change(meant, "config_db.json", add)

    listed = without_lldp(net, tmp_path / "listed")
    edges = [
        {
            "node1": {"hostname": a[0], "interfaceName": a[1]},
            "node2": {"hostname": b[0], "interfaceName": b[1]},
        }
        for a, b in net.cables
    ]
    (listed / "layer1_topology.json").write_text(json.dumps({"edges": edges}))

    shared = without_lldp(net, tmp_path / "shared")

    def connect(switch: str, values: dict[str, Any]) -> None:
        for number, cable in enumerate(net.cables):
            for name, port in cable:
                if name == switch:
                    values[f"ROUTE_TABLE:10.255.{number}.0/31"] = {"nexthop": "", "ifname": port}

    change(shared, "appl_db.json", connect)

    for folder, message in ((meant, "meant, not seen"), (listed, ""), (shared, "are inferred")):
        imported = read_paths([folder])
        assert links_of(imported) == links_of(heard), folder
        verdict = verdict_of_imported(imported)
        assert (verdict.acyclic, verdict.missing) == (False, [])
        assert any(message in note for note in verdict.notes) or not message


def json_alias(net: RouterNet, switch: str, port: str) -> str:
    """Return the alias of a port, by which minigraphs call it."""
    alias = net.config(switch)["PORT"][port]["alias"]
    assert isinstance(alias, str)
    return alias


def test_without_cables_the_verdict_is_unknown(tmp_path: Path) -> None:
    verdict = verdict_of_imported(read_paths([without_lldp(leaf_spine(2, 2), tmp_path)]))
    assert verdict.acyclic is None
    assert "what port Ethernet0 of leaf0 leads to" in verdict.missing


def test_a_cable_heard_at_one_end_is_enough(tmp_path: Path) -> None:
    folder = leaf_spine(3, 2).write(tmp_path)
    whole = links_of(read_paths([folder]))
    for switch in ("spine0", "spine1"):
        file = folder / switch / "appl_db.json"
        values = json.loads(file.read_text())
        kept = {key: row for key, row in values.items() if not key.startswith("LLDP")}
        file.write_text(json.dumps(kept))
    assert links_of(read_paths([folder])) == whole


def test_ports_by_mac_address_and_names_with_a_domain(tmp_path: Path) -> None:
    folder = leaf_spine(3, 2).write(tmp_path, "frr")
    whole = links_of(read_paths([folder]))

    def edit(_switch: str, values: dict[str, Any]) -> None:
        for item in values["lldp"]["interface"]:
            for port in item.values():
                (name,) = port["chassis"]
                port["chassis"] = {f"{name}.example.net": port["chassis"][name]}
                port["port"]["id"] = {"type": "mac", "value": "02:00:00:00:00:09"}

    change(folder, "lldp.json", edit)
    assert links_of(read_paths([folder])) == whole


def test_neighbours_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    folder = leaf_spine(3, 2).write(tmp_path)
    file = folder / "leaf0" / "appl_db.json"
    values = json.loads(file.read_text())
    entry = values["LLDP_ENTRY_TABLE:Ethernet0"]
    entry.update(lldp_rem_port_id="Ethernet8", lldp_rem_port_desc="")
    file.write_text(json.dumps(values))
    verdict = verdict_of_imported(read_paths([folder]))
    assert verdict.acyclic is None
    assert any(text.startswith("what port Ethernet") for text in verdict.missing)


def test_parts_of_a_fabric_can_be_drawn(tmp_path: Path) -> None:
    """Two leaves, and two spines that are connected with each other but not with them."""
    net = leaf_spine(2, 1)
    net.cables = [(("spine0", "Ethernet0"), ("spine9", "Ethernet0"))]
    net.routes["spine9"] = {}
    net.qos["spine9"] = net.qos["spine0"]
    net.write(tmp_path / "net")
    places = place_switches(read_paths([tmp_path / "net"]).fabric)
    assert sorted(places) == ["leaf0", "leaf1", "spine0", "spine9"]


def test_a_server_that_speaks_lldp_is_no_switch(tmp_path: Path) -> None:
    folder = leaf_spine(3, 2).write(tmp_path)
    file = folder / "leaf0" / "appl_db.json"
    values = json.loads(file.read_text())
    values["LLDP_ENTRY_TABLE:Ethernet96"] = {
        "lldp_rem_sys_name": "server7",
        "lldp_rem_port_id": "02:00:00:00:00:07",
        "lldp_rem_sys_cap_enabled": "00 80",
    }
    file.write_text(json.dumps(values))
    assert verdict_of_imported(read_paths([folder])).acyclic is True
    values["LLDP_ENTRY_TABLE:Ethernet96"]["lldp_rem_sys_cap_enabled"] = "28 00"
    file.write_text(json.dumps(values))
    verdict = verdict_of_imported(read_paths([folder]))
    assert verdict.missing == ["the files of server7"]


def test_a_route_out_of_the_fabric(tmp_path: Path) -> None:
    """A default route to a router outside, known by LLDP: whether it forwards, the user says."""
    net = leaf_spine(3, 2)
    for leaf in ("leaf0", "leaf1", "leaf2"):
        ups = [("169.254.0.1", "Ethernet0"), ("169.254.0.2", "Ethernet4")]
        net.routes[leaf]["0.0.0.0/0"] = [("192.0.2.1", "Ethernet96")] if leaf == "leaf0" else ups
    for spine in ("spine0", "spine1"):
        net.routes[spine]["0.0.0.0/0"] = [("169.254.0.1", "Ethernet0")]
    folder = net.write(tmp_path)
    verdict = verdict_of_imported(read_paths([folder]))
    assert verdict.missing[0] == "what port Ethernet96 of leaf0 leads to"
    file = folder / "leaf0" / "appl_db.json"
    values = json.loads(file.read_text())
    values["LLDP_ENTRY_TABLE:Ethernet96"] = {"lldp_rem_sys_name": "isp", "lldp_rem_port_id": "x"}
    file.write_text(json.dumps(values))
    assert verdict_of_imported(read_paths([folder])).missing[0] == "the files of isp"
    verdict = verdict_of_imported(read_paths([folder], ["isp"]))
    assert verdict.acyclic is True
    assert verdict.hosts == 4
    assert (verdict.pairs, verdict.undelivered) == (12, 0)


UPPER = REPOSITORY / "tests" / "data" / "fabrics" / "upper-case-names"


def test_host_names_do_not_depend_on_case() -> None:
    """LLDP says LEAF0, the configuration leaf0."""
    imported = read_paths([UPPER])
    assert len(imported.fabric.switches) == 5
    assert len(imported.fabric.links) == 6
    verdict = verdict_of_imported(imported)
    assert (verdict.acyclic, verdict.undelivered, verdict.missing) == (True, 0, [])


@pytest.mark.parametrize("called", [str.upper, str.capitalize, "{}.Example.NET".format])
def test_names_with_a_domain_or_capitals_are_the_same(
    called: Callable[[str], str], tmp_path: Path
) -> None:
    def rename(_switch: str, values: dict[str, Any]) -> None:
        metadata = values["DEVICE_METADATA"]["localhost"]
        metadata["hostname"] = called(metadata["hostname"])

    folder = bounce().write(tmp_path)
    expected = verdict_of_imported(read_paths([folder]))
    change(folder, "config_db.json", rename)
    imported = read_paths([folder])
    assert len(imported.fabric.links) == 6
    assert verdict_of_imported(imported).acyclic is expected.acyclic is False


def test_switches_whose_names_differ_in_case_alone_stay_apart(tmp_path: Path) -> None:
    folder = bounce().write(tmp_path)
    before = links_of(read_paths([folder]))
    first, second = sorted(path.name for path in folder.iterdir())[:2]
    names = {second: first.upper()}

    def rename(_switch: str, values: dict[str, Any]) -> None:
        if "DEVICE_METADATA" in values:
            metadata = values["DEVICE_METADATA"]["localhost"]
            metadata["hostname"] = names.get(metadata["hostname"], metadata["hostname"])
        for fields in values.values():
            if "lldp_rem_sys_name" in fields:
                system = fields["lldp_rem_sys_name"]
                fields["lldp_rem_sys_name"] = names.get(system, system)

    change(folder, "config_db.json", rename)
    change(folder, "appl_db.json", rename)
    after = links_of(read_paths([folder]))
    assert after == {name.replace(f"{second}:", f"{first.upper()}:") for name in before}
