"""GraphML and ibnetdiscover output as fabrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.topologies import FabricError, load
from knotless.topologies.formats.graphml import from_graphml
from knotless.topologies.formats.ibnetdiscover import from_ibnetdiscover

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="kind" attr.type="string"/>
  <key id="d1" for="node" attr.name="dpid" attr.type="long"/>
  <key id="d2" for="edge" attr.name="rate_mbps" attr.type="double"/>
  <key id="d3" for="edge" attr.name="source_port" attr.type="int"/>
  <key id="d4" for="node" attr.name="mac" attr.type="string"/>
  <key id="d5" for="node" attr.name="colour" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="left"><data key="d1">2</data><data key="d5">red</data></node>
    <node id="right"/>
    <node id="a"><data key="d0">host</data><data key="d4">0A:00:00:00:00:01</data></node>
    <node id="b"><data key="d0">host</data></node>
    <edge source="left" target="right"><data key="d2">40</data><data key="d3">7</data></edge>
    <edge source="a" target="left"/>
    <edge source="right" target="b"/>
    <edge source="right" target="left"/>
  </graph>
</graphml>
"""

IBNETDISCOVER = """#
# Topology file: generated on Sat Oct 27 12:00:00 2007
#
vendid=0x8f1
devid=0x5a06
sysimgguid=0x5442ba00003000
switchguid=0x5442ba00003080(5442ba00003080)
Switch\t24 "S-005442ba00003080"\t\t# "ISR9024 Voltaire" base port 0 lid 6 lmc 0
[22]\t"H-0008f10403961354"[1](8f10403961355) \t\t# "MT23108 InfiniHost" lid 4 4xSDR
[10]\t"S-0008f10400410015"[1] \t\t# "SW-6IB4 Voltaire" lid 3 4xSDR
[6]\t"S-0008f10400410015"[3] \t\t# "SW-6IB4 Voltaire" lid 3 4xSDR

switchguid=0x8f10400410015(8f10400410015)
Switch\t8 "S-0008f10400410015"\t\t# "SW-6IB4 Voltaire" base port 0 lid 3 lmc 0
[6]\t"H-0008f10403960984"[1](8f10403960985) \t\t# "MT23108 InfiniHost" lid 16 4xSDR
[1]\t"S-005442ba00003080"[10] \t\t# "ISR9024 Voltaire" lid 6 1xSDR
[3]\t"S-005442ba00003080"[6] \t\t# "ISR9024 Voltaire" lid 6 4xSDR

caguid=0x8f10403960984
Ca\t2 "H-0008f10403960984"\t\t# "MT23108 InfiniHost"
[1](8f10403960985) \t"S-0008f10400410015"[6]\t\t# lid 16 lmc 1 "SW-6IB4 Voltaire" lid 3 4xSDR
"""


def test_graphml_keeps_given_values_and_numbers_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "pair.graphml"
    file.write_text(GRAPHML)
    fabric = load(str(file))
    assert fabric.name == "pair"
    assert [(s.name, s.dpid) for s in fabric.switches] == [("left", 2), ("right", 3)]
    hosts = [(h.name, h.mac, h.ip, h.switch, h.port) for h in fabric.hosts]
    assert hosts == [
        ("a", "0a:00:00:00:00:01", "10.0.1.1", "left", 1),
        ("b", "02:00:00:00:02:01", "10.0.2.1", "right", 1),
    ]
    links = [(x.a, x.a_port, x.b, x.b_port, x.rate_mbps) for x in fabric.links]
    assert links == [("left", 7, "right", 2, 40.0), ("right", 3, "left", 2, 10.0)]


def test_a_plain_graph_gets_a_host_on_each_switch_and_names_that_can_be_used() -> None:
    text = (
        '<graphml><graph edgedefault="undirected"><node id="(0, 0)"/><node id="(0, 1)"/>'
        '<edge source="(0, 1)" target="(0, 0)"/></graph></graphml>'
    )
    fabric = from_graphml(text, "grid")
    assert [s.name for s in fabric.switches] == ["0_0", "0_1"]
    assert [(h.name, h.switch) for h in fabric.hosts] == [("h1", "0_0"), ("h2", "0_1")]


def test_graphml_switches_may_say_how_many_hosts_they_have() -> None:
    text = (
        '<graphml><key id="n" attr.name="hosts"/><graph><node id="h1"><data key="n">2</data>'
        '</node><node id="s2"/><edge source="h1" target="s2"/></graph></graphml>'
    )
    fabric = from_graphml(text, "two")
    assert [(h.name, h.switch, h.port) for h in fabric.hosts] == [("h2", "h1", 1), ("h3", "h1", 2)]


def graphml(body: str, keys: str = "", graph: str = "") -> str:
    return f"<graphml>{keys}<graph {graph}>{body}</graph></graphml>"


KIND = '<key id="k" attr.name="kind"/>'
HOST = '<data key="k">host</data>'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<graphml>", "not XML"),
        ("<svg/>", "the root element is 'svg'"),
        ("<graphml/>", "has no graph"),
        ('<!DOCTYPE g [<!ENTITY a "aaaa">]><graphml/>', "document type (DTD) is not allowed"),
        (
            '<!DOCTYPE g SYSTEM "file:///etc/passwd"><graphml/>',
            "document type (DTD) is not allowed",
        ),
        (graphml(""), "no switch"),
        (graphml('<node id="a"/><node id="a"/>'), "occurs twice"),
        (graphml("<node/>"), "id is missing"),
        (graphml('<node id="a"/><edge source="a" target="b"/>'), "unknown node 'b'"),
        (graphml('<node id="a"/><edge source="a" target="a"/>'), "connects a switch to itself"),
        (graphml('<node id="a"/><node id="b"/>'), "cannot be reached"),
        (
            graphml(
                '<node id="a"/><node id="b"/><node id="c"><data key="k">2</data></node>'
                '<edge source="a" target="b"/>',
                '<key id="k" attr.name="hosts"/>',
            ),
            "switch c cannot be reached from a",
        ),
        (
            graphml(
                '<node id="a"/><node id="b"/><node id="c"/><edge source="a" target="b"/>'
                '<edge source="b" target="a"/><edge source="b" target="c"/>',
                graph='edgedefault="directed"',
            ),
            "edge 'b-c': is directed, and has no opposite edge although other edges have one",
        ),
        (
            graphml(
                '<node id="a"/><node id="b"/><edge source="a" target="b"><data key="k">1</data>'
                '</edge><edge source="b" target="a"><data key="k">2</data></edge>',
                '<key id="k" attr.name="rate_mbps"/>',
                'edgedefault="directed"',
            ),
            "rate_mbps is '2', but '1' the other way",
        ),
        (graphml('<node id="a"><graph/></node>'), "one graph"),
        (graphml('<node id="a"/><hyperedge/>'), "hyperedges"),
        (graphml(f'<node id="a">{HOST}</node>', KIND), "no switch"),
        (graphml(f'<node id="s"/><node id="a">{HOST}</node>', KIND), "needs an edge"),
        (
            graphml(
                f'<node id="s"/><node id="a">{HOST}</node><node id="b">{HOST}</node>'
                '<edge source="a" target="b"/>',
                KIND,
            ),
            "connects two hosts",
        ),
        (
            graphml(
                f'<node id="s"/><node id="a">{HOST}</node>' + '<edge source="s" target="a"/>' * 2,
                KIND,
            ),
            "a host has only one",
        ),
        (graphml('<node id="a"><data key="k">router</data></node>', KIND), "switch or host"),
        (
            graphml('<node id="a"><data key="k">x</data></node>', '<key id="k" attr.name="dpid"/>'),
            "whole number",
        ),
        (
            graphml(
                '<node id="a"><data key="k">255</data></node>', '<key id="k" attr.name="hosts"/>'
            ),
            "hosts must be 0 to 254",
        ),
        (
            graphml(
                '<node id="a"/><node id="b"/>'
                '<edge source="a" target="b"><data key="k">nan</data></edge>',
                '<key id="k" attr.name="rate_mbps"/>',
            ),
            "must be a number",
        ),
    ],
)
def test_bad_graphml_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(FabricError) as caught:
        from_graphml(text, "bad")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ibnetdiscover_keeps_ports_and_guids(tmp_path: Path) -> None:
    file = tmp_path / "cluster.txt"
    file.write_text(IBNETDISCOVER)
    fabric = load(str(file))
    assert fabric.name == "cluster"
    guids = [("s1", 0x5442BA00003080), ("s2", 0x8F10400410015)]
    assert [(s.name, s.dpid) for s in fabric.switches] == guids
    # The second adapter has no block of its own: it is listed in its switch's block.
    hosts = [(h.name, h.mac, h.switch, h.port) for h in fabric.hosts]
    assert hosts == [
        ("h1", "02:00:00:00:02:06", "s2", 6),
        ("h2", "02:00:00:00:01:16", "s1", 22),
    ]
    links = [(x.a, x.a_port, x.b, x.b_port) for x in fabric.links]
    assert links == [("s1", 6, "s2", 3), ("s1", 10, "s2", 1)]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("Switch\t8", "Swtch\t8", "not a line of ibnetdiscover output"),
        ('[3]\t"S-005442ba00003080"[6]', '[3]\t"S-005442ba00003080"[7]', "but elsewhere to port"),
        ('[3]\t"S-005442ba00003080"[6]', '[1]\t"S-005442ba00003080"[10]', "occurs twice"),
        ('Switch\t8 "S-0008f10400410015"', 'Switch\t8 "S-005442ba00003080"', "occurs twice"),
        ('Switch\t8 "S-', 'Switch\t8 "H-', "must not have the id"),
        ('Switch\t24 "S-005442ba00003080"', "vendid=0", "a port before any"),
        ("[6]\t", "[6ibwarn: [7] mad_rpc: timeout", "an error of ibnetdiscover is inside a line"),
        ("[6]\t", "[6]" + " " * 1000, "not a line of ibnetdiscover output"),
        ('[22]\t"H', '[0]\t"H', "on port 0 it needs"),
        ('[22]\t"H', '[255]\t"H', "needs an explicit MAC and IP"),
    ],
)
def test_bad_ibnetdiscover_output_is_refused_in_one_line(old: str, new: str, says: str) -> None:
    assert old in IBNETDISCOVER
    with pytest.raises(FabricError) as caught:
        from_ibnetdiscover(IBNETDISCOVER.replace(old, new, 1), "bad")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "format not known; known are knotless's JSON, GraphML, node-link JSON of NetworkX"),
        ('Switch 2 "S-01"\n', "no channel adapter"),
        ("hello", "format not known; known are"),
        ('[1]\t"H-0000000000000010"[1](11)\n', "a port before any Switch, Ca or Rt line"),
        ('Creator "x"\ngraph [\n  node [ id 0 ]\n]\n', "it looks like GML; known are"),
        ('graph [ node [ id 0 label "a" ] ]', "it looks like GML; known are"),
        ("?SNDlib native format; type: network; version: 1.0\n", "it looks like SNDlib's native"),
        ("name: lab\nnodes:\n  r1: {}\n", "it looks like YAML; known are"),
        ("strict digraph g { a -> b }", "it looks like DOT"),
        ("---\nswitches: 4\n", "it looks like YAML"),
        ('{"edges": [{"node1": {}, "node2": {}}]}', "it looks like a list of cables of Batfish"),
        ('{"DEVICE_METADATA": {"localhost": {}}}', "it looks like a database of SONiC; known are"),
        ('{"lldp": [{}]}', "it looks like LLDP neighbours (lldpctl); known are"),
        (
            "! Command: show running-config\n! device: leaf1 (cEOS, EOS-4.32.0F)\n",
            "tion of EOS; kn",
        ),
        ("frr version 8.4\nfrr defaults traditional\n", "a configuration of FRR; known are"),
        ("!Command: show running-config\nversion 9.3\n", "a configuration of NX-OS; known are"),
        ("set system host-name leaf1\n", "a configuration of Junos; known are"),
        (" cookie=0x0, priority=0 actions=NORMAL\n", "rules of Open vSwitch; known are"),
        ('<network xmlns="http://sndlib.zib.de/network"/>', "of XML formats, only GraphML is read"),
    ],
)
def test_other_text_is_refused(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "some.txt"
    file.write_text(text)
    with pytest.raises(FabricError) as caught:
        load(str(file))
    assert says in str(caught.value)
    assert str(file) in str(caught.value)
