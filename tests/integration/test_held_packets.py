"""What a host sends on a lossless link is held back, or the run says that it is not valid."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from knotless.emulation import namespaces
from knotless.emulation.daemon import Counters
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.topologies import load
from tests.support.waiting import HANG_S, until

COUNT = 3000
"""Datagrams, of which a network interface's queue holds eleven."""
SEND = """
import socket, sys
address, count, size, room = sys.argv[1], *map(int, sys.argv[2:])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
with socket.socket(family, socket.SOCK_DGRAM) as sender:
    sender.setsockopt(socket.SOL_SOCKET, 32, room)  # SO_SNDBUFFORCE
    sender.connect((address, 9))
    while count:
        try:
            sender.send(bytes(size))
            count -= 1
        except ConnectionRefusedError:
            pass
"""
SEND_RAW = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
    sender.bind((sys.argv[1], 0))
    frame = bytes.fromhex(sys.argv[2]) + b"\\x88\\xb6" + bytes(1400)
    for _ in range(int(sys.argv[3])):
        sender.send(frame)
"""


@pytest.fixture
def pair(names: Names) -> Iterator[EmulatedFabric]:
    """Two hosts at one switch, which sends all frames on."""
    with EmulatedFabric(
        load("flat,2"), name=names.name, controller="none", static_arp=True, virtual_clock=True
    ) as fabric:
        target = f"unix:{fabric.names.ovs_directory}/s1.mgmt"
        rules = "in_port=1,actions=2\nin_port=2,actions=1\n"
        subprocess.run(
            ["ovs-ofctl", "-O", "OpenFlow13", "add-flows", target, "-"],
            input=rules,
            text=True,
            check=True,
        )
        yield fabric


def _run(fabric: EmulatedFabric, host: str, *words: str) -> None:
    out, error, status = fabric.host(host).pexec(*words)
    assert status == 0, out + error


def _send(fabric: EmulatedFabric, host: str, code: str, *words: Any) -> None:
    _run(fabric, host, "timeout", "120", "python3", "-c", code, *map(str, words))


def _drops(counters: Counters, name: str) -> int:
    found = next(channel for channel in counters["channels"] if channel["channel"] == name)
    return found["drops"]["queue"]


def _assert_nothing_was_lost(fabric: EmulatedFabric) -> None:
    until(
        "all packets are released",
        lambda: fabric.daemon.counters()["nfqueue"]["h1"]["accepted"] >= COUNT,
    )
    counters, status = fabric.daemon.counters(), fabric.daemon.status()
    assert (_drops(counters, "h1"), counters["lost_frames"]) == (0, 0)
    assert not [problem for problem in status["problems"] if "hosts lost" in problem]


def test_ipv6_is_held_back(pair: EmulatedFabric) -> None:
    """IPv6 is off until a user turns it on, as the manual shows."""
    for name, other in (("h1", "h2"), ("h2", "h1")):
        interface = f"{name}-eth0"
        peer = next(host for host in pair.fabric.hosts if host.name == other)
        _run(pair, name, "sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=0")
        _run(pair, name, "ip", "address", "add", f"fd00::{name[1]}/64", "dev", interface, "nodad")
        neighbour = [f"fd00::{other[1]}", "lladdr", peer.mac, "dev", interface, "nud", "permanent"]
        _run(pair, name, "ip", "neighbour", "replace", *neighbour)
    _send(pair, "h1", SEND, "fd00::2", COUNT, 1400, 1 << 16)
    _assert_nothing_was_lost(pair)


@contextmanager
def _behind(fabric: EmulatedFabric, host: str) -> Iterator[str]:
    """A network namespace whose only way out leads through ``host``; yields its name."""
    inner, holder = f"{fabric.host(host).namespace}.in", fabric.host(host)
    namespaces.add(inner)
    try:
        namespaces.ip_batch(
            [f"link add up0 type veth peer name down0 netns {holder.namespace}"], namespace=inner
        )
        namespaces.ip_batch(
            ["address add 10.200.0.2/24 dev up0", "link set up0 up"], namespace=inner
        )
        holder.pexec("ip", "address", "add", "10.200.0.1/24", "dev", "down0")
        holder.pexec("ip", "link", "set", "down0", "up")
        holder.pexec("sysctl", "-qw", "net.ipv4.ip_forward=1")
        namespaces.ip_batch(["route add default via 10.200.0.1"], namespace=inner)
        yield inner
    finally:
        subprocess.run(["ip", "-n", inner, "link", "delete", "up0"], check=False)
        subprocess.run(["ip", "netns", "delete", inner], check=True)


def test_packets_forwarded_for_others_are_held_back(pair: EmulatedFabric) -> None:
    """NFQUEUE charges a forwarded packet to its sender's socket, in whichever namespace."""
    address = pair.fabric.hosts[1].ip
    with _behind(pair, "h1") as inner:
        words = ["python3", "-c", SEND, address, str(COUNT), "1400", str(1 << 16)]
        subprocess.run(namespaces.enter(inner, words), check=True, timeout=HANG_S)
        _assert_nothing_was_lost(pair)


def test_raw_frames_faster_than_a_lossless_line_make_a_run_invalid(pair: EmulatedFabric) -> None:
    destination = (pair.fabric.hosts[1].mac + pair.fabric.hosts[0].mac).replace(":", "")
    _send(pair, "h1", SEND_RAW, "h1-eth0", destination, COUNT)
    drops = _drops(pair.daemon.counters(), "h1")
    assert drops > 0
    status = pair.daemon.status()
    assert not status["valid"]
    assert [
        problem for problem in status["problems"] if "hosts lost" in problem and "h1" in problem
    ]


def test_packets_that_the_kernel_cannot_hold_make_a_run_invalid(pair: EmulatedFabric) -> None:
    """It holds 65,536 for each host; the rest it drops, which only a table of its own shows."""
    _send(pair, "h1", SEND, pair.fabric.hosts[1].ip, 75_000, 1400, 1 << 29)
    counters, status = pair.daemon.counters(), pair.daemon.status()
    assert counters["nfqueue"]["h1"]["dropped"] > 0
    assert not status["valid"]
    assert any("hosts lost" in problem for problem in status["problems"])
    pair.daemon.reset()
    assert pair.daemon.counters()["nfqueue"]["h1"]["dropped"] == 0
