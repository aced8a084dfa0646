"""Fabrics in Mininet's words: units, defaults, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import EmulationError, KnotlessError
from knotless.emulation.described_fabric import (
    PACKET_BYTES,
    Connection,
    DescribedHost,
    Line,
    changes_of,
    delay_us,
    describe,
    dpid_of,
    host_of,
    line_of,
)

DEFAULT = Line(10.0, 500.0)
TWO = {"s1": 1, "s2": 2}
HOSTS = [DescribedHost("h1", "10.0.0.1"), DescribedHost("h2", "10.0.0.2")]
CABLES = [
    Connection("h1", 0, "s1", 1, DEFAULT),
    Connection("s2", 1, "h2", 0, Line(5.0, 1000.0)),
    Connection("s1", 2, "s2", 2, Line(20.0, 2000.0, 3044)),
]


@given(st.integers(0, 10_000), st.sampled_from([("us", 1), ("ms", 1000), ("s", 1_000_000)]))
def test_delays_have_the_units_of_tc(value: int, unit: tuple[str, int]) -> None:
    assert delay_us(f"{value}{unit[0]}", "link") == value * unit[1]
    assert delay_us(str(value), "link") == delay_us(value, "link") == value


def test_a_line_has_the_parameters_of_tclink() -> None:
    params = {"bw": 100, "delay": "5ms", "loss": 0, "max_queue_size": 1000, "use_htb": True}
    assert line_of(params, DEFAULT, "link") == Line(100.0, 5000.0, 1000 * PACKET_BYTES)
    assert line_of({"bw": None, "jitter": None}, DEFAULT, "link") == DEFAULT


def test_loss_is_in_percent_and_reaches_the_fabric() -> None:
    line = line_of({"loss": "1%", "jitter": "1ms"}, DEFAULT, "link")
    assert line == replace(DEFAULT, loss=0.01, jitter_us=1000.0)
    connections = [
        Connection("h1", 0, "s1", 1, line),
        Connection("h2", 0, "s2", 1, DEFAULT),
        Connection("s1", 2, "s2", 2, line),
    ]
    fabric = describe("pair", TWO, HOSTS, connections).fabric
    assert [(one.loss, one.jitter_us) for one in fabric.hosts] == [(0.01, 1000.0), (0.0, 0.0)]
    assert [(one.loss, one.jitter_us) for one in fabric.links] == [(0.01, 1000.0)]


def test_a_running_line_changes_all_but_its_queues() -> None:
    with pytest.raises(EmulationError, match="s1-eth2: max_queue_size: give it to addLink"):
        changes_of({"max_queue_size": 5}, "s1-eth2")
    assert changes_of({"ip": "10.0.0.1", "bw": None}, "s1-eth2") == {}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": 101}, "link: loss must be 0 to 100 percent, not 101"),
        ({"loss": "some"}, "link: loss must be a number (percent, such as 1), not 'some'"),
        ({"jitter": "some"}, "link: jitter='some' is no time; write 5ms or 100us"),
        ({"delay": "fast"}, "link: delay='fast' is no time; write 5ms or 100us"),
        ({"bw": "much"}, "link: bw must be a number (Mbit/s, such as 10), not 'much'"),
        ({"max_queue_size": 0}, "link: max_queue_size is a number of packets, at least 1"),
        ({"delays": "1ms"}, "link: there is no parameter 'delays'; did you mean 'delay'?"),
        ({"enable_red": True}, "link: enable_red='True': the switches do not drop packets early"),
    ],
)
def test_a_line_refuses_what_it_cannot_do(params: dict[str, Any], message: str) -> None:
    with pytest.raises(EmulationError) as refused:
        line_of(params, DEFAULT, "link")
    assert str(refused.value) == message


def test_nodes_have_the_parameters_of_mininet() -> None:
    assert host_of("h1", {"ip": "192.0.2.7/24"}) == DescribedHost("h1", "192.0.2.7", 24)
    assert host_of("h1", {"ip": "10.1.2.3", "mac": "00:00:00:00:00:01"}).prefix == 8
    assert dpid_of("s17", {"protocols": "OpenFlow10,OpenFlow13"}) == 17
    assert dpid_of("x", {"dpid": "0000000000000abc"}) == 0xABC


@pytest.mark.parametrize(
    ("read", "params", "message"),
    [
        (host_of, {"ip": "10.0.0.1/8", "cpu": 0.5}, "x: cpu='0.5': hosts share all processors"),
        (host_of, {"ip": "10.0.0.1/8", "inNamespace": False}, "has a network namespace"),
        (host_of, {"ip": None}, "host x: ip is missing; write it as 10.0.0.1/8"),
        (host_of, {"ip": "10.0.0.1/99"}, "has no prefix from 0 to 32"),
        (dpid_of, {"protocols": "OpenFlow10"}, "switches speak OpenFlow13"),
        (dpid_of, {"failMode": "standalone"}, "keeps its rules (secure)"),
        (dpid_of, {"stp": True}, "switch x: stp='True': the routes of the plan use all links"),
        (dpid_of, {}, "switch x: its name has no number: give its dpid, in hex"),
        (dpid_of, {"dpid": "xyz"}, "switch x: dpid='xyz' is not up to 16 hex digits"),
    ],
)
def test_nodes_refuse_what_they_cannot_do(read: Any, params: dict[str, Any], message: str) -> None:
    with pytest.raises(EmulationError) as refused:
        read("x", params)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_fabric_keeps_ports_lines_and_addresses() -> None:
    made = describe("mine", TWO, HOSTS, CABLES)
    fabric = made.fabric
    assert [(h.name, h.ip, h.switch, h.port) for h in fabric.hosts] == [
        ("h1", "10.0.0.1", "s1", 1),
        ("h2", "10.0.0.2", "s2", 1),
    ]
    assert (fabric.hosts[1].rate_mbps, fabric.hosts[1].delay_us) == (5.0, 1000.0)
    assert [(li.name, li.rate_mbps, li.delay_us) for li in fabric.links] == [
        ("s1:2-s2:2", 20.0, 2000.0)
    ]
    assert made.queue_bytes == {"s1:2-s2:2": 3044}
    assert made.prefixes == {"h1": 8, "h2": 8}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([Connection("h1", 1, "s2", 3, DEFAULT)], "host h1: has two links, and may have one"),
        ([Connection("h1", 1, "h2", 1, DEFAULT)], "link h1-h2: joins two hosts"),
        ([Connection("s1", 2, "s2", 9, DEFAULT)], "port 2 of s1 is already used"),
    ],
)
def test_a_fabric_refuses_what_cannot_be_wired(more: list[Connection], message: str) -> None:
    with pytest.raises(KnotlessError) as refused:
        describe("mine", TWO, HOSTS, [*CABLES, *more])
    assert message in str(refused.value)


def test_a_host_needs_a_link_at_its_port_0() -> None:
    with pytest.raises(EmulationError, match="switch s2 cannot be reached from s1; link them"):
        describe("pair", TWO, HOSTS, CABLES[:2])
    with pytest.raises(EmulationError, match="host h2: has no link"):
        describe("mine", TWO, HOSTS, [CABLES[0], CABLES[2]])
    with pytest.raises(EmulationError, match="its port 3: the only port of a host is 0"):
        describe("mine", TWO, HOSTS[:1], [Connection("h1", 3, "s1", 1, DEFAULT), CABLES[2]])
