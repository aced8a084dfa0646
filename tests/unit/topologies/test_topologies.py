"""Families of fabrics: numbering, port order, and specs that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from knotless.topologies import FabricError, SpecError, load
from knotless.topologies.family import Request, assemble, cables, join
from knotless.topologies.numbering import codes
from knotless.topologies.registry import families
from knotless.topologies.spec import parse
from knotless.topologies.validate import validate

# spec, switches, hosts, links
SIZES = [
    ("ring,4", 4, 4, 4),
    ("ring,3,hosts=2", 3, 6, 3),
    ("mesh,4,4", 16, 16, 24),
    ("mesh,4,2,hosts=2", 8, 16, 10),
    ("mesh,3,1,2", 6, 6, 7),
    ("mesh,1", 1, 1, 0),
    ("torus,4,4", 16, 16, 32),
    ("torus,4,2,hosts=2", 8, 16, 12),
    ("torus,8,8,8", 512, 512, 1536),
    ("mtree,4,4", 16, 16, 15),
    ("flat,16", 1, 16, 0),
    ("fattree,2,4,2", 14, 16, 24),
    ("fattree2,18", 36, 324, 324),
    ("fattree3,8", 80, 128, 256),
    ("fattree3,2", 5, 2, 4),
    ("clos,4,hosts=2", 8, 16, 16),
    ("lsft,3", 26, 52, 52),
    ("lsft,3,sides=2", 39, 104, 104),
    ("lsft,3,hosts=1", 26, 13, 52),
    ("lsft,17", 614, 5526, 5526),
    ("irregular-a", 16, 64, 22),
    ("irregular-b", 16, 64, 24),
    ("random,128", 128, 512, 256),
    ("random,6,hosts=2,degree=3", 6, 12, 9),
    ("dragonfly,a=4,h=2,p=2", 36, 72, 90),
    ("dragonfly,a=4,h=2,p=2,g=4", 16, 32, 40),
    ("dragonfly,a=1,h=3,p=1", 4, 4, 6),
    ("dragonflyplus,l=2,s=3,h=2,p=4", 35, 56, 63),
    ("hyperx,S=4x4", 16, 16, 48),
    ("hyperx,S=4x3x2,hosts=2,K=2x1x3", 24, 48, 132),
    ("hyperx,S=3x3,K=2", 9, 9, 36),
    ("fullmesh,6", 6, 6, 15),
    ("fullmesh,6,K=2", 6, 6, 30),
    ("slimfly,5", 50, 200, 175),
    ("slimfly,3,hosts=1", 18, 18, 45),
    ("polarfly,3", 13, 26, 24),
    ("rail,8,4,2,unit=4", 10, 32, 16),
    ("rail,5,2,3,unit=4,links=2", 7, 10, 24),
    ("clos3,8", 80, 128, 256),
    ("clos3,8,over=3", 56, 192, 128),
    ("clos3,8,hosts=2,pods=2", 32, 16, 64),
    ("cube,4x4x8", 128, 128, 384),
    ("cube,4x4x8,twist", 128, 128, 384),
]


@pytest.mark.parametrize(("spec", "switches", "hosts", "links"), SIZES)
def test_sizes(spec: str, switches: int, hosts: int, links: int) -> None:
    fabric = load(spec)
    assert (len(fabric.switches), len(fabric.hosts), len(fabric.links)) == (switches, hosts, links)
    validate(fabric)  # part by part, which a fabric that a family has numbered is spared
    assert fabric.name == spec


def test_numbering() -> None:
    fabric = load("mesh,20,20,hosts=3")
    assert [s.name for s in fabric.switches[:2]] == ["s1", "s2"]
    assert [s.dpid for s in fabric.switches[:2]] == [1, 2]
    host = fabric.hosts_at["s300"][2]
    # At (19, 14), five bits for each coordinate.
    assert (host.mac, host.ip, host.name) == ("02:00:00:01:d3:02", "10.1.211.2", "h899")


def test_addresses_are_plain_numbers_where_these_do_as_well_or_nothing_else_fits() -> None:
    assert codes([(x, y) for y in range(3) for x in range(4)]) == list(range(1, 13))
    assert codes([(x, y) for y in range(3) for x in range(3)]) == [0, 1, 2, 4, 5, 6, 8, 9, 10]
    assert codes([(1 << i, i) for i in range(17)]) == list(range(1, 18))
    fabric = load("fattree3,6")
    assert fabric.hosts_at["s5"][1].mac == "02:00:00:00:05:01"  # pod 1, leaf 1


def test_grid_ports_are_hosts_then_positive_and_negative_of_each_dimension() -> None:
    ports = load("torus,4,4,hosts=2").neighbours
    assert ports["s6"] == {3: ("s7", 4), 4: ("s5", 3), 5: ("s10", 6), 6: ("s2", 5)}
    assert ports["s4"] == {3: ("s1", 4), 4: ("s3", 3), 5: ("s8", 6), 6: ("s16", 5)}


def test_ports_of_a_mesh_leave_no_gaps_at_its_edges() -> None:
    ports = load("mesh,4,4").neighbours
    assert ports["s4"] == {2: ("s3", 2), 3: ("s8", 4)}
    assert ports["s16"] == {2: ("s15", 2), 3: ("s12", 3)}


def test_ring_goes_round_by_port_2() -> None:
    ports = load("ring,4").neighbours
    assert [ports[f"s{i}"][2][0] for i in range(1, 5)] == ["s2", "s3", "s4", "s1"]


def test_mtree_keeps_the_columns_and_row_0() -> None:
    links = {(link.a, link.b) for link in load("mtree,3,2").links}
    assert links == {("s1", "s2"), ("s2", "s3"), ("s1", "s4"), ("s2", "s5"), ("s3", "s6")}


def test_rate_and_delay_are_every_links() -> None:
    fabric = load("ring,3,rate=25.5,delay=100")
    assert {(link.rate_mbps, link.delay_us) for link in fabric.links} == {(25.5, 100.0)}
    assert {(host.rate_mbps, host.delay_us) for host in fabric.hosts} == {(25.5, 100.0)}
    assert fabric.name == "ring,3,rate=25.5,delay=100"


def test_defaults_do_not_show_in_the_name() -> None:
    assert parse("mesh, 4 ,4,hosts=1,rate=10")[1].name == "mesh,4,4"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "not a fabric spec"),
        ("meshh,4", "did you mean 'mesh'?"),
        ("xyzzy,4", f"known are {', '.join(families())}"),
        ("mesh", "takes 1 to 16 sizes"),
        ("ring,4,4", "takes 1 sizes (ring,N)"),
        ("mesh,a", "must be a whole number"),
        ("mesh,4.0", "must be a whole number"),
        ("mesh,4,", "must be a whole number"),
        ("mesh,-1,4", "at least 1, not -1"),
        ("mesh,0", "at least 1, not 0"),
        ("ring,2", "at least 3 switches"),
        ("mesh,300,300", "90000 switches are too many"),
        ("mesh,999999999,999999999", "too many"),
        ("mesh,200,200,hosts=250", "10000000 hosts are too many"),
        ("mesh,4,hosts=255", "1 to 254"),
        ("mesh,4,hosts=0", "1 to 254"),
        ("flat,255", "255 hosts on a switch are too many"),
        ("flat,4,hosts=2", "no option 'hosts'"),
        ("mesh,4,foo=1", "no option 'foo'"),
        ("mesh,4,hosts=1,hosts=2", "given twice"),
        ("mesh,4,rate=nan", "must be a number"),
        ("mesh,4,rate=0", "above 0"),
        ("mesh,4,rate=1e99", "at most 1000000"),
        ("mesh,4,delay=-1", "0 to 10000000"),
        ("mesh,4\n", "not a fabric spec"),
        ("m" * 300, "at most 200 characters"),
    ],
)
def test_bad_specs_are_refused_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(spec)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ((0, 1), r"mine: \(0, 1\) is no cable: make them by cables\(\[\(0, 1\), \(1, 2\)\]\)"),
        (join(0, 2), "mine: a cable joins switches 0 and 2; it must join two of the switches 0 to"),
        (join(1, 1), "mine: a cable joins switches 1 and 1; it must join two"),
    ],
)
def test_cables_of_a_family_that_join_no_switches_are_named(wrong: Any, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        assemble(Request("mine", ()), [1, 1], [*cables([(0, 1)]), wrong])


def test_places_of_a_family_that_give_two_hosts_one_address_are_found() -> None:
    places = [(0, 0), (2, 0), (0, 0)]
    fabric = assemble(Request("mine", ()), [1, 1, 1], cables([(0, 1), (1, 2)]), places=places)
    with pytest.raises(FabricError, match="h3: MAC 02:00:00:00:00:01 is already used by h1"):
        validate(fabric)
