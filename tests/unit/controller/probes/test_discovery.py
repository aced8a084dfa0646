"""Discovery of a fabric from probes and frames, whatever switches and hosts send."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knotless.base.errors import FabricError
from knotless.controller.probes.cables import PortId
from knotless.controller.probes.discovery import MAX_FRAMES, MAX_PORTS, MAX_SWITCHES, Discovery
from knotless.controller.probes.frames import Sender
from knotless.topologies import Fabric, Host, load
from knotless.topologies.formats.files import from_text, to_text
from knotless.topologies.numbering import mac_value
from knotless.topologies.union import removed
from tests.support.random_fabrics import seeded, small_fabric

RING = load("ring,4")
QUIET_S = 5.0


def dpids(fabric: Fabric) -> dict[str, int]:
    return {switch.name: switch.dpid for switch in fabric.switches}


def cables(fabric: Fabric) -> list[tuple[PortId, PortId]]:
    dpid = dpids(fabric)
    ends = [((dpid[link.a], link.a_port), (dpid[link.b], link.b_port)) for link in fabric.links]
    return ends + [(b, a) for a, b in ends]


def show_switches(learning: Discovery, fabric: Fabric) -> None:
    for switch in fabric.switches:
        ports = {**fabric.hosts_at[switch.name], **fabric.neighbours[switch.name]}
        assert learning.see_ports(switch.dpid, dict.fromkeys(ports, True))


def show_links(learning: Discovery, fabric: Fabric) -> None:
    for _ in range(2):
        for a, b in cables(fabric):
            learning.see_probe(a, b)


def show_hosts(learning: Discovery, fabric: Fabric) -> None:
    dpid = dpids(fabric)
    for host in fabric.hosts:
        learning.see_frame((dpid[host.switch], host.port), Sender(mac_value(host.mac), host.ip))


def learned(fabric: Fabric, declared: tuple[Host, ...] = ()) -> Discovery:
    learning = Discovery(QUIET_S, declared)
    show_switches(learning, fabric)
    show_links(learning, fabric)
    show_hosts(learning, fabric)
    return learning


def test_a_fabric_is_learned_as_it_is() -> None:
    for seed, rng in seeded(range(200)):
        fabric = small_fabric(rng)
        learning = learned(fabric)
        result = learning.fabric("found")
        assert result.switches == fabric.switches, seed
        assert result.hosts == fabric.hosts, seed
        assert not removed(result, fabric), seed
        assert not removed(fabric, result), seed
        assert learning.problems() == [], seed
        assert from_text(to_text(result)) == result, seed


def test_it_is_complete_when_nothing_new_was_found_for_some_time() -> None:
    learning = Discovery(QUIET_S)
    show_switches(learning, RING)
    learning.look(100.0)
    show_links(learning, RING)
    learning.look(103.0)
    learning.look(104.0)
    assert learning.rest_s(104.0) == 4.0
    show_hosts(learning, RING)
    learning.look(107.0)
    show_links(learning, RING)
    show_hosts(learning, RING)
    learning.look(109.0)
    assert learning.rest_s(109.0) == 3.0
    assert learning.rest_s(112.0) == 0.0
    assert learning.as_json(109.0) == {"switches": 4, "links": 4, "hosts": 4, "rest_s": 3.0}


def test_what_is_missing_is_said() -> None:
    def missing(learning: Discovery) -> str:
        with pytest.raises(FabricError) as raised:
            learning.fabric("found")
        return str(raised.value)

    learning = Discovery(QUIET_S, (Host("h9", "02:00:00:00:00:09", "10.0.0.9", "s5", 1),))
    assert missing(learning) == "no switch has connected yet"
    show_switches(learning, RING)
    assert missing(learning).startswith("the switches are not connected with each other: s1, s2,")
    show_links(learning, RING)
    assert missing(learning).startswith("0 hosts found: a host is found by the first frame")
    learning.see_frame((1, 1), Sender(2, None))
    assert missing(learning).startswith("1 host found")
    show_hosts(learning, RING)
    assert missing(learning) == "the switch of h9 is not connected"
    assert learning.problems() == ["host h9 is declared at s5: not connected yet"]


def test_a_hub_between_switches_is_no_link() -> None:
    learning = learned(RING)
    a, b = cables(RING)[0]
    learning.see_probe(a, (3, 3))
    assert any(
        f"probes of s{a[0]}:{a[1]} arrive at s{b[0]}:{b[1]} and s3:3" in line
        for line in learning.problems()
    )
    result = learning.fabric("found")
    assert [link.name for link in removed(RING, result) if not isinstance(link, Host)]


@pytest.mark.parametrize(
    ("sender", "receiver", "words"),
    [
        ((1, 8), (2, 8), "probes of s1:8 arrive at s2:8, but none come back"),
        ((1, 8), (1, 9), "s1:8 is connected to s1:9 of the same switch"),
        ((1, 8), (1, 8), "s1:8 is connected to s1:8 of the same switch"),
        ((1, 8), (2, 2), "probes of s1:8 arrive at s2:2, whose own arrive elsewhere"),
    ],
)
def test_other_cables_are_reported_and_not_used(
    sender: PortId, receiver: PortId, words: str
) -> None:
    learning = learned(RING)
    for dpid in (1, 2):
        learning.see_ports(dpid, dict.fromkeys((1, 2, 3, 8, 9), True))
    for _ in range(3):
        learning.see_probe(sender, receiver)
    assert words in learning.problems()
    assert not removed(learning.fabric("found"), RING)


def test_the_first_frame_decides_whose_port_it_is() -> None:
    learning = learned(RING)
    learning.see_frame((1, 1), Sender(0x020000000099, "10.9.9.9"))
    assert learning.fabric("found").hosts == RING.hosts
    learning.see_ports(1, dict.fromkeys((1, 2, 3, 8), True))
    assert learning.open_ports(1) == {8}
    learning.see_frame((1, 8), Sender(mac_value(RING.hosts[0].mac), "10.9.9.9"))
    # Of two ports with one address, the one with the lower number is used.
    (line,) = learning.problems()
    assert line == (
        f"s1:8 has sent frames with address {RING.hosts[0].mac} of host h1 at s1:1: it is not used"
    )
    assert learning.fabric("found").hosts == RING.hosts


def test_frames_are_wanted_until_the_address_is_known() -> None:
    learning = Discovery(QUIET_S)
    learning.see_ports(1, {1: True, 2: True, 3: False})
    assert learning.open_ports(1) == {1, 2}
    learning.see_frame((1, 1), Sender(5, None))
    assert learning.open_ports(1) == {1, 2}
    learning.see_frame((1, 1), Sender(7, "10.0.0.7"))
    learning.see_frame((1, 1), Sender(5, "10.0.0.5"))
    assert learning.open_ports(1) == {2}
    for _ in range(MAX_FRAMES):
        learning.see_frame((1, 2), Sender(6, None))
    assert learning.open_ports(1) == set()
    learning.see_ports(1, {1: False, 2: True})
    learning.see_ports(1, {1: True, 2: True})
    assert learning.open_ports(1) == {1}


def test_hosts_without_a_known_address_get_one_of_their_own() -> None:
    learning = Discovery(QUIET_S)
    show_switches(learning, RING)
    show_links(learning, RING)
    for number, host in enumerate(RING.hosts, 1):
        ip = "10.0.0.1" if number in (2, 3) else None
        learning.see_frame((number, host.port), Sender(mac_value(host.mac), ip))
    hosts = learning.fabric("found").hosts
    assert len({host.ip for host in hosts}) == 4
    assert hosts[1].ip == "10.0.0.1"
    assert [host.ip_invented for host in hosts] == [True, False, True, True]


def test_declared_hosts_need_not_send_anything() -> None:
    silent = replace(RING.hosts[2], name="printer")
    learning = Discovery(QUIET_S, (silent,))
    show_switches(learning, RING)
    show_links(learning, RING)
    show_hosts(learning, replace(RING, hosts=RING.hosts[:2]))
    learning.see_frame((3, 1), Sender(0x020000000099, "10.9.9.9"))  # not the declared address
    result = learning.fabric("found")
    assert {host.name for host in result.hosts} == {"printer", "h1", "h2"}
    assert result.hosts[0] == silent


def test_what_a_port_has_shown_is_forgotten_with_its_carrier() -> None:
    learning = learned(RING)
    learning.see_ports(1, {1: True, 3: True})
    learning.see_ports(1, {1: True, 2: True, 3: True})
    result = learning.fabric("found")
    (gone,) = removed(RING, result)
    assert gone == RING.links[0]
    learning.disconnected(2)
    assert learning.ports(2) == set()
    with pytest.raises(FabricError):  # its neighbours are still there, and its hosts are not
        learned(replace(RING, links=RING.links[:2], grid=None)).fabric("found")


def test_switches_and_ports_are_bounded() -> None:
    learning = Discovery(QUIET_S)
    for dpid in range(1, MAX_SWITCHES + 3):
        assert learning.see_ports(dpid, {1: True}) == (dpid <= MAX_SWITCHES)
    assert learning.problems() == [
        f"2 switches more than {MAX_SWITCHES} are connected: they are not used"
    ]
    learning.see_ports(1, dict.fromkeys(range(0, 3 * MAX_PORTS), True))
    assert learning.ports(1) == set(range(1, MAX_PORTS + 1))
    for port in range(1, MAX_PORTS):
        learning.see_probe((2, 1), (1, port))
    assert len(learning.problems()[0]) < 200


def test_hostile_events_leave_a_valid_fabric_or_none() -> None:
    complete = 0
    for seed, rng in seeded(range(300)):
        learning = learned(RING) if rng.random() < 0.7 else Discovery(QUIET_S)
        for _ in range(rng.randrange(1, 40)):
            a, b = ((rng.randrange(1, 5), rng.randrange(0, 6)) for _ in range(2))
            match rng.randrange(8):
                case 0:
                    learning.see_ports(a[0], {port: rng.random() < 0.9 for port in range(6)})
                case 1 if rng.random() < 0.1:
                    learning.disconnected(a[0])
                case 2 | 3 | 4:
                    for _ in range(2):
                        learning.see_probe(a, b)
                        if rng.random() < 0.8:
                            learning.see_probe(b, a)
                case 5 | 6 | 7:
                    ip = rng.choice((None, "10.0.0.1", "10.0.0.2"))
                    learning.see_frame(a, Sender(rng.randrange(1, 8) << 1, ip))
        lines = learning.problems()
        try:
            result = learning.fabric("found")
        except FabricError as error:
            lines.append(str(error))
        else:
            complete += 1
            assert from_text(to_text(result)) == result, seed
        assert all("\n" not in line for line in lines)
    assert complete > 50
