"""Unmodified programs on hosts measure in virtual time."""

from __future__ import annotations

import json
import subprocess

import pytest

from emulation.network import EmulatedFabric
from routing.request import PlanRequest
from tests.integration.conftest import Start
from topologies.fabric import Fabric

RATE_MBPS = 1000
DELAY_US = 500
SLOW_DOWN = 20.0
PAYLOAD_BYTES = 1400
WIRE_BYTES = PAYLOAD_BYTES + 28 + 14 + 4 + 20
"""With the headers of IP and UDP, of Ethernet, its FCS and the gap."""
CHANNELS = 4
"""From h1 to h3 on a ring of four: h1, s1, s2, s3."""


@pytest.fixture
def ring(start: Start) -> EmulatedFabric:
    spec = f"ring,4,rate={RATE_MBPS},delay={DELAY_US}"
    request = PlanRequest.of(engine="updown")
    return start(spec, request, slow_down=SLOW_DOWN, virtual_clock=True)


def address(fabric: Fabric, name: str) -> str:
    return fabric.hosts[fabric.host_index[name]].ip


def run(fabric: EmulatedFabric, host: str, *argv: str) -> str:
    program = fabric.host(host).popen(list(argv), stdout=subprocess.PIPE, text=True)
    text, _ = program.communicate(timeout=120)
    assert program.returncode == 0, text
    return str(text)


def test_ping_reports_virtual_round_trips(ring: EmulatedFabric) -> None:
    there = address(ring.fabric, "h3")
    text = run(ring, "h1", "ping", "-c", "10", "-i", "0.02", "-q", there)
    average_ms = float(text.splitlines()[-1].split("=")[1].split("/")[1])
    wire_us = 2 * CHANNELS * (98 + 4 + 20) * 8 / RATE_MBPS
    assert average_ms == pytest.approx((2 * CHANNELS * DELAY_US + wire_us) / 1000, rel=0.02)


def test_iperf3_reports_virtual_rates(ring: EmulatedFabric) -> None:
    server = ring.host("h3").popen(
        ["iperf3", "-s", "-1", "--forceflush"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    while "listening" not in server.stdout.readline():
        assert server.poll() is None
    ring.daemon.reset()
    udp = ["-u", "-b", "0", "-l", str(PAYLOAD_BYTES), "-n", "60M", "-J"]
    text = run(ring, "h1", "iperf3", "-c", address(ring.fabric, "h3"), *udp)
    server.communicate(timeout=60)
    measured = json.loads(text)["end"]["sum"]["bits_per_second"]
    status = ring.daemon.status()
    assert measured / 1e6 == pytest.approx(RATE_MBPS * PAYLOAD_BYTES / WIRE_BYTES, rel=0.02)
    assert status["valid"], status["problems"]
    assert status["stretch"] >= SLOW_DOWN * 0.99
