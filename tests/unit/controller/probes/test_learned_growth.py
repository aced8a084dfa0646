"""Parts that are learned besides a fabric that is in use already."""

from __future__ import annotations

from dataclasses import replace

from knotless.controller.probes.discovery import Discovery
from knotless.controller.probes.frames import Sender
from knotless.topologies import Fabric, Host, Link, Switch
from knotless.topologies.numbering import mac_value
from knotless.topologies.union import removed
from tests.support.random_fabrics import part_of, seeded, small_fabric
from tests.unit.controller.probes.test_discovery import QUIET_S, RING, show_hosts, show_links

CHORD = Link("s2", 8, "s4", 8)
MORE = replace(
    RING,
    switches=(*RING.switches, Switch("s5", 5)),
    hosts=(
        *RING.hosts,
        Host("h5", "02:00:00:00:02:09", "10.0.2.9", "s2", 9),
        Host("h6", "02:00:00:00:05:03", "10.0.5.3", "s5", 3),
    ),
    links=(*RING.links, CHORD, Link("s1", 7, "s5", 1), Link("s4", 7, "s5", 2)),
    grid=None,
)


def grows(base: Fabric, whole: Fabric) -> Discovery:
    """Return what is learned at ports of ``whole`` that ``base`` does not declare."""
    learning = Discovery(QUIET_S)
    learning.use(base)
    for switch in whole.switches:
        ports = {**whole.hosts_at[switch.name], **whole.neighbours[switch.name]}
        if switch.name in base.switch_index:
            declared = base.hosts_at[switch.name].keys() | base.neighbours[switch.name].keys()
            ports = {port: peer for port, peer in ports.items() if port not in declared}
        learning.see_ports(switch.dpid, dict.fromkeys(ports, True))
    show_links(learning, whole)
    show_hosts(learning, whole)
    return learning


def test_a_fabric_in_use_grows_by_what_is_found() -> None:
    assert grows(RING, RING).grown(RING) is RING
    learning = grows(RING, MORE)
    grown = learning.grown(RING)
    assert (removed(grown, MORE), removed(MORE, grown)) == ([], [])
    assert grown.switches[:4] == RING.switches
    assert grown.hosts[:4] == RING.hosts
    assert learning.problems() == []
    assert grows(grown, MORE).grown(grown) is grown


def test_random_fabrics_grow_to_the_whole() -> None:
    grown = 0
    for seed, rng in seeded(range(300)):
        whole = small_fabric(rng)
        base = part_of(whole, rng)
        if base is None or not removed(whole, base):
            continue
        grown += 1
        result = grows(base, whole).grown(base)
        assert not removed(base, result), seed
        # Hosts have names by their order.
        assert {replace(host, name="") for host in result.hosts} == {
            replace(host, name="") for host in whole.hosts
        }, seed
        assert result.switch_index.keys() == whole.switch_index.keys(), seed
        assert len(result.links) == len(whole.links), seed
    assert grown > 50


def test_a_switch_without_a_link_does_not_hinder_others() -> None:
    apart = replace(MORE, links=(*RING.links, CHORD), grid=None)
    learning = Discovery(QUIET_S)
    learning.use(RING)
    learning.see_ports(5, {3: True})
    learning.see_ports(2, {8: True})
    learning.see_ports(4, {8: True})
    learning.see_frame((5, 3), Sender(9 << 1, "10.0.5.3"))
    assert learning.grown(RING) is RING
    show_links(learning, apart)
    assert removed(learning.grown(RING), RING) == [CHORD]


def test_what_the_fabric_in_use_has_is_not_taken_over() -> None:
    base = replace(RING, switches=(*RING.switches[:3], Switch("s5", 4)), links=(), hosts=())
    learning = Discovery(QUIET_S)
    learning.use(base)
    assert [learning.name(dpid) for dpid in (4, 5, 6)] == ["s5", "dpid5", "s6"]
    learning = Discovery(QUIET_S)
    learning.use(RING)
    learning.see_ports(2, {8: True, 9: True})
    mac, ip = mac_value(RING.hosts[0].mac), RING.hosts[0].ip
    learning.see_frame((2, 8), Sender(mac, ip))
    learning.see_frame((2, 9), Sender(mac + 100, ip))
    assert "with address 02:00:00:00:01:01 of host h1 at s1:1" in learning.problems()[0]
    (host,) = removed(learning.grown(RING), RING)
    assert isinstance(host, Host)
    assert (host.name, host.port) == ("h5", 9)
    assert host.ip != ip
