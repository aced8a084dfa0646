"""Hosts against hosts on a running fabric: broadcasts beyond the limit, and forged sources."""

from __future__ import annotations

import sys
from typing import Any

from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.report import report
from knotless.routing.request import PlanRequest
from tests.support.fabric_fixtures import Start
from tests.support.waiting import until

SEND = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind(("h1-eth0", 0))
    for _ in range(int(sys.argv[2])):
        out.send(bytes.fromhex(sys.argv[1]))
"""
H1 = "020000000101"
PADDING = "00" * 1386
"""To 1,400 bytes: 80 frames are more than the burst of the limit, and fit into h1's queue."""
BROADCAST, UNKNOWN = "ffffffffffff", "01005e0000fb"
GROUPS = {1: "030000000001", 2: "030000000002"}
POISON = f"020000000301{H1}0806 0001080006040002 {H1} 0a000201 020000000301 0a000301"
"""An ARP reply to h3: h1 has the IP address of h2."""
TWO_TAGS = POISON.replace("0806", "81000000 81000000 0806", 1)
"""Linux receives such a frame as an untagged one."""


def send(fabric: EmulatedFabric, frame: str, count: int = 80) -> None:
    out, error, status = fabric.host("h1").pexec(sys.executable, "-c", SEND, frame, str(count))
    assert status == 0, out + error


def sent(fabric: EmulatedFabric, to: str) -> tuple[int, int]:
    """Have h1 send 80 frames to an address; return how many were limited, and arrived at h2."""
    fabric.daemon.reset()
    send(fabric, f"{to}{H1}88b5{PADDING}")

    def arrived(channel: Any) -> int:
        return int(channel["rx_frames"] + channel["drops"]["broadcast_limit"])

    def channels() -> dict[str, Any]:
        return {one["channel"]: one for one in fabric.daemon.counters()["channels"]}

    until("80 frames at s1", lambda: arrived(channels()["h1"]) >= 80)
    until("no frame under way", lambda: not fabric.daemon.status()["frames_in_network"])
    assert fabric.daemon.counters()["lost_frames"] == 0
    now = channels()
    return now["h1"]["drops"]["broadcast_limit"], now["s2:1"]["rx_frames"]


def test_broadcasts_are_limited_and_named_and_declared_groups_are_not(
    start: Start, names: Names
) -> None:
    fabric = start("ring,4", PlanRequest.from_options(multicast={1: ["all"]}))
    for to in (BROADCAST, UNKNOWN, GROUPS[2]):
        limited, arrived = sent(fabric, to)
        assert limited > 20
        assert arrived >= 80 - limited
        answer = report(names)
        assert answer is not None
        assert answer["emulator"]["valid"]
        assert any("host h1 fills over 2 %" in line for line in answer["problems"])
    assert sent(fabric, GROUPS[1])[0] == 0
    answer = report(names)
    assert answer is not None
    assert answer["problems"] == []


def test_forged_sources_are_refused_and_counted(start: Start) -> None:
    fabric = start("ring,4", PlanRequest.from_options(source_check="ip"))
    for name in ("h1", "h2", "h3"):  # they have to learn each other's address
        words = ("ip", "neigh", "flush", "dev", f"{name}-eth0", "nud", "permanent")
        assert fabric.host(name).pexec(*words)[2] == 0
    for source, to in (("h1", "10.0.3.1"), ("h3", "10.0.2.1")):
        assert fabric.host(source).pexec("ping", "-c", "1", "-W", "10", to)[2] == 0

    def is_named() -> bool:
        for frame in (POISON, POISON.replace("0806", "81000000 0806", 1), TWO_TAGS):
            send(fabric, frame, 20)
        problems = fabric.controller_status()["problems"]
        return any(
            line.startswith("s1 has dropped") and line.endswith("of h1 (port 1)")
            for line in problems
        )

    until("a problem that names h1", is_named)
    neighbours, _, _ = fabric.host("h3").pexec("ip", "neigh", "show", "10.0.2.1")
    assert "02:00:00:00:02:01" in neighbours
