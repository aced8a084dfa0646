"""Neighbours without files: hosts by type, capability or access port, or since the user says so."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.cli.main import main
from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.changed_fabrics import Config
from tests.support.readable_fabrics import WRITERS
from tests.support.router_dumps import HOST_PORT, RouterNet
from tests.support.router_nets import leaf_spine

SILENT, STATION, ROUTER, BRIDGE = "", "01 00", "08 00", "20 00"


def judged(folder: Path, *hosts: str) -> ImportedVerdict:
    return verdict_of_imported(read_paths([folder], hosts))


def check(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, ["check", *arguments])


def hear(folder: Path, leaf: str, port: str, system: str, capabilities: str, form: str) -> None:
    """Add what a port of a leaf hears, as SONiC, or lldpd as JSON or text, writes it."""
    if form == "sonic":
        file = folder / leaf / "appl_db.json"
        values: Config = json.loads(file.read_text())
        values[f"LLDP_ENTRY_TABLE:{port}"] = {
            "lldp_rem_sys_name": system,
            "lldp_rem_port_id": f"02:00:00:00:00:0{leaf[-1]}",
            "lldp_rem_sys_cap_enabled": capabilities,
        }
        file.write_text(json.dumps(values))
        return
    kinds = {STATION: "Station", ROUTER: "Router", BRIDGE: "Bridge"}
    named = kinds.get(capabilities)
    if form == "text":
        said = [
            f"    Capability:   {kind}, {'on' if kind == named else 'off'}"
            for kind in kinds.values()
        ]
        lines = [
            f"Interface:    {port}, via: LLDP, RID: 9, Time: 0 day, 00:00:06",
            "  Chassis:",
            f"    SysName:      {system}",
            *(said if named else []),
            "  Port:",
            f"    PortID:       mac 02:00:00:00:00:0{leaf[-1]}",
        ]
        (folder / leaf / "more-lldp.txt").write_text("\n".join(lines) + "\n")
        return
    said_json = [{"type": kind, "enabled": kind == named} for kind in kinds.values()]
    chassis = {system: {"capability": said_json if named else []}}
    heard = {port: {"chassis": chassis, "port": {"id": {"type": "mac", "value": "02:0"}}}}
    (folder / leaf / "more-lldp.json").write_text(json.dumps({"lldp": {"interface": [heard]}}))


def access(net: RouterNet, leaf: str) -> None:
    """Make the port of hosts an untagged member of their VLAN."""
    rows = {f"Vlan10|{HOST_PORT}": {"tagging_mode": "untagged"}}
    net.more[leaf] = {**net.more.get(leaf, {}), "VLAN_MEMBER": rows}


@pytest.mark.thin(20)
@pytest.mark.parametrize("form", ["sonic", "json", "text"])
@pytest.mark.parametrize("capabilities", [SILENT, STATION, ROUTER, BRIDGE])
@pytest.mark.parametrize("types", [(), ("Server",), ("LeafRouter",), ("Server", "SpineRouter")])
@pytest.mark.parametrize("rails", [1, 2, 4])
def test_hosts_by_type_and_capability(
    rails: int, types: tuple[str, ...], capabilities: str, form: str, tmp_path: Path
) -> None:
    """The type counts before what the system announces; silence counts as the number of leaves."""
    net = leaf_spine(4, 2)
    for leaf, kind in enumerate(types):
        net.more[f"leaf{leaf}"] = {"DEVICE_NEIGHBOR_METADATA": {"gpu-1": {"type": kind}}}
    folder = net.write(tmp_path)
    for leaf in range(rails):
        hear(folder, f"leaf{leaf}", "Ethernet88", "gpu-1.example.net", capabilities, form)
    verdict = judged(folder)
    silent_host = capabilities == SILENT and rails == 1
    by_itself = not types and (capabilities == STATION or silent_host)
    is_host = types == ("Server",) or by_itself
    assert verdict.acyclic is (True if is_host else None)
    assert ("the files of gpu-1.example.net" in verdict.missing) is not is_host
    assert verdict.switches == (6 if is_host else 7)
    several = any("hosts with ports at several switches: gpu-1" in note for note in verdict.notes)
    assert several is (is_host and rails > 1)


@pytest.mark.seeds(20)
def test_servers_behind_access_ports(seed: int, tmp_path: Path) -> None:
    """A server that announces a bridge or router, and what speaks against it: also other leaves."""
    rng = random.Random(seed)  # noqa: S311
    net = leaf_spine(4, 2)
    leaves = sorted(rng.sample(net.routers[:4], rng.randint(1, 4)))
    for leaf in leaves:
        access(net, leaf)
    against = rng.choice(["", "", "tagged", "route"])
    if against == "tagged":
        net.more[leaves[0]]["VLAN_MEMBER"][f"Vlan10|{HOST_PORT}"]["tagging_mode"] = "tagged"
    elif against == "route":
        net.routes[leaves[0]]["10.200.0.0/24"] = [("10.0.0.9", "Vlan10")]
    folder = net.write(tmp_path)
    for leaf in leaves:
        hear(folder, leaf, HOST_PORT, "k8s-7", rng.choice([ROUTER, BRIDGE]), "sonic")
    verdict = judged(folder)
    is_host = against == "" and len(leaves) == 1
    assert (verdict.missing == []) is is_host
    assert ("the files of k8s-7" in verdict.missing) is not is_host
    assert judged(folder, "k8s-*").acyclic is True


def test_hosts_that_the_user_names(tmp_path: Path) -> None:
    folder = leaf_spine(3, 2).write(tmp_path)
    for leaf in ("leaf0", "leaf1"):
        hear(folder, leaf, "Ethernet88", "gpu-1.example.net", ROUTER, "sonic")
    hear(folder, "leaf2", "Ethernet88", "spine9", ROUTER, "sonic")
    done = check(str(folder))
    assert done.exit_code == 1
    assert "if gpu-1.example.net, spine9 are hosts, name them by --hosts" in done.stdout
    verdict = judged(folder, "gpu-*")
    assert [text for text in verdict.missing if text.startswith("the files")] == [
        "the files of spine9"
    ]
    assert check(str(folder), "--hosts", "gpu-?", "--hosts", "spine9").exit_code == 0
    done = check(str(folder), "--hosts", "gpu")
    assert done.exit_code == 2
    assert "--hosts 'gpu': no neighbour without files has such a name; there are" in done.stderr
    done = check(str(folder), "--hosts", "spine0")
    assert done.exit_code == 2, "it has files, so it is a switch"


def test_the_option_is_for_neighbours_of_routers(tmp_path: Path) -> None:
    folder = WRITERS["infiniband"](tmp_path)
    done = check(str(folder), "--hosts", "h*")
    assert done.exit_code == 2
    assert "--hosts: only routers hear neighbours by LLDP" in done.stderr


@pytest.mark.parametrize(
    ("port", "said"),
    [
        ("leaf0:Ethernet0", "Ethernet0 leads to spine0:Ethernet0, a router: LLDP"),
        ("leaf0:Vlan10", "it is a bridge or VLAN, a network of hosts; its members are ports"),
        ("leaf0:eth0", "it leads to the device itself or its management network: SONiC does not"),
        (
            "leaf0:Ethernet88",
            "Ethernet88 leads to hosts: gpu-1 has no files; by LLDP it is neither",
        ),
        ("leaf1:Ethernet88", "Ethernet88 leads to k8s:02:00:00:00:00:01, a router without files"),
        ("leaf0:Ethernet96", "it leads to the device itself or its management network: it is none"),
    ],
)
def test_the_evidence_for_a_port_is_shown(port: str, said: str, tmp_path: Path) -> None:
    folder = leaf_spine(2, 2).write(tmp_path)
    hear(folder, "leaf0", "Ethernet88", "gpu-1", STATION, "sonic")
    hear(folder, "leaf1", "Ethernet88", "k8s", ROUTER, "sonic")
    result = check(str(folder), "--explain", port)
    assert (result.exit_code, result.output.startswith(f"{port}: {said}")) == (0, True), result
    assert json.loads(check(str(folder), "--explain", port, "--json").output)["port"] == port


def test_a_port_to_explain_must_be_one_of_a_router(tmp_path: Path) -> None:
    folder = leaf_spine(2, 2).write(tmp_path)
    result = check(str(folder), "--explain", "leaf7:Ethernet0")
    assert result.exit_code == 2
    assert "give a router and its port, such as leaf0:Ethernet0" in result.stderr
