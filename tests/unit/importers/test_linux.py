"""Linux routers and bridges, read from what ip, bridge and lldpctl print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, kind_of
from knotless.importers.paths import read_paths
from knotless.importers.route_dump import DROP, NextHop, RouteDump
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.remedies import remedies_of
from tests.support.classical_deadlocks import bounce, default_ring
from tests.support.linux_dumps import dcb, fdb_rows, fdb_text, write_linux
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import leaf_spine, random_net


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


def read(value: Any) -> Any:
    content = Content(value if isinstance(value, str) else json.dumps(value))
    kind = kind_of(content)
    assert kind is not None
    return kind.read(content)


@pytest.mark.seeds(40)
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
    assert (verdict.acyclic, verdict.flow_control) == (True, "pause")
    assert any("all links are taken to PAUSE" in note for note in verdict.notes)


@pytest.mark.parametrize(("net", "acyclic"), [(leaf_spine(4, 2), True), (bounce(), False)])
def test_priorities_that_dcb_prints(net: RouterNet, acyclic: bool, tmp_path: Path) -> None:
    linux = judged(write_linux(net, tmp_path / "linux" / "fabric", pfc=True))
    sonic = judged(net.write(tmp_path / "sonic" / "fabric"))
    assert (linux.missing, linux.acyclic, linux.vcs) == ([], acyclic, sonic.vcs)
    assert len(linux.cycle) == len(sonic.cycle)
    assert linux.notes == ["Linux: packets are taken to keep their DSCP", *sonic.notes]


@pytest.mark.parametrize("pfc", [True, False])
def test_default_routes_that_go_round(pfc: bool, tmp_path: Path) -> None:
    """Without the output of dcb the verdict is for PAUSE on all links."""
    verdict = judged(write_linux(default_ring(4), tmp_path, pfc=pfc))
    assert (verdict.acyclic, verdict.flow_control) == (False, "pfc" if pfc else "pause")
    assert verdict.cycle == [f"r{i}:Ethernet0/{3 if pfc else 0}" for i in range(4)]
    assert "0.0.0.0/0" in {step.destination for step in verdict.witnesses}
    assert verdict.undelivered == 0


def test_ports_without_pfc_cannot_deadlock(tmp_path: Path) -> None:
    folder = write_linux(bounce(), tmp_path, pfc=True)
    for file in folder.glob("*/dcb"):
        file.write_text(file.read_text().replace(":on", ":off"))
    verdict = judged(folder)
    assert (verdict.acyclic, verdict.missing, verdict.vcs) == (True, [], {})


@pytest.mark.parametrize(
    ("lines", "missing"),
    [("(default-prio|dscp-prio) ", "app"), ("prio-tc ", "ets"), ("prio-buffer ", "buffer")],
)
def test_what_dcb_does_not_print_of_a_port(lines: str, missing: str, tmp_path: Path) -> None:
    """Then all packets are lossless in one priority: a cycle is only possible."""
    folder = write_linux(bounce(), tmp_path, pfc=True)
    file = folder / "leaf2" / "dcb"
    file.write_text(re.sub(f"(?m)^{lines}.*", "Attribute read: Not supported", file.read_text()))
    verdict = judged(folder)
    assert (verdict.acyclic, len(verdict.cycle)) == (None, 4)
    named = f"dcb {missing} show dev Ethernet0 of leaf2: which priorities it pauses"
    assert verdict.missing == [named]


def test_priorities_by_the_pcp_are_not_followed(tmp_path: Path) -> None:
    folder = write_linux(bounce(), tmp_path, pfc=True)
    file = folder / "leaf2" / "dcb"
    file.write_text(file.read_text().replace("default-prio 1", "default-prio 1\npcp-prio 3:3", 1))
    verdict = judged(folder)
    assert (verdict.acyclic, len(verdict.cycle)) == (None, 4)
    named = "the meaning of pcp-prio (dcb app show dev Ethernet0) of leaf2"
    assert verdict.missing == [f"{named}: which priorities it pauses"]


def test_linux_has_no_patches_of_config_db(tmp_path: Path) -> None:
    imported = read_paths([write_linux(bounce(), tmp_path, pfc=True)])
    by_kind = {
        remedy.kind: remedy for remedy in remedies_of(imported, verdict_of_imported(imported))
    }
    assert not by_kind["bounce-priority"].files
    assert not by_kind["without-pfc"].files
    assert {name.rpartition(".")[2] for name in by_kind["withdraw-routes"].files} == {"conf"}


def test_a_port_that_dcb_was_not_asked_about(tmp_path: Path) -> None:
    folder = write_linux(bounce(), tmp_path, pfc=True)
    file = folder / "spine1" / "dcb"
    lines = file.read_text().split("dcb pfc show dev Ethernet12")[0]
    file.write_text(lines)
    verdict = judged(folder)
    assert verdict.acyclic is None
    named = "dcb pfc show dev Ethernet12 of spine1: which priorities it pauses"
    assert verdict.missing == [named]


def test_traffic_classes_and_buffers_are_called_by_their_lowest_priority() -> None:
    shown = [
        "root@leaf1:~# dcb pfc show dev swp1",
        "pfc-cap 8 prio-pfc 0:off 1:off 2:on 3:on 4:off 5:off 6:off 7:off delay 0",
        "root@leaf1:~# dcb app show dev swp1",
        "dscp-prio AF31:3 CS6:6 EF:5",
        "root@leaf1:~# dcb ets show dev swp1",
        "prio-tc 0:0 1:0 2:5 3:5 4:1 5:1 6:6 7:6",
        "root@leaf1:~# dcb buffer show dev swp1",
        "prio-buffer 0:0 1:0 2:1 3:2 4:0 5:0 6:0 7:0",
    ]
    tables = read("\n".join(shown)).tables
    assert tables["PORT_QOS_MAP"]["swp1"]["pfc_enable"] == "2,3"
    queues = tables["TC_TO_QUEUE_MAP"]["swp1"]
    assert [queues[str(tc)] for tc in range(8)] == ["0", "0", "2", "2", "4", "4", "6", "6"]
    buffers = tables["TC_TO_PRIORITY_GROUP_MAP"]["swp1"]
    assert [buffers[str(tc)] for tc in range(8)] == ["0", "0", "2", "3", "0", "0", "0", "0"]
    classes = tables["DSCP_TO_TC_MAP"]["swp1"]
    assert [classes[dscp] for dscp in ("26", "48", "46", "0")] == ["3", "6", "5", "0"]


@pytest.mark.parametrize(
    ("former", "now", "says"),
    [
        ("3:on", "9:on", "Ethernet0: priority '9' must be a number up to 7"),
        ("3:on", "3:of", "prio-pfc 3:of must be on or off"),
        ("prio-tc 0:0", "prio-tc", "priority 0 has no traffic class or buffer"),
        ("48:6", "AF77:6", "DSCP 'AF77' must be a number up to 63"),
        ("48:6", "48:6 48:7", "dscp-prio has '48' twice"),
    ],
)
def test_impossible_output_of_dcb(former: str, now: str, says: str) -> None:
    text = dcb(leaf_spine(2, 1), "leaf0").replace(former, now)
    with pytest.raises(RuleError, match=says):
        read(text)


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
    """Write three bridges in a line, or a ``ring`` in which all send to the right."""
    cables = [("b0", "b1"), ("b1", "b2"), *[("b2", "b0")] * ring]
    macs = {f"h{n}": f"02:00:00:00:00:0{n}" for n in range(3)}
    form = list(forms)
    for n in range(3):
        ports = {f"h{n}": "swp9"}
        for m in {0, 1, 2} - {n}:
            ports[f"h{m}"] = "right" if ring or m > n else "left"
        rows = fdb_rows(macs, 10, ports)
        place = folder / f"b{n}"
        place.mkdir()
        text = json.dumps(rows) if form[n % len(form)] == "json" else fdb_text(rows)
        (place / "fdb").write_text(text)
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
    verdict = judged(bridges(ring, True, forms))
    assert verdict.cycle == ["b0:right/0", "b1:right/0", "b2:right/0"]
    assert (verdict.acyclic, verdict.flow_control) == (False, "pause")
    assert verdict.undelivered == 0


def test_bridges_in_a_loop_may_flood_for_ever(tmp_path: Path) -> None:
    """Frames to addresses that they have not learned: nothing says which ports are blocked."""
    folder = bridges(tmp_path, False)
    cables = json.loads((folder / "cables.json").read_text())
    ends = [
        {"hostname": "b2", "interfaceName": "right"},
        {"hostname": "b0", "interfaceName": "left"},
    ]
    cables["edges"].append({"node1": ends[0], "node2": ends[1]})
    (folder / "cables.json").write_text(json.dumps(cables))
    verdict = judged(folder)
    assert (verdict.acyclic, verdict.cycle, verdict.undelivered) == (None, [], 0)
    assert "which ports spanning tree blocks at b" in verdict.missing[0]


def test_a_stale_address_goes_round_a_ring_of_bridges(tmp_path: Path) -> None:
    folder = bridges(tmp_path, False)
    cables = json.loads((folder / "cables.json").read_text())
    ends = [
        {"hostname": "b2", "interfaceName": "right"},
        {"hostname": "b0", "interfaceName": "left"},
    ]
    cables["edges"].append({"node1": ends[0], "node2": ends[1]})
    (folder / "cables.json").write_text(json.dumps(cables))
    for n in range(3):
        file = folder / f"b{n}" / "fdb"
        stale = {"mac": "02:00:00:00:00:77", "ifname": "right", "vlan": 10, "master": "br0"}
        file.write_text(json.dumps([*json.loads(file.read_text()), stale]))
    verdict = judged(folder)
    assert verdict.cycle == ["b0:right/0", "b1:right/0", "b2:right/0"]
    assert "02:00:00:00:00:77@10" in {step.destination for step in verdict.witnesses}
    assert verdict.undelivered == 0


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
