"""Proofs of fabrics of routers: their form, the addresses of hosts, and what they do not cover."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from knotless.base.errors import ProofError
from tests.support.classical_deadlocks import bounce, dual_tor
from tests.support.linux_dumps import write_linux
from tests.support.proofs import VERIFIER, judge
from tests.support.readable_fabrics import WRITERS
from tests.support.route_folders import RouteFolder
from tests.support.route_trials import OUTSIDE, proven
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import leaf_spine, with_uplinks

PREFIX = r"\d+\.\d+\.\d+\.\d+/\d+"
ADDRESS = r"(?:\d+\.\d+\.\d+\.\d+|02:00:00:00:00:\d\d)"
HEAD = (
    r"knotless-proof 3\nflow-control (?:pause|pfc\nlossless [0-7](?: [0-7])*)\n"
    r"(?:file (?:fabric\.json|[\w-]+\.routes) [0-9a-f]{64}\n)+"
)
QUEUE = r"[\w-]+:\w+/[0-7]"
SAFE = re.compile(
    rf"{HEAD}claim safe\nbound \d+\n(?:rank {QUEUE} \d+\n)*"
    rf"(?:class {PREFIX}(?: but(?: {PREFIX})+)?\n)+"
)
CYCLE = re.compile(
    rf"{HEAD}claim cycle\n"
    rf"(?:wait {QUEUE} {QUEUE} [\w-]+ {ADDRESS} {ADDRESS}\nvia [\w-]+(?: [\w-]+:\w+)+\n)+"
)


def written(net: RouterNet, scratch: Path) -> tuple[Path, str]:
    return proven(net.write(scratch / "net"), scratch / "proof")


def addresses(folder: Path) -> dict[str, str | None]:
    """Return the address of each host."""
    hosts = json.loads((folder / "fabric.json").read_text())["hosts"]
    return {host["name"]: host.get("address") for host in hosts}


def test_the_form_of_both_claims(tmp_path: Path) -> None:
    for number, (net, form) in enumerate([(leaf_spine(2, 2), SAFE), (bounce(), CYCLE)]):
        place = tmp_path / str(number)
        place.mkdir()
        _, proof = written(net, place)
        assert form.fullmatch(proof), proof


def test_the_claim_of_linux_routers_is_of_pause(tmp_path: Path) -> None:
    _, proof = proven(write_linux(leaf_spine(2, 2), tmp_path / "net"), tmp_path / "proof")
    assert "\nflow-control pause\nfile " in proof


def test_the_address_of_a_host_is_none_of_a_router(tmp_path: Path) -> None:
    net = leaf_spine(2, 1)
    folder, _ = written(net, tmp_path)
    assert addresses(folder) == {"leaf0-Vlan10": "10.0.0.2", "leaf1-Vlan10": "10.1.0.2"}
    fabric = RouteFolder(folder)
    for name, address in fabric.addresses.items():
        network = net.hosts[fabric.hosts[name]]
        assert address in ipaddress.ip_interface(network).network
        assert address != ipaddress.ip_interface(network).ip


def test_hosts_that_share_addresses_have_none(tmp_path: Path) -> None:
    """Which of two networks receives a packet depends on the path: neither is claimed."""
    net = leaf_spine(3, 2)
    net.hosts["leaf1", "Vlan10"] = "10.0.0.1/24"
    for routes in net.routes.values():
        routes.pop("10.1.0.0/24")
    net.routes["leaf1"]["10.0.0.0/24"] = [("", "Vlan10")]
    for spine in ("spine0", "spine1"):
        both = [("169.254.0.1", "Ethernet0"), ("169.254.0.2", "Ethernet4")]
        net.routes[spine]["10.0.0.0/24"] = both
    folder, _ = written(net, tmp_path)
    shared = {"leaf0-Vlan10": None, "leaf1-Vlan10": None}
    assert addresses(folder) == {**shared, "leaf2-Vlan10": "10.2.0.2"}


def test_files_of_routers_that_are_gone_are_removed(tmp_path: Path) -> None:
    written(leaf_spine(3, 2), tmp_path)
    source = leaf_spine(2, 2).write(tmp_path / "fewer")
    folder, _ = proven(source, tmp_path / "proof")
    names = ["fabric.json", "leaf0.routes", "leaf1.routes", "spine0.routes", "spine1.routes"]
    assert sorted(path.name for path in folder.iterdir()) == names
    (folder / "other.routes").write_text("")
    with pytest.raises(ProofError, match=r"has other\.routes of another fabric"):
        proven(source, tmp_path / "proof")


def with_ipv6() -> RouterNet:
    net = leaf_spine(2, 1)
    net.routes["spine0"]["2001:db8::/64"] = [("fe80::1", "Ethernet0")]
    return net


def without_a_route() -> RouterNet:
    net = leaf_spine(3, 2)
    del net.routes["spine0"]["10.0.0.0/24"]
    return net


def remarked() -> RouterNet:
    net = leaf_spine(2, 1)
    for qos in net.qos.values():
        qos.maps["TC_TO_DSCP_MAP"] = {"NEXT": {tc: {3: 4, 4: 4}.get(tc, 0) for tc in range(8)}}
        for port in qos.ports.values():
            port["tc_to_dscp_map"] = "NEXT"
    return net


def hosts_without_maps() -> RouterNet:
    net = leaf_spine(2, 1)
    net.qos["leaf0"].of_hosts = {}
    return net


def moved() -> RouterNet:
    net = leaf_spine(2, 1)
    net.qos["spine0"].maps["TC_TO_QUEUE_MAP"]["AZURE"] |= {3: 4}
    return net


def without_pauses() -> RouterNet:
    net = leaf_spine(2, 1)
    for qos in net.qos.values():
        for port in (*qos.ports.values(), qos.of_hosts):
            port["pfc_enable"] = ""
    return net


def pausing_in_part() -> RouterNet:
    net = leaf_spine(2, 2)
    for router, port in (("leaf0", "Ethernet0"), ("spine0", "Ethernet0")):
        net.qos[router].ports[port]["pfc_enable"] = "4"
    return net


def without_reserve(*routers: str) -> RouterNet:
    net = leaf_spine(2, 1)
    for router in routers:
        net.more[router] = {
            "BUFFER_POOL": {
                "ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "10000000"}
            },
            "BUFFER_PROFILE": {
                "lossless": {
                    **{"pool": "ingress_lossless_pool", "size": "0", "xon": "19456"},
                    **{"xoff": "100000", "dynamic_th": "0"},
                }
            },
            "BUFFER_PG": {f"{port}|3-4": {"profile": "lossless"} for port in [*net.ports(router)]},
        }
    return net


@pytest.mark.parametrize(
    ("net", "reason"),
    [
        (with_ipv6, "proofs do not cover IPv6, and spine0 has a route to 2001:db8::/64"),
        (without_a_route, "such a proof says that all is delivered, and not all is"),
        (lambda: dual_tor(remapped=False), "proofs do not cover tunnels between routers"),
        (remarked, "proofs do not cover packets that get another DSCP on their way"),
        (moved, "as packets with DSCP 3 are not at spine0:Ethernet0"),
        (hosts_without_maps, "as packets with DSCP 3 are not at leaf0:Ethernet0"),
        (without_pauses, "proofs need a lossless priority, and no link pauses one"),
        (pausing_in_part, "do not cover links that differ in what they pause, as they do for"),
        (lambda: without_reserve("leaf0"), "do not cover lossless buffers without a reserve of"),
        (
            lambda: without_reserve("leaf0", "leaf1", "spine0"),
            "do not cover cycles through shared memory, as through pool ingress_lossless_pool of",
        ),
    ],
)
def test_what_proofs_do_not_cover_is_named_and_nothing_is_written(
    tmp_path: Path, net: Callable[[], RouterNet], reason: str
) -> None:
    with pytest.raises(ProofError) as raised:
        written(net(), tmp_path)
    assert reason in str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net"]


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ("neutral", "proofs do not cover tables that are not those of IP routers"),
        ("bridges", "proofs do not cover bridges, which go by Ethernet addresses: b0"),
    ],
)
def test_other_tables_are_not_covered(tmp_path: Path, form: str, reason: str) -> None:
    with pytest.raises(ProofError) as raised:
        proven(WRITERS[form](tmp_path / "net"), tmp_path / "proof")
    assert str(raised.value) == reason


def test_what_is_not_known_is_not_proven(tmp_path: Path) -> None:
    net = leaf_spine(2, 1)
    net.routes["leaf0"]["10.9.0.0/24"] = [("169.254.9.9", "Ethernet96")]
    with pytest.raises(ProofError, match="do not cover unknown verdicts: missing what port Ether"):
        written(net, tmp_path)


def test_devices_outside_send_too(tmp_path: Path) -> None:
    net = leaf_spine(2, 1)
    with_uplinks(net, ["spine0"])
    folder, _ = proven(net.write(tmp_path / "net"), tmp_path / "proof", [OUTSIDE])
    assert addresses(folder)["spine0-Ethernet380"] is None
    assert RouteFolder(folder).hosts["spine0-Ethernet380"] == ("spine0", "Ethernet380")


def test_an_address_that_a_device_outside_does_not_reach_is_not_claimed(tmp_path: Path) -> None:
    net = leaf_spine(3, 2)
    with_uplinks(net, ["leaf1"])
    del net.hosts["leaf1", "Vlan10"]
    for routes in net.routes.values():
        routes.pop("10.1.0.0/24")
    folder, _ = proven(net.write(tmp_path / "net"), tmp_path / "proof", [OUTSIDE])
    known = {"leaf0-Vlan10": "10.0.0.2", "leaf1-Ethernet380": None, "leaf2-Vlan10": "10.2.0.2"}
    assert addresses(folder) == known
    net.routes["leaf1"]["10.0.0.0/24"] = []
    folder, proof = proven(net.write(tmp_path / "other"), tmp_path / "proof", [OUTSIDE])
    assert addresses(folder) == {**known, "leaf0-Vlan10": None}
    assert not VERIFIER.exists() or judge(folder, proof).accepted
