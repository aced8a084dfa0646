"""Lists of cables as CSV: which columns are read, what is left out, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.topologies import FabricError, load
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.cable_list import LAYOUTS, from_cable_list

ROWS = [
    ("leaf1", "Ethernet48", "spine1", "Ethernet1"),
    ("leaf2", "Ethernet48", "spine1", "Ethernet2"),
    ("leaf1", "Ethernet1", "leaf2", "Ethernet1"),
]


def csv_of(header: tuple[str, ...], separator: str = ",") -> str:
    return "\n".join(separator.join(row) for row in [header, *ROWS])


def links(fabric: Fabric) -> list[str]:
    return [link.name for link in fabric.links]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_every_layout_gives_the_same_fabric(layout: tuple[str, ...], separator: str) -> None:
    fabric = from_cable_list(csv_of(layout, separator), "net")
    assert [switch.name for switch in fabric.switches] == ["leaf1", "spine1", "leaf2"]
    assert links(fabric) == ["leaf1:48-spine1:1", "leaf2:48-spine1:2", "leaf1:1-leaf2:1"]
    assert [(host.name, host.switch) for host in fabric.hosts] == [
        ("h1", "leaf1"),
        ("h2", "spine1"),
        ("h3", "leaf2"),
    ]


def test_a_list_is_recognised_by_its_columns_whatever_the_file_is_called(tmp_path: Path) -> None:
    for file in (tmp_path / "net.csv", tmp_path / "cables.txt"):
        file.write_text("\ufeff" + csv_of(LAYOUTS[1]))
        assert len(load(str(file)).links) == 3


def test_kinds_rates_and_hosts_with_several_cables() -> None:
    text = """a,a_port,b,b_port,kind_b,rate_mbps,delay_us
s1,1,s2,1,,40,
s1,2,gpu,eth0,host,25,
s2,2,gpu,eth1,host,25,3
s2,3,box,eth0,Host,,
"""
    fabric = from_cable_list(text, "net")
    assert [
        (h.name, h.switch, h.port, h.server, h.rate_mbps, h.delay_us) for h in fabric.hosts
    ] == [
        ("gpu-1", "s1", 2, "gpu", 25, 500),
        ("gpu-2", "s2", 2, "gpu", 25, 3),
        ("box", "s2", 3, None, 10, 500),
    ]
    assert [(link.name, link.rate_mbps) for link in fabric.links] == [("s1:1-s2:1", 40)]
    assert fabric.notes == ("these devices are hosts: gpu, box",)


def test_without_columns_of_ports_parallel_cables_stay_apart() -> None:
    fabric = from_cable_list("Source,Target,Weight\na,b,1\na,b,1\n", "net")
    assert links(fabric) == ["a:2-b:2", "a:3-b:3"]
    assert "columns that are not read: Weight" in fabric.notes


def test_a_cable_listed_from_both_ends_is_one() -> None:
    text = "a,a_port,b,b_port\ns1,1,s2,2\ns2,2,s1,1\n"
    fabric = from_cable_list(text, "net")
    assert links(fabric) == ["s1:1-s2:2"]
    assert "cables that were there before are left out: line 3" in fabric.notes


def test_a_breakout_of_netbox_is_a_link_to_each_device() -> None:
    text = 'Device A,Termination A,Device B,Termination B\ns1,et1,"a,b","e1,e2"\na,e3,b,e4\n'
    assert links(from_cable_list(text, "net")) == ["s1:2-a:2", "s1:3-b:2", "a:3-b:3"]


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("s1,dcim.consoleport,con,ts,dcim.interface,p1,connected", "of type consoleport"),
        ("s1,dcim.powerport,PSU1,pdu,dcim.poweroutlet,1,connected", "of type powerport"),
        ("s1,dcim.interface,e9,s2,dcim.interface,e9,planned", "with status planned"),
        ("s1,dcim.interface,e9,,,,connected", "without a device at one end"),
    ],
)
def test_cables_that_are_no_links_are_left_out(line: str, note: str) -> None:
    text = f"""side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,status
s1,dcim.interface,e1,s2,dcim.interface,e1,connected
{line}
"""
    fabric = from_cable_list(text, "net")
    assert links(fabric) == ["s1:1-s2:1"]
    assert f"cables {note} are left out: line 3" in fabric.notes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x,y\n1,2\n", "no columns of a list of cables, which are one of: a,a_port,b,b_port; Dev"),
        ("a,b\n", "no cable between two devices"),
        ("a,b,b\ns1,s2,s3\n", "line 1: the column 'b' is there twice"),
        ("a,b\ns1,s2,s3\n", "line 2: 3 values, but 2 columns"),
        ("a,a_port,b,b_port\ns1,1,s1,1\n", "line 2: both ends are s1:1"),
        ("a,b\ns1,s1\n", "line 2: both ends are s1:"),
        (
            "a,a_port,b,b_port\ns1,e1,s2,e1\ns1,e1,s3,e1\n",
            "line 3: s1:e1 has another cable already, in line 2",
        ),
        ("a,b,kind_a\ns1,s2,router\n", "line 2: kind_a must be switch or host, not 'router'"),
        ("a,b,kind_a\ns1,s2,host\ns1,s3,switch\n", "line 3: 's1' is a switch, but a host before"),
        ("a,b,kind_a,kind_b\nx,y,host,host\n", "line 2: joins 'x' and 'y', which are both hosts"),
        ("a,b,rate_mbps\ns1,s2,fast\n", "line 2: 'fast' is not a number"),
        ("a,b,rate_mbps\ns1,s2,nan\n", "line 2: 'nan' is not a number"),
        ("a,b\ns1,s2\ns3,s4\n", "switch s3 cannot be reached from s1"),
        ('a,b\n"s1,s9","s2,s3"\n', "line 2: several devices at both ends"),
        ("Hostname,ManagementIp,HwSku,Type\ns1,,,DevSonic\n", "a list of devices, without cables"),
        ("StartDevice,StartPort,EndDevice,EndPort,EndFeed\ns1,P,p,1,A\n", "a list of power cables"),
        (
            "side_a_device,side_a_type,side_b_device\ns1,dcim.rearport,s2\n",
            "line 2: a rearport of a patch panel is not followed",
        ),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(FabricError) as caught:
        from_cable_list(text, "net")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_devices_of_a_testbed_must_have_their_columns(tmp_path: Path) -> None:
    (tmp_path / "lab_links.csv").write_text(csv_of(LAYOUTS[3]))
    (tmp_path / "lab_devices.csv").write_text("name\nleaf1\n")
    with pytest.raises(FabricError, match="no columns of a list of cables"):
        load(str(tmp_path / "lab_links.csv"))
