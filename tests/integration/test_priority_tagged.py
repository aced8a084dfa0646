"""Priority-tagged frames of a host (VLAN 0) arrive like untagged ones, with their priorities."""

from __future__ import annotations

import sys

import pytest

from knotless.routing.request import PlanRequest
from tests.support.fabric_fixtures import Start
from tests.support.waiting import HANG_S

RECEIVE = """
import socket
ready = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ready.bind(("", 9))
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as taps:
    taps.bind(("h3-eth0", 3))
    taps.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA: the kernel takes tags out of frames
    print("ready", flush=True)
    priorities = []
    while len(priorities) < 8:
        frame, ((_, _, aux),), *_ = taps.recvmsg(2048, 64)
        if b"knotless" in frame:
            assert len(frame) == 1514, len(frame)
            priorities.append(int.from_bytes(aux[16:18], "little") >> 13)
print(sorted(priorities), [len(ready.recv(2048)) for _ in priorities])
"""
SEND = """
import socket
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind(("h1-eth0", 0))
    for priority in range(8):
        packet = IP(src="10.0.1.1", dst="10.0.3.1") / UDP(dport=9) / b"knotless".ljust(1472)
        link = Ether(src="02:00:00:00:01:01", dst="02:00:00:00:03:01")
        out.send(bytes(link / Dot1Q(vlan=0, prio=priority) / packet))
"""


@pytest.mark.parametrize("flow_control", ["pause", "pfc"])
def test_they_arrive_with_their_priorities_and_nothing_is_lost(
    start: Start, flow_control: str
) -> None:
    fabric = start("ring,4", PlanRequest.from_options(engine="updown", flow_control=flow_control))
    receiver = fabric.host("h3").popen(sys.executable, "-c", RECEIVE, text=True)
    assert receiver.stdout.readline() == "ready\n"
    _, errors, status = fabric.host("h1").pexec(sys.executable, "-c", SEND)
    assert status == 0, errors
    printed, errors = receiver.communicate(timeout=HANG_S)
    assert printed == f"{list(range(8))} {[1472] * 8}\n", errors
    assert fabric.daemon.counters()["lost_frames"] == 0
