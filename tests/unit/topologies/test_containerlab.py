"""Topology files of containerlab as fabrics."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from knotless.topologies import FabricError, load
from knotless.topologies.formats.containerlab import from_containerlab

LAB = """name: lab
topology:
  defaults: {kind: nokia_srlinux}
  groups:
    servers: {kind: linux}
  nodes:
    leaf1:
    leaf2: {kind: arista_ceos, image: "ceos:4.32"}
    frr: {kind: linux, image: frr}
    gpu1: {group: servers}
    gpu2: {kind: linux}
  links:
    - endpoints: ["leaf1:e1-1", "frr:eth1"]
    - endpoints: ["frr:eth2", "leaf2:eth9"]
    - type: veth
      endpoints:
        - {node: leaf1, interface: e1-7}
        - {node: gpu1, interface: eth1}
      mtu: 9000
    - endpoints: ["gpu2:eth1", "leaf2:eth2"]
    - endpoints: ["leaf1:mgmt0", "host:veth1"]
    - {type: mgmt-net, endpoint: {node: leaf2, interface: eth3}, host-interface: x}
"""


def test_switches_hosts_and_ports_are_read(tmp_path: Path) -> None:
    file = tmp_path / "lab.clab.yml"
    file.write_text(LAB)
    fabric = load(str(file))
    assert fabric.name == "lab.clab"
    assert [switch.name for switch in fabric.switches] == ["leaf1", "leaf2", "frr"]
    assert [(h.name, h.switch, h.port) for h in fabric.hosts] == [
        ("gpu1", "leaf1", 7),
        ("gpu2", "leaf2", 2),
    ]
    assert [link.name for link in fabric.links] == ["leaf1:1-frr:1", "frr:2-leaf2:9"]
    assert fabric.notes == (
        "links that lead out of the lab are ignored: topology: links[4], topology: links[5]",
        "nodes of kind linux with one link are hosts: gpu1, gpu2",
    )


def test_switches_without_hosts_get_one_each_and_interfaces_without_numbers_a_port() -> None:
    text = """topology:
  nodes: {a: {kind: x}, h1: {kind: x}}
  links:
  - endpoints: ["a:ethernet-1/1", "h1:up"]
  - endpoints: ["a:ethernet-2/1", "h1:down"]
"""
    fabric = from_containerlab(text, "two")
    assert [(h.name, h.switch, h.port) for h in fabric.hosts] == [("h2", "a", 1), ("h3", "h1", 1)]
    assert [link.name for link in fabric.links] == ["a:2-h1:2", "a:3-h1:3"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("topology:", "topologies:", "topology is missing"),
        ("nodes:", "nods:", "nodes is missing"),
        ("defaults: {kind: nokia_srlinux}", "defaults: []", "defaults must be a mapping, not []"),
        ("leaf1:\n", "leaf1: 7\n", "nodes: leaf1: must be a mapping, not 7"),
        ("    leaf1:\n", "    'le af': {}\n", "'le af' is no name of a switch or host"),
        ('"leaf1:e1-1"', '"leaf9:e1-1"', "links[0]: unknown node 'leaf9'"),
        ('"leaf1:e1-1"', '"leaf1"', "links[0]: an endpoint is written NODE:INTERFACE, not 'leaf1'"),
        ('["leaf1:e1-1", "frr:eth1"]', '["leaf1:e1-1"]', "links[0]: needs two endpoints"),
        ("frr:eth2", "leaf2:eth8", "connects a switch to itself"),
        ("    leaf2:", "    leaf1:\n    leaf2:", "line 8: not YAML: key 'leaf1' occurs twice"),
    ],
)
def test_mistakes_are_one_line(old: str, new: str, says: str) -> None:
    assert old in LAB
    with pytest.raises(FabricError) as caught:
        from_containerlab(LAB.replace(old, new, 1), "bad")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_hosts_cannot_be_linked() -> None:
    text = LAB.replace(
        "    gpu2: {kind: linux}", "    gpu2: {kind: linux}\n    gpu3: {kind: linux}"
    )
    with pytest.raises(FabricError, match="a link joins 'gpu2' and 'gpu3', both of kind linux"):
        from_containerlab(text.replace("leaf2:eth2", "gpu3:eth1"), "bad")


@given(st.integers(0, 10**6))
def test_a_generated_lab_is_the_fabric_that_was_written(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    spec = rng.choice(["ring,4", "clos,3", "mesh,3,2,hosts=2", "random,8,degree=3", "fattree3,4"])
    fabric = load(spec)
    nodes: dict[str, object] = {s.name: {"kind": "sonic-vs"} for s in fabric.switches}
    nodes |= {host.name: {"kind": "linux"} for host in fabric.hosts}
    ends = [(f"{x.a}:eth{x.a_port}", f"{x.b}:eth{x.b_port}") for x in fabric.links]
    ends += [(f"{h.switch}:eth{h.port}", f"{h.name}:eth1") for h in fabric.hosts]
    rng.shuffle(ends)
    links = [{"endpoints": rng.sample(both, 2)} for both in ends]
    lab = {"topology": {"nodes": nodes, "links": links}}
    read = from_containerlab(yaml.safe_dump(lab, sort_keys=False), "x")
    assert [s.name for s in read.switches] == [s.name for s in fabric.switches]
    hosts, cables = (
        [{(h.name, h.switch, h.port) for h in one.hosts} for one in (read, fabric)],
        [
            {frozenset([(x.a, x.a_port), (x.b, x.b_port)]) for x in one.links}
            for one in (read, fabric)
        ],
    )
    assert hosts[0] == hosts[1]
    assert cables[0] == cables[1]


@given(st.integers(0, len(LAB)), st.integers(0, 40), st.text(max_size=8))
@pytest.mark.examples(3)
def test_a_damaged_file_is_a_fabric_or_an_error_of_one_line(
    offset: int, gone: int, piece: str
) -> None:
    message = ""
    try:
        from_containerlab(LAB[:offset] + piece + LAB[offset + gone :], "some")
    except FabricError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 400


def lab(nodes: str, *links: str) -> str:
    """Return a file of containerlab; a link is ``a:eth1-b:eth1``."""
    ends = "".join(f"    - endpoints: {json.dumps(link.split('-'))}\n" for link in links)
    return f"topology:\n  nodes: {nodes}\n  links:\n{ends}"


def test_nodes_share_a_network_through_others_and_may_run_beside_them() -> None:
    nodes = (
        "{a: {kind: x}, card: {kind: x, network-mode: 'container:a'}, b: {kind: x},"
        " probe: {kind: linux, network-mode: 'container:card'},"
        " alien: {kind: linux, network-mode: 'container:elsewhere'}, m: {network-mode: none}}"
    )
    fabric = from_containerlab(lab(nodes, "card:e1-b:e1", "probe:e2-b:e2", "a:e3-card:e3"), "lab")
    assert [switch.name for switch in fabric.switches] == ["a", "b"]
    assert [link.name for link in fabric.links] == ["a:1-b:1", "a:2-b:2"]
    assert fabric.notes == (
        "nodes that share another's network are parts of it: card of a, probe of a",
        "links inside of a node are left out: a:e3-card:e3",
        "nodes without a link are left out: alien, m",
    )


def test_networks_that_are_shared_in_a_circle_are_refused() -> None:
    nodes = "{a: {network-mode: 'container:b'}, b: {network-mode: 'container:a'}}"
    with pytest.raises(FabricError, match="nodes: a: network-mode leads back to a"):
        from_containerlab(lab(nodes, "a:e1-b:e1"), "lab")


def test_a_lab_whose_parts_are_not_linked_is_refused() -> None:
    nodes = "{a: {kind: x}, b: {kind: x}, c: {kind: x}, d: {kind: x}}"
    with pytest.raises(FabricError, match="switch c cannot be reached from a"):
        from_containerlab(lab(nodes, "a:e1-b:e1", "c:e1-d:e1"), "lab")
    with pytest.raises(FabricError, match="switch b cannot be reached from a"):
        from_containerlab(lab(nodes), "lab")
