"""Graphs as JSON: node-link data and elements of Cytoscape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from knotless.topologies import FabricError, load
from knotless.topologies.formats.graph_json import from_graph_json, is_graph
from knotless.topologies.formats.graphs import from_networkx


def node_link(*edges: tuple[Any, Any], **more: Any) -> dict[str, Any]:
    ids = dict.fromkeys(json.dumps(end) for edge in edges for end in edge)
    nodes = [{"id": json.loads(one)} for one in ids]
    return {"nodes": nodes, "links": [{"source": a, "target": b} for a, b in edges], **more}


@pytest.mark.parametrize("key", ["links", "edges"])
@pytest.mark.parametrize("form", ["node-link", "cytoscape"])
def test_networkx_reads_and_writes_the_same_graph(form: str, key: str, tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.petersen_graph()
    networkx.set_edge_attributes(graph, 40, "rate_mbps")
    written = (
        networkx.node_link_data(graph, edges=key)
        if form == "node-link"
        else networkx.cytoscape_data(graph)
    )
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(written))
    fabric = load(str(file))
    expected = from_networkx(graph)
    assert fabric.links == expected.links
    assert (fabric.switches, fabric.hosts) == (expected.switches, expected.hosts)
    assert {link.rate_mbps for link in fabric.links} == {40}


def test_data_hosts_and_directions_are_those_of_graphml() -> None:
    graph = node_link(("left", "right"), ("right", "left"), ("h", "left"), ("left", "h"))
    graph["directed"] = True
    graph["nodes"][0] |= {"dpid": 7, "colour": "red"}
    graph["nodes"][2] |= {"kind": "host", "mac": "0A:00:00:00:00:01"}
    for link in graph["links"][:2]:
        link["rate_mbps"] = 40.5
    fabric = from_graph_json(graph, "pair")
    assert [(switch.name, switch.dpid) for switch in fabric.switches] == [("left", 7), ("right", 2)]
    assert [(host.name, host.mac, host.switch) for host in fabric.hosts] == [
        ("h", "0a:00:00:00:00:01", "left")
    ]
    assert [link.rate_mbps for link in fabric.links] == [40.5]
    assert fabric.notes[0] == "two opposite directed edges are one link"
    assert "data of nodes that are not read: colour" in fabric.notes[1]


def test_nodes_of_d3_are_meant_by_their_place() -> None:
    graph = {"nodes": [{"name": "a"}, {"name": "b"}], "links": [{"source": 0, "target": 1}]}
    assert [switch.name for switch in from_graph_json(graph, "d3").switches] == ["a", "b"]


def test_tuples_are_ids_as_lists() -> None:
    graph = node_link(([0, 0], [0, 1]), ([0, 1], [1, 1]))
    names = [switch.name for switch in from_graph_json(graph, "grid").switches]
    assert names == ["0_0", "0_1", "1_1"]


def test_elements_of_cytoscape_may_be_one_list_and_groups_are_left_out(tmp_path: Path) -> None:
    elements = [
        {"data": {"id": "rack"}},
        {"group": "nodes", "data": {"id": "a", "parent": "rack", "label": "leaf 1"}},
        {"group": "nodes", "data": {"id": "b", "parent": "rack", "label": "leaf 2"}},
        {"group": "edges", "data": {"id": "e", "source": "a", "target": "b"}},
    ]
    for number, graph in enumerate([elements, {"elements": elements, "style": []}]):
        file = tmp_path / f"{number}.cyjs"
        file.write_text(json.dumps(graph))
        fabric = load(str(file))
        assert [switch.name for switch in fabric.switches] == ["leaf_1", "leaf_2"]
        assert "nodes without a link are left out: rack" in fabric.notes


def test_nodes_without_a_link_are_left_out_but_not_hosts() -> None:
    graph = node_link(("a", "b"))
    graph["nodes"].append({"id": "prometheus"})
    fabric = from_graph_json(graph, "some")
    assert [switch.name for switch in fabric.switches] == ["a", "b"]
    assert fabric.notes == ("nodes without a link are left out: prometheus",)
    graph["nodes"].append({"id": "gpu", "kind": "host"})
    with pytest.raises(FabricError, match=r"nodes\[3\]: node 'gpu': a host needs an edge"):
        from_graph_json(graph, "some")


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        ({"nodes": {}, "links": []}, "nodes must be a list"),
        ({"nodes": [3], "links": []}, "nodes[0]: must be an object"),
        ({"nodes": [{"id": True}, {"id": {}}], "links": []}, "nodes[1]: the id of a node must be"),
        ({"nodes": [{"id": "a"}, {"id": "a"}], "links": []}, "nodes[1]: node 'a': occurs twice"),
        ({"nodes": [{"id": "a"}], "edges": [{"source": "a"}]}, "edges[0]: target is missing"),
        (node_link(("a", "a")), "connects a switch to itself"),
        ({"nodes": [{"id": "a"}], "links": [{"source": "a", "target": "b"}]}, "unknown node 'b'"),
        ({"elements": {"nodes": [{}], "edges": []}}, "nodes[0]: data must be an object"),
        ({"elements": 3}, "elements must be a list"),
        (node_link(("a", "b")) | {"nodes": [{"id": "a", "dpid": [1]}]}, "dpid must be text or a"),
        ({"nodes": [], "links": []}, "the graph has no switch"),
    ],
)
def test_what_is_refused(graph: dict[str, Any], says: str) -> None:
    assert is_graph(graph)
    with pytest.raises(FabricError) as caught:
        from_graph_json(graph, "some")
    assert says in str(caught.value)


@pytest.mark.parametrize("value", [None, [], [1], {"nodes": []}, {"switches": [], "links": []}])
def test_what_is_no_graph(value: object) -> None:
    assert not is_graph(value)
