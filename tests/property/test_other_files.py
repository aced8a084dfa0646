"""Fabrics of other programs: one fabric however it is written; hostile text is an error."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import FabricError
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.cable_list import from_cable_list
from knotless.topologies.formats.graph_json import from_graph_json, is_graph
from knotless.topologies.formats.graphml import from_graphml
from knotless.topologies.formats.ibnetdiscover import from_ibnetdiscover
from knotless.topologies.validate import validate
from tests.support.infiniband_dumps import random_subnet
from tests.unit.topologies.test_foreign_fabrics import COMPLAINTS
from tests.unit.topologies.test_other_files import GRAPHML, IBNETDISCOVER

PIECES = st.text(max_size=12) | st.sampled_from(
    ["<node>", "</node>", '"', "<edge/>", "&lt;", "[1]", "0", "-1", "S-", "99999999999", "\n", "\t"]
)


def tolerates(reader: Callable[[str, str], Fabric], text: str) -> None:
    message = ""
    try:
        validate(reader(text, "some"))
    except FabricError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 400


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    tolerates(from_graphml, text)
    tolerates(from_ibnetdiscover, text)
    tolerates(from_cable_list, text)


CELLS = st.lists(st.sampled_from(["a", "b", "c", "", "1", '"', "host", "inf", "a,b"]), max_size=6)


@given(st.lists(CELLS, max_size=6))
@pytest.mark.examples(3)
def test_any_list_of_cables(rows: list[list[str]]) -> None:
    lines = ["a,a_port,b,b_port,kind_b,rate_mbps", *map(",".join, rows)]
    tolerates(from_cable_list, "\n".join(lines))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["a", "b", "host", ""]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["id", "source", "target", "data", "kind", "hosts", "dpid"]), inner
    ),
    max_leaves=12,
)


@given(VALUES, VALUES)
@pytest.mark.examples(3)
def test_any_graph_in_json(nodes: object, links: object) -> None:
    for graph in (
        {"nodes": nodes, "links": links},
        {"elements": {"nodes": nodes, "edges": links}},
        {"elements": nodes},
    ):
        assert is_graph(graph)
        tolerates(partial(_from_graph, graph), "")


def _from_graph(graph: object, _: str, name: str) -> Fabric:
    return from_graph_json(graph, name)


@given(st.integers(0, len(GRAPHML)), st.integers(0, 40), PIECES)
@pytest.mark.examples(6)
def test_damaged_graphml(offset: int, gone: int, piece: str) -> None:
    tolerates(from_graphml, GRAPHML[:offset] + piece + GRAPHML[offset + gone :])


@given(st.integers(0, len(IBNETDISCOVER)), st.integers(0, 40), PIECES)
@pytest.mark.examples(6)
def test_damaged_ibnetdiscover_output(offset: int, gone: int, piece: str) -> None:
    tolerates(from_ibnetdiscover, IBNETDISCOVER[:offset] + piece + IBNETDISCOVER[offset + gone :])


@given(st.permutations(IBNETDISCOVER.split("\n")))
def test_shuffled_ibnetdiscover_output(lines: list[str]) -> None:
    tolerates(from_ibnetdiscover, "\n".join(lines))


def bare(fabric: Fabric) -> tuple[object, ...]:
    """Return what a fabric has besides notes, names of hosts and the order of its parts."""
    links = {frozenset([(x.a, x.a_port), (x.b, x.b_port)]) for x in fabric.links}
    return [s.dpid for s in fabric.switches], {(h.switch, h.port) for h in fabric.hosts}, links


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
@pytest.mark.examples(0.6)
def test_additions_to_ibnetdiscover_output_change_no_fabric(seed: int, rng: random.Random) -> None:
    """Headings and labels of -g, errors between lines, loopback cables, aggregation nodes."""
    subnet = random_subnet(seed)
    text = subnet.files()["ibnetdiscover.txt"]
    lines = []
    for line in text.splitlines():
        lines.append(rng.choice(["", "", "", "Non-Chassis Nodes", "Chassis 1", *COMPLAINTS]))
        if line.startswith("["):
            line = re.sub(r"(\[\d+\])", rng.choice([r"\1", r"\1[ext 7]"]), line)
        lines.append(line)
        if line.startswith("Switch"):
            number = len(lines)
            node = re.findall(r'"(S-\w+)"', line)[0]
            lines += [
                f'[30]\t"{node}"[31]\t# "x" lid 1 4xQDR',
                f'[40]\t"H-{number:016x}"[1](1) \t# "Mellanox Technologies Aggregation Node" lid 7',
            ]
    fabric = from_ibnetdiscover("\n".join(lines), "some")
    assert bare(fabric) == bare(from_ibnetdiscover(text, "some"))
    assert any("itself are ignored" in note for note in fabric.notes)
    assert any("are not taken for hosts" in note for note in fabric.notes)


@given(st.integers(0, 10_000))
@pytest.mark.examples(0.6)
def test_the_report_of_ports_is_the_same_fabric(seed: int) -> None:
    subnet = random_subnet(seed)
    lines = []
    for (switch, port), (kind, peer, peer_port) in sorted(subnet.ends.items()):
        near = f"SW {subnet.switch_lid(switch):5d} {port:2d} 0x{0x500000 + switch:016x}"
        if kind == "host":
            far = f"CA {subnet.lids(peer)[0]:5d} {1:2d} 0x{0x900001 + 2 * peer:016x}"
            name = subnet.hosts[peer][0]
            lines.append(f"{far} 4x QDR - {near} ( '{name}' - '{subnet.names[switch]}' )")
        else:
            far = f"SW {subnet.switch_lid(peer):5d} {peer_port:2d} 0x{0x500000 + peer:016x}"
            name = subnet.names[peer]
        lines.append(f"{near} 4x QDR - {far} ( '{subnet.names[switch]}' - '{name}' )")
        lines.append(f"SW {1:5d} {36:2d} 0x{0x500000 + switch:016x} 4x ???{' ' * 36}'x'")
    ports = from_ibnetdiscover("\n".join(sorted(lines, reverse=False)), "some")
    blocks = from_ibnetdiscover(subnet.files()["ibnetdiscover.txt"], "some")

    def by_dpid(fabric: Fabric) -> tuple[set[object], set[object]]:
        dpid = {switch.name: switch.dpid for switch in fabric.switches}
        links = {frozenset([(dpid[x.a], x.a_port), (dpid[x.b], x.b_port)]) for x in fabric.links}
        return {(dpid[h.switch], h.port) for h in fabric.hosts}, {*links}

    assert by_dpid(ports) == by_dpid(blocks)


@given(st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_graph_is_one_fabric_in_every_style_of_graphml(count: int, rng: random.Random) -> None:
    """Plain, directed once or both ways, as yEd draws it, kinds by default, several encodings."""
    nodes = [(f"s{i}", "switch") for i in range(count)]
    pairs = {(rng.randrange(i), i) for i in range(1, count)}
    pairs |= {(rng.randrange(i), i) for i in range(1, count)}
    edges = [(f"s{a}", f"s{b}") for a, b in sorted(pairs)]
    for number in range(rng.randint(1, 4)):
        nodes.append((f"h{number}", "host"))
        edges.append((f"s{rng.randrange(count)}", f"h{number}"))
    expected = from_graphml(written(nodes, edges), "some")
    assert len(expected.switches) == count
    assert expected.notes == ()
    for style in ("once", "twice", "yed", "host by default", "switch by default", "type"):
        fabric = from_graphml(written(nodes, edges, style), "some")
        assert fabric == expected, style
    for encoding in ("utf-16", "iso-8859-1", "windows-1252"):
        head = f'<?xml version="1.0" encoding="{encoding}"?>'
        assert from_graphml((head + written(nodes, edges)).encode(encoding), "some") == expected


YED = 'xmlns:y="http://www.yworks.com/xml/graphml"'


def written(nodes: list[tuple[str, str]], edges: list[tuple[str, str]], style: str = "") -> str:
    """Return a graph as GraphML; ``style`` is how."""
    default = style.partition(" by default")[0] if style.endswith("default") else ""
    name = "type" if style == "type" else "kind"
    key = f'<key id="k" for="node" attr.name="{name}"><default> {default} </default></key>'
    directed = style in ("once", "twice", "yed")
    lines = [
        f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns" {YED}>{key}'
        f'<graph edgedefault="{"directed" if directed else "undirected"}">'
    ]
    for i, (node, kind) in enumerate(nodes):
        data = "" if kind == default else f'<data key="k">{kind}</data>'
        if style == "yed":
            label = f"<y:ShapeNode><y:NodeLabel>{node}</y:NodeLabel></y:ShapeNode>"
            data += f'<data key="g">{label}</data>'
        own = f"n{i}" if style == "yed" else node
        lines.append(f"<node id={quoteattr(own)}>{data}</node>")
    number = {node: f"n{i}" if style == "yed" else node for i, (node, _) in enumerate(nodes)}
    for a, b in edges:
        arrows = '<y:Arrows source="none" target="none"/>' if style == "yed" else ""
        data = f'<data key="e"><y:PolyLineEdge>{arrows}</y:PolyLineEdge></data>' * bool(arrows)
        lines.append(f'<edge source="{number[a]}" target="{number[b]}">{data}</edge>')
        if style == "twice":
            lines.append(f'<edge source="{b}" target="{a}"/>')
    return "\n".join([*lines, "</graph></graphml>"])
