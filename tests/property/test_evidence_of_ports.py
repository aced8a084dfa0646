"""What a port leads to is found in evidence: the verdict is the same whatever ports are called."""

from __future__ import annotations

import ipaddress
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.linux_dumps import write_linux
from tests.support.port_names import renamed, shown
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import add_stale_routes, leaf_spine, random_net, with_uplinks

SAFE = True
Write = Callable[[RouterNet, Path], Path]


def judged(*paths: Path, hosts: tuple[str, ...] = ()) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths, hosts))


def ring(count: int) -> RouterNet:
    """A ring of routers, each with a network of hosts, in which all packets go the same way."""
    names = [f"r{i}" for i in range(count)]
    net = RouterNet(
        [((a, "swp1"), (b, "swp2")) for a, b in zip(names, [*names[1:], names[0]], strict=True)],
        hosts={(name, "swp3"): f"10.{i}.0.1/24" for i, name in enumerate(names)},
    )
    for i, name in enumerate(names):
        net.routes[name] = {
            f"10.{j}.0.0/24": [("", "swp3")] if i == j else [("169.254.0.1", "swp1")]
            for j in range(count)
        }
    return net


def drawn(seed: int) -> RouterNet:
    """Return a ring, a leaf-spine with a fault, or a random fabric, without LAGs."""
    rng = random.Random(seed)  # noqa: S311
    if seed % 3 == 0:
        return ring(rng.randint(3, 6))
    if seed % 3 == 1:
        net = leaf_spine(rng.randint(2, 4), 2)
        lost = rng.choice(net.routers[:-2])
        net.routes["spine0"][f"10.{lost[-1]}.0.0/24"] = [("169.254.0.9", "Ethernet0")]
        return net
    net = random_net(seed)
    ports = {(router, lag): members[0] for (router, lag), members in net.lags.items()}
    for router, routes in net.routes.items():
        for prefix, hops in routes.items():
            routes[prefix] = [(address, ports.get((router, port), port)) for address, port in hops]
    net.lags = {}
    return net


def write_frr(net: RouterNet, folder: Path) -> Path:
    """Write routes and neighbours alone: nothing says which kinds of ports there are."""
    for router in net.routers:
        directory = folder / router
        directory.mkdir(parents=True)
        (directory / "routes.json").write_text(json.dumps(net.frr_json(router)))
        (directory / "lldp.json").write_text(json.dumps(net.lldp_json(router)))
    return folder


@pytest.mark.seeds(60)
@pytest.mark.parametrize("write", [write_frr, write_linux])
def test_no_verdict_depends_on_names_of_ports(seed: int, write: Write, tmp_path: Path) -> None:
    net = drawn(seed)
    before = judged(write(net, tmp_path / "before"))
    other, names = renamed(net, random.Random(seed))  # noqa: S311
    after = judged(write(other, tmp_path / "after"))
    assert (before.acyclic, before.undelivered, before.pairs) == (
        after.acyclic,
        after.undelivered,
        after.pairs,
    )
    assert before.missing == after.missing == []
    assert len(after.cycle) == len(before.cycle)
    channels = {text.rpartition("/")[0] for text in after.cycle}
    assert channels <= {f"{router}:{port}" for (router, port) in other.peers}
    if net.routers[0] == "r0" and seed % 3 == 0:
        ways = [[*shown(before.cycle[i:] + before.cycle[:i], names)] for i in range(len(names))]
        assert after.cycle in ways


@pytest.mark.seeds(30)
def test_the_order_of_files_does_not_matter(seed: int, tmp_path: Path) -> None:
    net = drawn(seed)
    folder = write_frr(net, tmp_path / "fabric")
    folders = [folder / router for router in net.routers]
    first = judged(*folders)
    random.Random(seed).shuffle(folders)  # noqa: S311
    second = judged(*folders)
    assert (first.acyclic, first.undelivered, first.missing) == (
        second.acyclic,
        second.undelivered,
        second.missing,
    )
    assert len(first.cycle) == len(second.cycle)


@pytest.mark.seeds(30)
@pytest.mark.parametrize("means", ["list", "both", "addresses"])
def test_sufficient_means_name_the_same_cables(seed: int, means: str, tmp_path: Path) -> None:
    """LLDP, a list of cables, both, or the owners of next hops."""
    net = drawn(seed)
    by_lldp = judged(write_frr(net, tmp_path / "lldp"))
    folder = write_frr(net, tmp_path / "other")
    if means == "addresses":
        # Each cable has a /31, and next hops are the addresses of its far end.
        far: dict[tuple[str, str], str] = {}
        for number, (a, b) in enumerate(net.cables):
            far[a], far[b] = f"192.0.{2 + number}.1", f"192.0.{2 + number}.0"
        near = {a: far[b] for end in net.cables for a, b in (end, end[::-1])}
        for (router, port), address in near.items():
            net.routes[router][f"{address}/31".replace(".1/", ".0/")] = [("", port)]
        for router, routes in net.routes.items():
            for prefix, hops in routes.items():
                routes[prefix] = [(far.get((router, port), ip), port) for ip, port in hops]
            folder_of = folder / router
            (folder_of / "routes.json").write_text(json.dumps(net.frr_json(router)))
            keys = [f"{p}|{ip}/31" for (r, p), ip in near.items() if r == router]
            config = {"DEVICE_METADATA": {"localhost": {"hostname": router}}}
            tables = {**config, "INTERFACE": {key: {} for key in keys}}
            (folder_of / "config_db.json").write_text(json.dumps(tables))
    if means != "both":
        for router in net.routers:
            (folder / router / "lldp.json").unlink()
    if means != "addresses":
        edges = [
            {
                "node1": {"hostname": a, "interfaceName": port},
                "node2": {"hostname": b, "interfaceName": other},
            }
            for (a, port), (b, other) in net.cables
        ]
        (folder / "layer1_topology.json").write_text(json.dumps({"edges": edges}))
    verdict = judged(folder)
    assert (verdict.acyclic, verdict.undelivered) == (by_lldp.acyclic, by_lldp.undelivered)
    assert len(verdict.cycle) == len(by_lldp.cycle)


@pytest.mark.parametrize("ends", [("eth1.{}", "swp5.{}"), ("swp1.{}", "swp1.{}")])
def test_sub_interfaces_of_one_cable(ends: tuple[str, str], tmp_path: Path) -> None:
    """Each of two has a prefix of its own; the cable is between the ports."""
    for number, (name, end) in enumerate(zip(("a", "b"), ends, strict=True)):
        net = RouterNet([], routes={name: {}})
        for sub in (2, 4):
            net.routes[name][f"169.254.{sub}.0/30"] = [("", end.format(sub))]
        net.routes[name][f"10.{number}.0.0/24"] = [("", "swp9")]
        net.routes[name][f"10.{1 - number}.0.0/24"] = [
            (f"169.254.{sub}.{2 - number}", end.format(sub)) for sub in (2, 4)
        ]
        directory = tmp_path / name
        directory.mkdir()
        (directory / "routes.json").write_text(json.dumps(net.frr_json(name)))
    verdict = judged(tmp_path)
    assert (verdict.acyclic, verdict.hosts, verdict.undelivered) == (SAFE, 2, 0)
    assert "1 cables are inferred from prefixes that two ports share" in verdict.notes


@pytest.mark.parametrize("name", ["Ethernet100.10", "Eth100.10"])
def test_hosts_behind_a_sub_interface_of_sonic(name: str, tmp_path: Path) -> None:
    """Also if it has the short name, which PORT does not list: nothing is left out."""
    net = leaf_spine(2, 2)
    for routes in net.routes.values():
        routes["10.9.0.0/24"] = routes["10.0.0.0/24"]
    net.routes["leaf0"]["10.9.0.0/24"] = [("", name)]
    net.more["leaf0"] = {
        "PORT": {"Ethernet100": {"admin_status": "up"}},
        "VLAN_SUB_INTERFACE": {name: {}, f"{name}|10.9.0.1/24": {}},
    }
    verdict = judged(net.write(tmp_path))
    assert (verdict.acyclic, verdict.hosts, verdict.pairs) == (SAFE, 3, 6)
    assert verdict.undelivered == 0


@pytest.mark.seeds(60)
def test_leaving_a_router_out_makes_nothing_safe(seed: int, tmp_path: Path) -> None:
    net, rng = drawn(seed), random.Random(seed)  # noqa: S311
    folder = write_frr(net, tmp_path / "fabric")
    whole = judged(folder)
    left_out = rng.choice(net.routers)
    for file in (folder / left_out).iterdir():
        file.unlink()
    (folder / left_out).rmdir()
    used = {
        port
        for (router, port), (peer, _) in net.peers.items()
        if peer == left_out
        and any(port == out for hops in net.routes[router].values() for _, out in hops)
    }
    part = judged(folder)
    if used:
        assert part.acyclic is not SAFE
    assert whole.acyclic is SAFE or part.acyclic is not SAFE


@pytest.mark.seeds(40)
def test_every_witness_is_a_packet_of_the_files(seed: int, tmp_path: Path) -> None:
    """Each holds one channel and then requests the next, as a second program follows it."""
    net, rng = random_net(seed), random.Random(seed)  # noqa: S311
    add_stale_routes(net, rng)
    verdict = judged(net.write(tmp_path))
    for step in verdict.witnesses:
        router, _, interface = step.source.partition("-")
        prefix = step.destination
        if "/" not in prefix:
            home, _, vlan = prefix.partition("-")
            prefix = net.hosts[home, vlan]
        network = ipaddress.ip_network(prefix, strict=False)
        passed = {
            (into, out)
            for address in {network[0], network[-1]}
            for into, out, _ in net.steps((router, interface), address, step.value)
        }
        held, requested = (text.rpartition("/")[0] for text in (step.held, step.wanted))
        peers = {f"{a}:{port}": end for (a, port), end in net.peers.items()}
        assert any(
            into == peers[held] and f"{out[0]}:{out[1]}" == requested for into, out in passed
        ), step


@pytest.mark.seeds(30)
def test_addresses_of_routers_end_at_them(seed: int, tmp_path: Path) -> None:
    """A packet to a loopback or an end of a cable goes no further, whatever a default says."""
    rng = random.Random(seed)  # noqa: S311
    net = leaf_spine(rng.randint(2, 4), 2)
    ends: dict[str, str] = {}
    for number, router in enumerate(net.routers):
        loopback = f"10.99.0.{number}"
        ends[loopback] = router
        net.more[router] = {"LOOPBACK_INTERFACE": {f"Loopback0|{loopback}/32": {}}, "INTERFACE": {}}
    for number, (a, b) in enumerate(net.cables):
        for (router, port), place in ((a, 0), (b, 1)):
            address = f"10.98.{number}.{place}"
            net.more[router]["INTERFACE"][f"{port}|{address}/31"] = {}
            ends[address] = router
    for router in net.routers:
        ports = net.ports(router)
        net.routes[router]["0.0.0.0/0"] = [("169.254.9.9", rng.choice(ports))]
        for address, home in ends.items():
            near = [p for (r, p), (peer, _) in net.peers.items() if (r, peer) == (router, home)]
            if address.startswith("10.99") and near:
                net.routes[router][f"{address}/32"] = [("169.254.9.9", near[0])]
    imported = read_paths([net.write(tmp_path)])
    state = imported.traffics[0].state
    for address, home in ends.items():
        destination = imported.number_of(address)
        assert destination is not None
        for host in state.fabric.hosts:
            hops = state.trace_number(host.name, destination).hops
            assert all(hop.channel < len(state.channels) for hop in hops)
            assert net.routers.index(home) not in {state.channels.tail[hop.channel] for hop in hops}


@pytest.mark.seeds(20)
def test_exchanged_networks_leave_somebody_undelivered(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)  # noqa: S311
    net = leaf_spine(rng.randint(2, 4), rng.randint(1, 3))
    router = rng.choice([name for name in net.routers if name.startswith("leaf")])
    own = f"10.{router[-1]}.0.0/24"
    other = rng.choice([prefix for prefix in net.routes[router] if prefix != own])
    routes = net.routes[router]
    routes[own], routes[other] = routes[other], routes[own]
    assert judged(net.write(tmp_path)).undelivered > 0


@pytest.mark.seeds(12)
def test_one_uplink_for_two_routers_is_a_router_without_files(seed: int, tmp_path: Path) -> None:
    """Also if only a configured neighbour names it. A device of each alone is a host."""
    net = leaf_spine(3, 2)
    with_uplinks(net, ["spine0", "spine1"])
    assert judged(net.write(tmp_path / "apart")).acyclic is SAFE
    for spine in ("spine0", "spine1"):
        for fields in net.more[spine]["DEVICE_NEIGHBOR"].values():
            fields["name"] = "T2-1"
    folder = net.write(tmp_path / "joint")
    assert judged(folder).missing == ["the files of T2-1"]
    assert judged(folder, hosts=("T2-*",)).acyclic is SAFE
    kind = ["Server", "SpineRouter", "LeafRouter"][seed % 3]
    net.more["leaf0"] = {"DEVICE_NEIGHBOR_METADATA": {"T2-1": {"type": kind}}}
    assert (judged(net.write(tmp_path / "typed")).acyclic is SAFE) is (kind == "Server")
