"""Failed links and switches: their names, and what they leave of a fabric."""

from __future__ import annotations

import pytest

from knotless.base.errors import FabricError
from knotless.topologies import Fabric, Host, Link, Switch, load
from knotless.topologies.failures import (
    NO_FAILURES,
    Failures,
    components,
    host_parts,
    hosts_by_part,
    parts,
    without_links,
)


@pytest.mark.parametrize("name", ["s1-s2", "s2-s1", "s1:2-s2:3", "s2:3-s1:2"])
def test_every_name_of_a_link_gives_the_same_failures(name: str) -> None:
    assert Failures.from_names(load("ring,4"), [name]) == Failures(links=("s1:2-s2:3",))


def test_failures_are_sorted_as_the_fabric_is_and_each_is_listed_once() -> None:
    fabric = load("mesh,11,1")
    failures = Failures.from_names(fabric, ["s10", "s2", "s10-s11", "s2-s1", "s1-s2", "s10"])
    assert failures.switches == ("s2", "s10")
    assert failures.links == ("s1:2-s2:3", "s10:2-s11:2")
    assert failures.names == (*failures.links, *failures.switches)
    assert Failures.from_names(fabric, reversed(failures.names)) == failures
    assert failures
    assert Failures.from_names(fabric, []) == NO_FAILURES
    assert not NO_FAILURES


def test_failed_links_have_the_names_of_the_fabric() -> None:
    fabric = load("ring,4")
    assert fabric.links[-1].name == "s4:2-s1:3"
    names = [link.name for link in fabric.links]
    assert Failures.from_names(fabric, reversed(names)).links == tuple(names)


def test_two_switches_name_all_links_between_them() -> None:
    fabric = load("clos,2")
    doubled = Fabric(
        "doubled",
        fabric.switches,
        fabric.hosts,
        (*fabric.links, Link("s1", 9, fabric.links[0].b, 9)),
    )
    assert len(Failures.from_names(doubled, [f"s1-{fabric.links[0].b}"]).links) == 2


@pytest.mark.parametrize("name", ["s1-s3", "s5", "s1:1-s2:3", "", "h1", "s1:2", "s1-s2-s3"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(FabricError, match=r"ring,4 has no link or switch '.*'; write a link as"):
        Failures.from_names(load("ring,4"), [name])


def test_a_name_of_a_switch_and_of_a_link_is_refused() -> None:
    switches = tuple(Switch(name, dpid) for dpid, name in enumerate(["a", "b", "a-b"], 1))
    hosts = (Host("h", "02:00:00:00:01:01", "10.0.0.1", "a", 1),)
    links = (Link("a", 2, "b", 2), Link("b", 3, "a-b", 3))
    with pytest.raises(FabricError, match="is a switch and a link; write the link with its ports"):
        Failures.from_names(Fabric("f", switches, hosts, links), ["a-b"])


def test_a_failed_switch_takes_its_links_with_it() -> None:
    fabric = load("torus,4,4")
    dead = Failures.from_names(fabric, ["s6"]).dead_links(fabric)
    assert len(dead) == 4
    assert all("s6" in (link.a, link.b) for link in dead)


def test_parts_are_numbered_by_their_first_switch() -> None:
    fabric = load("mesh,5,1,hosts=2")
    failures = Failures.from_names(fabric, ["s2-s3", "s4"])
    assert parts(fabric, failures) == [0, 0, 1, -1, 2]
    of_hosts = host_parts(fabric, failures)
    assert of_hosts[:6] == [0, 0, 0, 0, 1, 1]
    assert of_hosts[8:] == [2, 2]
    assert len({*of_hosts}) == 5, "the two hosts of s4 are alone"
    assert hosts_by_part(fabric, failures) == [
        ["h1", "h2", "h3", "h4"],
        ["h5", "h6"],
        ["h7"],
        ["h8"],
        ["h9", "h10"],
    ]
    left = list(components(fabric, failures))
    assert [[switch.name for switch in part.switches] for part in left] == [
        ["s1", "s2"],
        ["s3"],
        ["s5"],
    ]
    assert [len(part.links) for part in left] == [1, 0, 0]


def test_parts_without_hosts_need_no_plan() -> None:
    fabric = load("fattree3,4")
    spine = next(name for name, hosts in fabric.hosts_at.items() if not hosts)
    links = [f"{spine}-{leaf}" for leaf, _ in fabric.neighbours[spine].values()]
    assert len(set(parts(fabric, Failures.from_names(fabric, links)))) == 2
    assert len(list(components(fabric, Failures.from_names(fabric, links)))) == 1


def test_only_links_can_be_missing_from_a_fabric() -> None:
    with pytest.raises(FabricError, match="s2 is a switch; only links can be missing"):
        without_links(load("ring,4"), ["s2"])
