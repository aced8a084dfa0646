"""Fabrics that other programs wrote: what is read, and what the notes say is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, FabricError, load
from knotless.topologies.formats.graphml import from_graphml
from knotless.topologies.formats.ibnetdiscover import from_ibnetdiscover
from knotless.verification.checked_plan import CheckedPlan
from tests.support import REPOSITORY

FILES = REPOSITORY / "tests" / "data" / "fabrics"


def described(fabric: Fabric) -> tuple[list[str], list[str], list[str]]:
    switches = [switch.name for switch in fabric.switches]
    return switches, [host.name for host in fabric.hosts], [link.name for link in fabric.links]


@pytest.mark.parametrize(
    ("file", "switches", "hosts", "links", "notes"),
    [
        ("loopback-cable.ibnetdiscover", ["s1"], ["h1", "h2"], [], ["itself are ignored: S-0000"]),
        ("grouping.ibnetdiscover", ["s1"], ["h1", "h2"], [], []),
        ("graphml-default.graphml", ["0"], ["1", "2", "3"], [], []),
        ("directed-edges.graphml", ["a", "b"], ["h1", "h2"], ["a:2-b:2"], ["are one link"]),
        ("yed.graphml", ["leaf1", "leaf2"], ["h1", "h2"], ["leaf1:2-leaf2:2"], []),
        (
            "telemetry.clab.yml",
            ["spine1", "spine2", "leaf1", "leaf2"],
            ["client1", "client2"],
            ["leaf1:49-spine1:1", "leaf1:50-spine2:1", "leaf2:49-spine1:2", "leaf2:50-spine2:2"],
            ["left out: gnmic, prometheus", "are hosts: client1, client2"],
        ),
        (
            "network-mode.clab.yml",
            ["sr-a", "leaf"],
            ["h1", "h2"],
            ["sr-a:2-leaf:1", "sr-a:3-leaf:2"],
            ["are parts of it: sr-1 of sr-a, sr-2 of sr-a"],
        ),
        (
            "collector.graphml",
            ["a", "b", "c"],
            ["h1", "h2", "h3"],
            ["a:2-b:2", "b:3-c:3", "c:2-a:3"],
            ["left out: collector"],
        ),
        ("cytoscape.json", ["a", "b"], ["h1", "h2"], ["a:2-b:2"], []),
        ("node-link.json", ["a", "b"], ["h1", "h2"], ["a:2-b:2"], []),
        (
            "sonic_lab_links.csv",
            ["t0-1", "t0-2", "t1-1"],
            ["tg-1-1", "tg-1-2", "serv-1"],
            ["t1-1:1-t0-1:2", "t1-1:2-t0-2:3"],
            ["VlanID, VlanMode, AutoNeg", "left out: pdu-1", "are hosts: tg-1, serv-1"],
        ),
        (
            "netbox_cables.csv",
            ["spine1", "leaf1", "leaf2"],
            ["h1", "h2", "h3"],
            ["spine1:1-leaf1:49", "spine1:2-leaf2:49"],
            ["read: ID, Label, Site A", "with status Planned", "no column says"],
        ),
        (
            "networkx-cycle4.graphml",
            ["0", "1", "2", "3"],
            ["h1", "h2", "h3", "h4"],
            ["0:2-1:2", "0:3-3:2", "1:3-2:2", "2:3-3:3"],
            [],
        ),
    ],
)
def test_a_file_is_the_fabric_that_its_program_meant(
    file: str, switches: list[str], hosts: list[str], links: list[str], notes: list[str]
) -> None:
    fabric = load(str(FILES / file))
    assert described(fabric) == (switches, hosts, links)
    assert len(fabric.notes) == len(notes)
    assert all(said in note for said, note in zip(notes, fabric.notes, strict=True))


def test_a_ring_in_json_is_the_ring_of_its_name() -> None:
    fabric = load(str(FILES / "tri.json"))
    assert fabric == load("ring,3")
    assert fabric.family == load("ring,3").family


def test_ports_of_graphml_on_edges_are_named() -> None:
    edge = '<edge source="a" target="b" sourceport="eth7"/>'
    fabric = from_graphml(graph("", '<node id="a"/><node id="b"/>', edge), "t")
    assert described(fabric)[2] == ["a:2-b:2"]
    assert fabric.notes[0].startswith("data of edges that are not read: sourceport; read are")


def test_aggregation_nodes_are_no_hosts() -> None:
    fabric = load(str(FILES / "sharp.ibnetdiscover"))
    assert [(host.switch, host.port) for host in fabric.hosts] == [
        ("s1", 1),
        ("s1", 2),
        ("s2", 1),
        ("s2", 2),
    ]
    assert "aggregation nodes are not taken for hosts: H-0000000000000101, " in fabric.notes[0]
    # As hosts of the spines they would turn these into leaves, which no tree engine accepts.
    assert CheckedPlan(make_plan(fabric, "fattree")).summary()["max_channel_load"] == 2


@pytest.mark.parametrize("devid", ["0xcf09", "0x1017"])
def test_an_aggregation_node_is_known_by_its_device_too(devid: str) -> None:
    text = (FILES / "sharp.ibnetdiscover").read_text()
    text = text.replace("Mellanox Technologies Aggregation Node", "renamed")
    text = text.replace('Ca\t1 "H-00000000000001', f'devid={devid}\nCa\t1 "H-00000000000001')
    assert len(from_ibnetdiscover(text, "sharp").hosts) == (4 if devid == "0xcf09" else 8)


PORTS = """SW     1  4 0x0000000000000001 4x EDR - SW     2  1 0x0000000000000002 ( 'a' - 'b' )
SW     1  3 0x0000000000000001 4x ???                                    'a'
SW     1  2 0x0000000000000001 4x EDR - CA     9  2 0x0000000000000012 ( 'a' - 'it's HCA-1' )
SW     1  1 0x0000000000000001 4x EDR - CA     8  1 0x0000000000000011 ( 'a' - 'it's HCA-1' )
CA     9  2 0x0000000000000012 4x EDR - SW     1  2 0x0000000000000001 ( 'it's HCA-1' - 'a' )
CA     8  1 0x0000000000000011 4x EDR - SW     1  1 0x0000000000000001 ( 'it's HCA-1' - 'a' )
SW     2  1 0x0000000000000002 4x EDR - SW     1  4 0x0000000000000001 ( 'b' - 'a' )
SW     2  2 0x0000000000000002 4x EDR - CA    10  1 0x0000000000000021 ( 'b' - 'c HCA-1' )
CA    10  1 0x0000000000000021 4x EDR - SW     2  2 0x0000000000000002 ( 'c HCA-1' - 'b' )
"""


def test_the_report_of_ports_is_read(tmp_path: Path) -> None:
    file = tmp_path / "ports.txt"
    file.write_text(PORTS)
    fabric = load(str(file))
    assert [link.name for link in fabric.links] == ["s1:4-s2:1"]
    hosts = [(host.switch, host.port) for host in fabric.hosts]
    assert sorted(hosts) == [("s1", 1), ("s1", 2), ("s2", 2)]


def test_a_contradiction_in_the_report_of_ports_is_refused() -> None:
    with pytest.raises(FabricError, match="line 7: .* but elsewhere to port 4"):
        from_ibnetdiscover(PORTS.replace("- SW     1  4 ", "- SW     1  5 "), "bad")


GROUPED = """Chassis 1 (guid 0x2c90000000000)

# Spine Nodes
vendid=0x2c9
devid=0xd2f0
sysimgguid=0x2c90000000000\t\t# Chassis 1
switchguid=0x1(1)\t# ISR9024D-M Spine 1 Chip 1
Switch\t24 "S-0000000000000001"\t\t# "sw" base port 0 lid 1 lmc 0
[1][ext 7]\t"S-0000000000000002"[1][ext 12]\t\t# "sw" lid 2 4xEDR
[3]\t"H-0000000000000010"[1](11) \t\t# "a" lid 3 4xEDR

# Line Nodes
# Chassis Switches
# Chassis CAs
Non-Chassis Nodes

Switch\t24 "S-0000000000000002"\t\t# "sw" base port 0 lid 2 lmc 0
[1][ext 12]\t"S-0000000000000001"[1][ext 7]\t\t# "sw" lid 1 4xEDR
[4]\t"H-0000000000000010"[2](12) \t\t# "a" lid 4 4xEDR

Ca\t2 "H-0000000000000010"\t\t# "a"
[1](11) \t"S-0000000000000001"[3]\t\t# lid 3 lmc 0 "sw" lid 1 4xEDR
[2](12) \t"S-0000000000000002"[4][ext 2]\t\t# lid 4 lmc 0 "sw" lid 2 4xEDR
"""
COMPLAINTS = (
    "ibwarn: [4711] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0,1,3)",
    "src/query_smp.c:197; umad (DR path slid 0; dlid 0; 0,1,3 Attr 0x11:0) bad status 110",
    "/usr/sbin/ibnetdiscover: iberror: failed: discover failed",
)


def test_groups_of_chassis_are_read() -> None:
    fabric = from_ibnetdiscover(GROUPED, "chassis")
    assert [link.name for link in fabric.links] == ["s1:1-s2:1"]
    assert [(host.switch, host.port) for host in fabric.hosts] == [("s1", 3), ("s2", 4)]


@pytest.mark.parametrize("complaint", COMPLAINTS)
def test_errors_between_the_lines_are_noted(complaint: str) -> None:
    lines = GROUPED.splitlines()
    for place in range(len(lines) + 1):
        fabric = from_ibnetdiscover("\n".join([*lines[:place], complaint, *lines[place:]]), "x")
        assert described(fabric) == described(from_ibnetdiscover(GROUPED, "x"))
        assert f"parts of the subnet may be missing: .* line {place + 1}: '"[:30] in fabric.notes[0]
        assert f"line {place + 1}: " in fabric.notes[0]


def test_adapters_without_a_switch_between_them_are_noted() -> None:
    extra = 'Ca\t1 "H-0000000000000020"\t# "b"\n[1](21) \t"H-0000000000000030"[1] (31) \t# lid 5\n'
    fabric = from_ibnetdiscover(GROUPED + extra, "pair")
    assert len(fabric.hosts) == 2
    assert fabric.notes == (
        "cables between two adapters are ignored: H-0000000000000020 and H-0000000000000030",
        "adapters with several linked ports are a host for each: H-0000000000000010",
    )


def test_a_port_with_a_loopback_plug_is_no_link() -> None:
    text = GROUPED.replace('[3]\t"H', '[9]\t"S-0000000000000001"[9]\t\t# "sw" lid 1\n[3]\t"H')
    fabric = from_ibnetdiscover(text, "plug")
    assert described(fabric) == described(from_ibnetdiscover(GROUPED, "plug"))
    assert "S-0000000000000001 ports 9 and 9" in fabric.notes[0]


def test_notes_are_said_on_standard_error() -> None:
    spec = str(FILES / "loopback-cable.ibnetdiscover")
    for words in (["plan", spec, "--json"], ["topology", spec, "--json"], ["analyse", spec]):
        pattern = ["--pattern", "shift:1"] if words[0] == "analyse" else []
        done = CliRunner(mix_stderr=False).invoke(main, [*words, *pattern])
        assert done.exit_code == 0, done.stderr
        assert "cables that connect a switch to itself are ignored" in done.stderr
        assert "ignored" not in done.stdout
    assert json.loads(CliRunner(mix_stderr=False).invoke(main, ["plan", spec, "--json"]).stdout)


def graph(keys: str, nodes: str, edges: str = "", default: str = "undirected") -> str:
    return (
        f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="t" for="node"'
        f' attr.name="type"/>{keys}<graph edgedefault="{default}">{nodes}{edges}</graph></graphml>'
    )


def typed(name: str, kind: str) -> str:
    return f'<node id="{name}"><data key="t">{kind}</data></node>'


LINKED = '<edge source="a" target="b"/><edge source="x" target="a"/>'


def test_the_type_of_a_node_may_say_that_it_is_a_host() -> None:
    fabric = from_graphml(
        graph("", typed("a", "switch") + typed("b", "router") + typed("x", "host"), LINKED), "t"
    )
    assert described(fabric) == (["a", "b"], ["x"], ["a:2-b:1"])
    assert fabric.notes == ("nodes of these types are taken for switches: 'router'",)


def test_kind_counts_where_there_is_type_too() -> None:
    keys = '<key id="k" for="node" attr.name="kind"><default>switch</default></key>'
    nodes = '<node id="a"/><node id="b"/>'
    text = graph(keys, nodes + typed("x", "host"), LINKED)
    fabric = from_graphml(text, "t")
    assert described(fabric)[0] == ["a", "b", "x"]
    assert fabric.notes == ("type is ignored, because there is kind",)


@pytest.mark.parametrize("name", ["capacity", "LinkSpeedRaw", "speed", "weight"])
def test_data_of_edges_that_are_not_read_are_named(name: str) -> None:
    keys = f'<key id="c" for="edge" attr.name="{name}"/>'
    edge = '<edge source="a" target="b"><data key="c">400</data></edge>'
    fabric = from_graphml(graph(keys, '<node id="a"/><node id="b"/>', edge), "t")
    assert fabric.links[0].rate_mbps == 10
    assert fabric.notes == (
        f"data of edges that are not read: {name}; read are source_port, target_port, rate_mbps,"
        " delay_us",
    )


def test_the_default_of_a_key_is_for_its_kind_of_element() -> None:
    keys = (
        '<key id="r" for="edge" attr.name="rate_mbps"><default>40</default></key>'
        '<key id="h" for="all" attr.name="hosts"><default>2</default></key>'
        '<key id="d" for="node" attr.name="delay_us"><default>7</default></key>'
        '<key id="e" for="node" attr.name="kind"><default/></key>'
    )
    nodes = '<node id="a"/><node id="b"><data key="h">0</data></node>'
    fabric = from_graphml(graph(keys, nodes, '<edge source="a" target="b"/>'), "t")
    assert [(host.switch, host.port) for host in fabric.hosts] == [("a", 1), ("a", 2)]
    assert (fabric.links[0].rate_mbps, fabric.links[0].delay_us) == (40, 500)
    assert [note.partition(";")[0] for note in fabric.notes] == [
        "data of nodes that are not read: delay_us",
        "data of edges that are not read: hosts",
    ]


def test_the_id_of_a_key_that_is_not_declared_is_its_name() -> None:
    nodes = '<node id="a"><data key="colour">red</data></node>'
    nodes += '<node id="x"><data key="kind">host</data></node>'
    fabric = from_graphml(graph("", nodes, '<edge source="x" target="a"/>'), "t")
    assert described(fabric) == (["a"], ["x"], [])
    assert fabric.notes[0].startswith("data of nodes that are not read: colour;")


@pytest.mark.parametrize("default", ["directed", "undirected"])
def test_edges_in_one_direction_only_are_links(default: str) -> None:
    edges = '<edge source="a" target="b" directed="true"/><edge source="b" target="c"/>'
    nodes = '<node id="a"/><node id="b"/><node id="c"/>'
    fabric = from_graphml(graph("", nodes, edges, default), "t")
    assert described(fabric)[2] == ["a:2-b:2", "b:3-c:2"]
    assert fabric.notes == ("the direction of edges is ignored: each is a link",)


def test_opposite_edges_share_their_data() -> None:
    keys = '<key id="s" for="edge" attr.name="source_port"/><key id="r" attr.name="rate_mbps"/>'
    edges = (
        '<edge source="a" target="b"><data key="s">7</data><data key="r">40</data></edge>'
        '<edge source="b" target="a"><data key="s">9</data></edge>'
    )
    text = graph(keys, '<node id="a"/><node id="b"/>', edges, "directed")
    (link,) = from_graphml(text, "t").links
    assert (link.name, link.rate_mbps) == ("a:7-b:9", 40)


def test_labels_of_yed_that_are_not_distinct_are_numbered_and_noted() -> None:
    text = (FILES / "yed.graphml").read_text().replace("leaf2", "leaf1")
    fabric = from_graphml(text, "t")
    assert described(fabric)[0] == ["leaf1", "leaf1-2"]
    assert fabric.notes == (
        "names that had to be changed to be valid and distinct: 'leaf1' is leaf1-2",
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252", "us-ascii"])
def test_graphml_may_have_any_encoding_that_it_declares(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "some.graphml"
    nodes = typed("a", "caf\xe9" if encoding != "us-ascii" else "cafe") + typed("x", "host")
    text = graph("", nodes, '<edge source="x" target="a"/>')
    file.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>\n{text}'.encode(encoding))
    fabric = load(str(file))
    assert described(fabric) == (["a"], ["x"], [])
    assert ("caf\xe9" in fabric.notes[0]) == (encoding != "us-ascii")


@pytest.mark.parametrize("encoding", ["utf-7", "shift_jis", "rot13", "no-such"])
def test_other_encodings_are_refused(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "some.graphml"
    file.write_text(f'<?xml version="1.0" encoding="{encoding}"?>\n<graphml><graph/></graphml>')
    with pytest.raises(FabricError) as caught:
        load(str(file))
    assert "not XML: " in str(caught.value)
    assert "\n" not in str(caught.value)
