"""From a fabric to interfaces and the emulator's configuration."""

import json
from dataclasses import replace

import pytest

from knotless.base.errors import EmulationError, KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.emulation import wiring
from knotless.emulation.names import names_of
from knotless.topologies import load
from knotless.topologies.fabric import Fabric, Host, Link, Switch

NAMES = names_of("t")


def pair() -> Fabric:
    return Fabric(
        "pair",
        (Switch("s1", 1), Switch("s2", 2)),
        (
            Host("h1", "02:00:00:00:01:01", "10.0.1.1", "s1", 1),
            Host("h2", "02:00:00:00:02:01", "10.0.2.1", "s2", 1, rate_mbps=7),
        ),
        (Link("s1", 2, "s2", 3, rate_mbps=20, delay_us=600),),
    )


def test_a_hub_is_refused() -> None:
    with pytest.raises(EmulationError, match="hub"):
        wiring.wire(load("hub,3"))


def test_configuration_matches_the_fabric() -> None:
    config = wiring.emulator_config(
        wiring.wire(pair()),
        NAMES,
        flow_control=FlowControl.SWITCH,
        buffer={"xoff_bytes": 9},
        settings={"tick_us": 100},
    )
    assert config == json.loads(json.dumps(config))
    assert config["namespace"] == "/run/netns/kn-t-links"
    assert config["tick_us"] == 100
    assert config["links"] == [
        {
            "name": "s1:2-s2:3",
            "a": {"switch": "s1", "port": 2, "interface": "k0"},
            "b": {"switch": "s2", "port": 3, "interface": "k1"},
            "rate_mbps": 20,
            "delay_us": 600,
            "flow_control": "pause",
            "buffer": {"xoff_bytes": 9},
        },
        {
            "name": "h1",
            "a": {
                "host": "h1",
                "interface": "k2",
                "host_namespace": "/run/netns/kn-t.h1",
                "host_interface": "h1-eth0",
                "nfqueue": 1,
            },
            "b": {"switch": "s1", "port": 1, "interface": "k3"},
            "rate_mbps": 10.0,
            "delay_us": 500.0,
            "flow_control": "off",
            "buffer": {"xoff_bytes": 9},
        },
        {
            "name": "h2",
            "a": {
                "host": "h2",
                "interface": "k4",
                "host_namespace": "/run/netns/kn-t.h2",
                "host_interface": "h2-eth0",
                "nfqueue": 1,
            },
            "b": {"switch": "s2", "port": 1, "interface": "k5"},
            "rate_mbps": 7,
            "delay_us": 500.0,
            "flow_control": "off",
            "buffer": {"xoff_bytes": 9},
        },
    ]


@pytest.mark.parametrize(
    ("flow_control", "on_links", "on_hosts"),
    [
        ("none", "off", "off"),
        ("host", "off", "pause"),
        ("switch", "pause", "off"),
        ("pause", "pause", "pause"),
        ("pfc", "pfc", "pfc"),
    ],
)
def test_flow_control_is_set_by_kind_of_link(
    flow_control: str, on_links: str, on_hosts: str
) -> None:
    link, host, _ = wiring.wire(pair())
    assert wiring.link_flow_control(link, FlowControl(flow_control)).name == on_links
    assert wiring.link_flow_control(host, FlowControl(flow_control)).name == on_hosts


@pytest.mark.parametrize("spec", ["ring,4", "torus,4,4,hosts=4", "mesh,2,2,2", "flat,16"])
def test_every_port_has_one_interface_and_every_inner_end_its_own(spec: str) -> None:
    fabric = load(spec)
    cables = wiring.wire(fabric)
    ends = [end for cable in cables for end in cable.ends]
    assert len({end.interface for end in ends}) == len(ends)
    assert len({end.inner for end in ends}) == len(ends)
    by_switch = wiring.ports(cables)
    for switch in fabric.switches:
        expected = {*fabric.neighbours[switch.name], *fabric.hosts_at[switch.name]}
        assert set(by_switch[switch.name]) == expected
        assert list(by_switch[switch.name]) == sorted(expected)


def test_pairs_have_room_for_trailer_and_tag_between_switches_only() -> None:
    lines = list(wiring.emulated_pairs(wiring.wire(pair()), NAMES))
    for line in lines:
        words = line.split()
        if words[1] == "add":
            outer = words[words.index("peer") :]
            mtu = int(outer[outer.index("mtu") + 1])
            assert mtu == (1500 if outer[2].startswith("h") else wiring.INNER_MTU)
    assert wiring.INNER_MTU >= 1500 + 4 + 16
    assert sum("address 02:00:00:00:01:01 netns kn-t.h1" in line for line in lines) == 1


@pytest.mark.parametrize(
    "name", ["s1-eth1", "lo", "all", "a.b", "1h", "averyveryverylong", "ovs-netdev", "abcdefghijk"]
)
def test_the_interfaces_of_a_switch_whose_name_does_not_fit_are_numbered(name: str) -> None:
    cables = wiring.wire(renamed(name))
    ends = [end for cable in cables for end in cable.ends if end.owner == name]
    assert [end.interface for end in ends] == ["s2-eth3", "s2-eth1"]
    assert cables[0].name == f"s1:2-{name}:3"


def test_a_name_of_two_nodes_is_refused() -> None:
    with pytest.raises(KnotlessError, match="'h1' names two switches or hosts"):
        wiring.wire(renamed("h1"))


def renamed(name: str) -> Fabric:
    """Return :func:`pair` with another name of its second switch."""
    fabric = pair()
    first = replace(fabric.switches[1], name=name)
    return replace(
        fabric,
        switches=(fabric.switches[0], first),
        hosts=(fabric.hosts[0], replace(fabric.hosts[1], switch=name)),
        links=(replace(fabric.links[0], b=name),),
    )


def test_all_hosts_are_neighbours() -> None:
    fabric = pair()
    assert wiring.prefix_length(fabric) == 8
    outside = replace(fabric.hosts[1], ip="192.168.0.1")
    assert wiring.prefix_length(replace(fabric, hosts=(fabric.hosts[0], outside))) == 0


def test_watchdog_and_pause_limit_apply_to_all_links() -> None:
    watchdog = {"watchdog_us": 9.0, "watchdog_restore_us": 18.0, "watchdog_action": "drop"}
    config = wiring.emulator_config(
        wiring.wire(pair()), NAMES, flow_control=FlowControl.PFC, watchdog=watchdog, pause_share=0.3
    )
    for link in config["links"]:
        assert watchdog.items() <= link.items()
        assert link["pause_limit"] == {"share": 0.3}


@pytest.mark.parametrize("limit", [{"share": 0.1}, {"share": 0, "burst_bytes": 2000}])
def test_the_limit_of_broadcasts_applies_to_all_links(limit: dict[str, float]) -> None:
    config = wiring.emulator_config(
        wiring.wire(pair()), NAMES, flow_control=FlowControl.PAUSE, broadcast_limit=limit
    )
    assert all(link["broadcast_limit"] == limit for link in config["links"])
    default = wiring.emulator_config(wiring.wire(pair()), NAMES, flow_control=FlowControl.PAUSE)
    assert all("broadcast_limit" not in link for link in default["links"])


@pytest.mark.parametrize(
    ("spec", "processes"), [("torus,3,3,hosts=2", 4), ("ring,4", 4), ("ring,4", 1)]
)
def test_switches_are_divided_by_ports(spec: str, processes: int) -> None:
    cables = wiring.divided(wiring.wire(load(spec)), processes)
    process_of = wiring.process_of_switches(cables)
    assert set(process_of.values()) == set(range(processes))
    taken = [0] * processes
    for switch, by_port in wiring.ports(cables).items():
        taken[process_of[switch]] += len(by_port)
    largest = max(len(by_port) for by_port in wiring.ports(cables).values())
    assert max(taken) - min(taken) <= 2 * largest
    spaces = wiring.switches_namespaces(cables, NAMES)
    assert len(set(spaces)) == processes
    for process, commands in wiring.switch_ends(cables).items():
        ours = {
            end.interface
            for one in cables
            for end in one.ends
            if end.host is None and process_of[end.owner] == process
        }
        assert {command.split()[2] for command in commands} == ours
        placed = "\n".join(wiring.emulated_pairs(cables, NAMES))
        for name in ours:
            assert f" {name} mtu {wiring.INNER_MTU} netns {spaces[process]}\n" in placed + "\n"


def test_every_process_has_a_switch() -> None:
    process_of = wiring.process_of_switches(wiring.divided(wiring.wire(load("fattree2,6")), 32))
    assert set(process_of.values()) == set(range(max(process_of.values()) + 1))


def test_without_ports_there_is_one_process() -> None:
    assert wiring.switches_namespaces(wiring.divided((), 1), NAMES) == [NAMES.switches_namespace()]


def test_single_links_have_egress_queues_of_their_own() -> None:
    cables = wiring.wire(load("ring,3"))
    config = wiring.emulator_config(
        cables,
        names_of("test"),
        flow_control=FlowControl.NONE,
        buffer={"xoff_bytes": 9000},
        queue_bytes={"h1": 3044, cables[0].name: 6088},
    )
    buffers = {link["name"]: link["buffer"] for link in config["links"]}
    assert buffers["h1"] == {"xoff_bytes": 9000, "queue_bytes": 3044}
    assert buffers[cables[0].name] == {"xoff_bytes": 9000, "queue_bytes": 6088}
    assert buffers["h2"] == {"xoff_bytes": 9000}
