"""Where packets arrive: at their network, at the router with the address, or out of the fabric."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from tests.support.router_nets import leaf_spine

DATA = Path("tests/data/fabrics")


def check(*arguments: str) -> tuple[int, str]:
    result = CliRunner(mix_stderr=False).invoke(main, ["check", *arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("leaf", ["leaf0", "leaf2"])
def test_a_route_out_of_the_fabric_delivers_nothing_that_is_inside(
    leaf: str, tmp_path: Path
) -> None:
    """A leaf sends what is for another one to a router behind its own network of hosts."""
    net = leaf_spine(3, 2)
    net.routes[leaf]["10.1.0.0/24"] = [("192.0.2.1", "Vlan10")]
    folder = net.write(tmp_path)
    verdict = verdict_of_imported(read_paths([folder]))
    assert (verdict.acyclic, verdict.undelivered) == (True, 1)
    assert verdict.problems == [
        f"{leaf}-Vlan10 to leaf1-Vlan10: the frame arrives at {leaf}:Vlan10"
    ]
    status, output = check(str(folder), "--pair", f"{leaf}-Vlan10", "leaf1-Vlan10")
    assert status == 0
    assert output.splitlines()[0] == f"{leaf}-Vlan10 to leaf1-Vlan10: delivered to {leaf}:Vlan10"


def test_a_network_that_is_only_outside_is_reached_by_the_route_there(tmp_path: Path) -> None:
    """Of several exits of one network any will do."""
    net = leaf_spine(3, 2)
    for router in net.routers:
        ups = sorted(port for name, port in net.peers if name == router)
        net.routes[router]["0.0.0.0/0"] = [("169.254.0.1", port) for port in ups]
    for leaf in ("leaf0", "leaf1"):
        net.routes[leaf]["0.0.0.0/0"] = [("192.0.2.1", "Vlan10")]
    for spine in ("spine0", "spine1"):
        net.routes[spine]["0.0.0.0/0"] = [
            ("169.254.0.1", "Ethernet0"),
            ("169.254.0.2", "Ethernet4"),
        ]
    verdict = verdict_of_imported(read_paths([net.write(tmp_path)]))
    assert (verdict.acyclic, verdict.undelivered) == (True, 0)


def test_an_address_of_a_router_is_said_to_be_its_own(tmp_path: Path) -> None:
    net = leaf_spine(2, 2)
    for number, router in enumerate(net.routers):
        net.more[router] = {"LOOPBACK_INTERFACE": {f"Loopback0|10.99.0.{number}/32": {}}}
        if router.startswith("leaf"):
            net.routes[router]["0.0.0.0/0"] = [("169.254.0.1", "Ethernet0")]
    net.routes["spine0"]["10.99.0.0/32"] = [("169.254.0.1", "Ethernet0")]
    folder = net.write(tmp_path)
    status, output = check(str(folder), "--pair", "leaf1-Vlan10", "10.99.0.0")
    assert status == 1
    assert "not delivered, it is for leaf0 itself" in output.splitlines()[0]
    assert verdict_of_imported(read_paths([folder])).acyclic is True
    _, output = check(str(folder), "--pair", "leaf1-Vlan10", "10.98.0.0")
    assert "not delivered, it is dropped at spine0" in output.splitlines()[0]


def test_frames_of_hosts_hold_the_pool_of_their_own_priority(tmp_path: Path) -> None:
    """At ports of hosts, priority 3 takes from another pool than 4, which alone fills it."""
    folder = DATA / "two-pools"
    assert verdict_of_imported(read_paths([folder])).acyclic is True
    for file in sorted(folder.rglob("config_db.json")):
        values = json.loads(file.read_text())
        values["BUFFER_PG"]["Ethernet200|3"]["profile"] = "z2"
        other = tmp_path / file.relative_to(folder)
        other.parent.mkdir()
        other.write_text(json.dumps(values))
        appl = file.with_name("appl_db.json")
        other.with_name("appl_db.json").write_text(appl.read_text())
    verdict = verdict_of_imported(read_paths([tmp_path]))
    assert verdict.acyclic is False
    assert any("pool P2" in name for name in verdict.cycle)
