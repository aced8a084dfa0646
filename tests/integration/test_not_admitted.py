"""A host with another's address, on a running fabric: stopped at its port, counted and named."""

from __future__ import annotations

import sys
from urllib.request import urlopen

import pytest

from knotless.emulation.network import EmulatedFabric
from tests.support.fabric_fixtures import Start
from tests.support.waiting import HANG_S, until

FORGE = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind(("h2-eth0", 0))
    # From h1 to h3, two hundred of them.
    for _ in range(200):
        out.send(bytes.fromhex("020000000301 020000000101 0800") + bytes(46))
"""


def counted(fabric: EmulatedFabric) -> float:
    """Return what the controller has counted so far."""
    with urlopen(f"http://127.0.0.1:{fabric.rest_port}/metrics", timeout=HANG_S) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("knotless_frames_not_admitted_total "):
                return float(line.split()[1])
    raise AssertionError("no such metric")


@pytest.mark.long
def test_a_host_with_anothers_address_is_named(start: Start) -> None:
    fabric = start("ring,4")
    assert counted(fabric) == 0
    # Counting begins with the first answer of each switch.
    reports: set[str] = set()

    def reported() -> bool:
        fabric.host("h2").pexec(sys.executable, "-c", FORGE)
        reports.update(
            line
            for line in fabric.controller_status()["problems"]
            if line.startswith("s2 has dropped") and line.endswith("of h2 (port 1)")
        )
        return bool(reports)

    until("a problem that names h2", reported)
    assert counted(fabric) >= 200
    # No frame of theirs reached a link between switches.
    _, _, status = fabric.host("h1").pexec("ping", "-c", "1", "-W", "10", "10.0.3.1")
    assert status == 0
    problems = fabric.controller_status()["problems"]
    assert not any(line.startswith(("s1", "s3", "s4")) for line in problems)
