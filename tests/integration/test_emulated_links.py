"""Links of a running fabric: rates, PAUSE from a host, cuts, captures, a restarted controller."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from knotless.emulation import wiring
from knotless.emulation.daemon import ChannelCounters
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.topologies import load
from tests.support.fabric_fixtures import new_fabric, new_names
from tests.support.waiting import HANG_S, until

PAUSE = """
import sys
from scapy.all import Ether, Raw, sendp
quanta = int(sys.argv[1])
frame = Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:01:01", type=0x8808)
load = b"\\x00\\x01" + quanta.to_bytes(2, "big") + bytes(42)
sendp(frame / Raw(load), iface="h1-eth0", verbose=False)
"""


@pytest.fixture(scope="module")
def fabric() -> Iterator[EmulatedFabric]:
    """Return a fabric that these tests share; one PAUSE request is obeyed to its end."""
    with new_fabric(new_names(), "ring,4", pause_share=1.0) as running:
        yield running


def channel(fabric: EmulatedFabric, name: str) -> ChannelCounters:
    return next(c for c in fabric.daemon.counters()["channels"] if c["channel"] == name)


def pings(fabric: EmulatedFabric, *, wait_s: int = 5) -> bool:
    """Return whether h2 reaches h1."""
    words = ("ping", "-c", "1", "-W", str(wait_s), "10.0.1.1")
    _, _, status = fabric.host("h2").pexec(*words)
    return bool(status == 0)


def is_intact(fabric: EmulatedFabric) -> bool:
    """Return whether all switches have their rules, and these use every link."""
    status = fabric.controller_status()
    routes = status["routes"]
    return bool(status["ready"] and routes["repair"] == "intact" and not routes["changing"])


def pause(fabric: EmulatedFabric, quanta: int) -> None:
    """Send one 802.3x PAUSE frame from h1, as any program can."""
    out, error, status = fabric.host("h1").pexec(sys.executable, "-c", PAUSE, str(quanta))
    assert status == 0, out + error


def pauses(fabric: EmulatedFabric, name: str) -> int:
    return sum(p["pauses"] for p in channel(fabric, name)["priorities"])


def paused_us(fabric: EmulatedFabric, name: str) -> int:
    return max(p["paused_us"] for p in channel(fabric, name)["priorities"])


@pytest.mark.smoke
def test_a_hosts_pause_frame_stops_its_switch_and_nothing_else(fabric: EmulatedFabric) -> None:
    assert pings(fabric)
    fabric.daemon.reset()
    # 65,535 quanta of 512 bit times at 10 Mbit/s: 3.4 s.
    pause(fabric, 0xFFFF)
    until("a pause of s1:1", lambda: paused_us(fabric, "s1:1") > 0)
    assert not pings(fabric, wait_s=1)
    pause(fabric, 0)
    until("a reply", lambda: pings(fabric, wait_s=1))
    assert paused_us(fabric, "s2:1") == 0
    assert fabric.daemon.counters()["lost_frames"] == 0


def test_a_cut_link_carries_nothing_until_it_is_mended(fabric: EmulatedFabric) -> None:
    assert pings(fabric)
    fabric.daemon.set_link("h1", up=False)
    assert not pings(fabric, wait_s=1)
    fabric.daemon.set_link("h1", up=True)
    until("a reply", lambda: pings(fabric, wait_s=1))


@pytest.mark.smoke
def test_a_capture_holds_what_passed_and_the_pauses(fabric: EmulatedFabric, tmp_path: Path) -> None:
    file = tmp_path / "h1.pcap"
    fabric.daemon.capture("h1", file)
    assert pings(fabric)
    pause(fabric, 1)
    until("a pause of s1:1", lambda: pauses(fabric, "s1:1") > 0)
    packets = fabric.daemon.capture_stop("h1")
    with RawPcapReader(str(file)) as reader:
        kinds = [int.from_bytes(frame[12:14], "big") for frame, _ in reader]
    assert len(kinds) == packets
    assert kinds.count(0x0800) == 2
    assert kinds.count(0x8808) == 1


@pytest.mark.smoke
def test_no_frame_is_faster_than_its_line(fabric: EmulatedFabric) -> None:
    line = next(link for link in wiring.wire(fabric.fabric) if link.name == "h1")
    fabric.daemon.reset(links=[{"name": "h1", "rate_mbps": 1, "delay_us": 3000}])
    assert channel(fabric, "s1:1")["rate_mbps"] == 1
    out, _, status = fabric.host("h2").pexec(
        "ping", "-c", "2", "-i", "0.2", "-s", "1416", "10.0.1.1"
    )
    before = {"rate_mbps": line.rate_mbps, "delay_us": line.delay_us}
    fabric.daemon.reset(links=[{"name": "h1", **before}])
    assert status == 0, out
    # Round trip on h1's link alone: 1,458 bytes at 1 Mbit/s, and the delay.
    least_ms = 2 * (1458 * 8 / 1000 + 3)
    times = [float(ms) for ms in re.findall(r"time=([0-9.]+) ms", out)]
    assert len(times) == 2
    assert min(times) >= least_ms


def test_a_killed_controller_may_come_back_without_a_frame_lost(fabric: EmulatedFabric) -> None:
    fabric.daemon.reset()
    with fabric.host("h2").popen(
        ["ping", "-i", "0.02", "-c", "1000", "10.0.1.1"], text=True
    ) as ping:
        until("a frame", lambda: channel(fabric, "s1:1")["tx_frames"] > 0)
        fabric.restart_controller()
        assert fabric.controller_status()["ready"] is True
        before = channel(fabric, "s1:1")["tx_frames"]
        until("another frame", lambda: channel(fabric, "s1:1")["tx_frames"] > before)
        ping.send_signal(signal.SIGINT)
        out, _ = ping.communicate(timeout=HANG_S)
    answered = [int(number) for number in re.findall(r"icmp_seq=(\d+)", out)]
    sent = re.search(r"(\d+) packets transmitted", out)
    # The last may be in flight when ping is stopped; all earlier ones have arrived.
    assert answered == list(range(1, len(answered) + 1)), out
    assert sent, out
    assert int(sent[1]) - len(answered) <= 1, out
    assert fabric.daemon.counters()["lost_frames"] == 0


def test_hosts_reach_each_other_whatever_their_addresses(names: Names) -> None:
    ring = load("ring,4")
    outside = replace(ring.hosts[0], ip="192.168.7.1")
    with EmulatedFabric(
        replace(ring, hosts=(outside, *ring.hosts[1:])),
        name=names.name,
        openflow_port=0,
        rest_port=0,
    ) as fabric:
        out, _, status = fabric.host("h2").pexec("ping", "-c", "1", "-W", "5", "192.168.7.1")
        assert status == 0, out


def test_a_switch_that_was_off_gets_its_rules_again(fabric: EmulatedFabric) -> None:
    assert pings(fabric)
    fabric.net["s1"].stop()
    assert not pings(fabric, wait_s=1)
    until("the loss of s1", lambda: not fabric.controller_status()["ready"])
    fabric.net["s1"].start()
    until("the rules and links of s1", lambda: is_intact(fabric))
    assert pings(fabric)
