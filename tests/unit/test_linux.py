"""Linux routers and bridges, read from what ip, bridge and lldpctl print."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from forwarding.file_kinds import Content, kind_of
from forwarding.imported.paths import read_paths
from forwarding.route_dump import DROP, NextHop, RouteDump
from tests.linux_dumps import fdb_rows, fdb_text, write_linux
from tests.router_nets import leaf_spine, random_net
from verification.imported import ImportedVerdict, verdict_of_imported


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


def read(value: Any) -> Any:
    content = Content(value if isinstance(value, str) else json.dumps(value))
    kind = kind_of(content)
    assert kind is not None
    return kind.read(content)


@pytest.mark.parametrize("seed", range(40))
def test_random_routers_agree_with_the_same_routes_of_frr(seed: int, tmp_path: Path) -> None:
    """All packets are taken to be lossless in both, since no priorities are read."""
    net = random_net(seed)
    for router in net.routers:
        net.qos[router].ports = {}
    frr = judged(net.write(tmp_path / "frr" / "fabric", "frr"))
    linux = judged(write_linux(net, tmp_path / "linux" / "fabric"))
    shown = (linux.pairs, linux.undelivered, linux.max_channel_load, bool(linux.cycle))
    assert shown == (frr.pairs, frr.undelivered, frr.max_channel_load, bool(frr.cycle))
    assert linux.acyclic is frr.acyclic
    assert len(linux.cycle) == len(frr.cycle)


def test_priorities_are_missing(tmp_path: Path) -> None:
    verdict = judged(write_linux(leaf_spine(4, 2), tmp_path))
    assert verdict.acyclic is True
    assert any("no PORT_QOS_MAP" in note for note in verdict.notes)


def test_routes_of_both_families_and_several_tables() -> None:
    dump = read(
        [
            {"dst": "default", "gateway": "10.0.0.1", "dev": "swp1", "metric": 100, "flags": []},
            {"dst": "default", "gateway": "10.0.0.3", "dev": "swp2", "metric": 20, "flags": []},
            {"dst": "10.7.0.0/24", "via": {"family": "inet6", "host": "fe80::1"}, "dev": "swp1"},
            {"dst": "10.8.0.0/24", "dev": "swp3", "gateway": "10.0.0.5", "flags": ["dead"]},
            {"type": "unreachable", "dst": "10.9.0.0/24", "flags": []},
            {"type": "local", "dst": "10.0.0.0", "dev": "swp1", "table": "local"},
            {"dst": "10.1.0.0/24", "gateway": "10.0.0.1", "dev": "swp1", "table": "1001"},
            {"dst": "10.2.0.0/24", "gateway": "10.0.0.1", "dev": "swp1", "encap": "mpls"},
        ]
    )
    assert isinstance(dump, RouteDump)
    routes = {prefix: hops for (_, prefix), hops in dump.routes.items()}
    assert routes == {
        "0.0.0.0/0": (NextHop("10.0.0.3", "swp2"),),
        "10.7.0.0/24": (NextHop("fe80::1", "swp1"),),
        "10.8.0.0/24": (DROP,),
        "10.9.0.0/24": (DROP,),
        "10.2.0.0/24": (NextHop("10.0.0.1", "swp1"),),
    }
    assert [text.split(":")[0] for text in dump.unclear] == ["10.1.0.0/24", "10.2.0.0/24"]
    six = read(
        [
            {"dst": "default", "gateway": "fe80::1", "dev": "swp1", "metric": 1024},
            {"dst": "fd00::/64", "gateway": "fe80::1", "dev": "swp1", "metric": 1024},
            {"dst": "fd00::/64", "gateway": "fe80::2", "dev": "swp2", "metric": 1024},
        ]
    )
    assert six.routes["default", "::/0"] == (NextHop("fe80::1", "swp1"),)
    assert len(six.routes["default", "fd00::/64"]) == 2


def test_bonds_bridges_vlans_and_vrfs() -> None:
    tables = read(
        [
            {"ifname": "swp1", "flags": ["SLAVE"], "master": "bond0"},
            {"ifname": "bond0", "flags": ["MASTER"]},
            {"ifname": "swp2", "flags": [], "master": "br0"},
            {"ifname": "br0", "flags": []},
            {"ifname": "vlan10", "flags": [], "link": "br0"},
            {"ifname": "uplink", "flags": [], "link": "swp3"},
            {"ifname": "swp3", "flags": [], "master": "red"},
            {"ifname": "red", "flags": ["NOARP", "MASTER"]},
            {"ifname": "swp4", "flags": [], "link": "peer4"},
            {"ifname": "peer4", "flags": [], "link": "swp4"},
        ]
    ).tables
    assert set(tables["PORTCHANNEL_MEMBER"]) == {"bond0|swp1", "uplink|swp3"}
    assert set(tables["BRIDGE"]) == {"br0", "vlan10"}
    assert set(tables["PORT"]) == {"swp1", "swp2", "swp3", "swp4", "peer4"}
    assert tables["INTERFACE"] == {"swp3": {"vrf_name": "red"}}


def bridges(folder: Path, ring: bool, forms: Iterable[str] = ("json",)) -> Path:
    """Write three bridges in a line; with ``ring``, all send frames for others to the right."""
    cables = [("b0", "b1"), ("b1", "b2"), ("b2", "b0")]
    macs = {f"h{n}": f"02:00:00:00:00:0{n}" for n in range(3)}
    form = list(forms)
    for n in range(3):
        ports = {f"h{n}": "swp9"}
        for m in {0, 1, 2} - {n}:
            ports[f"h{m}"] = "right" if ring or m > n else "left"
        rows = fdb_rows(macs, 10, ports)
        of = folder / f"b{n}"
        of.mkdir()
        text = json.dumps(rows) if form[n % len(form)] == "json" else fdb_text(rows)
        (of / "fdb").write_text(text)
    edges = [
        {
            "node1": {"hostname": a, "interfaceName": "right"},
            "node2": {"hostname": b, "interfaceName": "left"},
        }
        for a, b in cables
    ]
    (folder / "cables.json").write_text(json.dumps({"edges": edges}))
    return folder


@pytest.mark.parametrize("forms", [["json"], ["text"], ["json", "text"]])
def test_bridges(forms: list[str], tmp_path: Path) -> None:
    line, ring = tmp_path / "line", tmp_path / "ring"
    for folder in (line, ring):
        folder.mkdir()
    safe = judged(bridges(line, False, forms))
    assert (safe.acyclic, safe.pairs, safe.undelivered) == (True, 6, 0)
    found = judged(bridges(ring, True, forms))
    assert found.cycle == ["b0:right/0", "b1:right/0", "b2:right/0"]
    assert found.acyclic is None  # nothing says that the links pause
    assert found.undelivered == 0


def test_addresses_that_a_bridge_has_not_learned(tmp_path: Path) -> None:
    folder = bridges(tmp_path, False)
    rows = json.loads((folder / "b1" / "fdb").read_text())
    (folder / "b1" / "fdb").write_text(json.dumps([r for r in rows if r["mac"][-1] != "2"]))
    verdict = judged(folder)
    assert verdict.acyclic is None
    assert verdict.missing == ["what b1 does with some destinations"]


def test_vlans_are_separate(tmp_path: Path) -> None:
    folder = bridges(tmp_path, False)
    for n in range(3):
        file = folder / f"b{n}" / "fdb"
        rows = [r for r in json.loads(file.read_text()) if r["mac"][-1] != "2" or "vlan" not in r]
        rows += [{"mac": "02:00:00:00:00:02", "ifname": "swp9", "vlan": 20, "master": "br0"}]
        file.write_text(json.dumps(rows if n == 2 else rows[:-1]))
    verdict = judged(folder)
    assert (verdict.acyclic, verdict.undelivered) == (True, 0)
    assert verdict.pairs == 2  # h0 and h1; nobody else is in VLAN 20


def test_a_bridge_does_not_send_back(tmp_path: Path) -> None:
    """Two bridges that each hold the other to be closer to a host drop its frames."""
    folder = bridges(tmp_path, False)
    rows = json.loads((folder / "b1" / "fdb").read_text())
    for row in rows:
        row["ifname"] = "left" if row["mac"].endswith("2") else row["ifname"]
    (folder / "b1" / "fdb").write_text(json.dumps(rows))
    verdict = judged(folder)
    assert verdict.cycle == []
    assert verdict.undelivered == 2
