"""A host that never resumes, and one that floods, on a running fabric."""

from __future__ import annotations

import json
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from knotless.emulation.network import EmulatedFabric
from knotless.emulation.report import report
from tests.support.fabric_fixtures import new_fabric, new_names
from tests.support.waiting import HANG_S, until

LONGEST = 0xFFFF
"""The longest time of a PAUSE frame, in quanta."""
PAUSE = """
import socket, sys, time
quanta, count, every_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind((sys.argv[4], 0))
    head = bytes.fromhex("0180c2000001 020000000101 8808 0001")
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number * every_s - time.monotonic()))
        out.send(head + quanta.to_bytes(2, "big") + bytes(42))
"""
FLOOD = """
import socket, time
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind(("h2-eth0", 0))
    frame = bytes.fromhex("020000000101 020000000201 0800") + bytes(46)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        out.send(frame)
"""


@pytest.fixture(scope="module")
def fabric() -> Iterator[EmulatedFabric]:
    with new_fabric(new_names(), "ring,4") as running:
        yield running


def channel(fabric: EmulatedFabric, name: str) -> Any:
    return next(c for c in fabric.daemon.counters()["channels"] if c["channel"] == name)


def test_a_host_that_never_resumes_is_named_and_ignored(fabric: EmulatedFabric) -> None:
    events: list[dict[str, Any]] = []

    def listen() -> None:
        url = f"http://127.0.0.1:{fabric.rest_port}/events"
        with urllib.request.urlopen(url, timeout=HANG_S) as stream:  # noqa: S310 - ours
            kind = ""
            for line in stream:
                word, _, rest = line.decode().partition(": ")
                if word == "event":
                    kind = rest.strip()
                if word == "data" and kind.startswith("pause-storm"):
                    events.append({"kind": kind, **json.loads(rest)})
                    if kind == "pause-storm-over":
                        return

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    storm = fabric.host("h1").popen(
        [sys.executable, "-c", PAUSE, str(LONGEST), "2", "1.5", "h1-eth0"]
    )

    def named() -> bool:
        status = report(fabric.names)
        return status is not None and any("host h1" in line for line in status["problems"])

    until("a status that names h1", named)
    storm.communicate()
    assert storm.returncode == 0
    # The switch sends to it all the same.
    _, _, status = fabric.host("h2").pexec("ping", "-c", "1", "-W", "10", "10.0.1.1")
    assert status == 0
    listener.join(HANG_S)
    assert [event["kind"] for event in events] == ["pause-storm", "pause-storm-over"]
    assert {event["host"] for event in events} == {"h1"}
    counted = channel(fabric, "s1:1")["host_pauses"]
    assert counted["limited"] >= 1
    assert counted["ignored_us"] > 2_000_000


def test_a_host_that_floods_its_interface_loses_only_its_own_frames(
    fabric: EmulatedFabric,
) -> None:
    fabric.daemon.reset()
    flood = fabric.host("h2").popen([sys.executable, "-c", FLOOD])
    _, _, status = fabric.host("h3").pexec("ping", "-c", "5", "-i", "0.2", "-W", "10", "10.0.4.1")
    assert status == 0
    flood.communicate()
    assert flood.returncode == 0
    counters = {c["channel"]: c for c in fabric.daemon.counters()["channels"]}
    assert counters["h2"]["drops"]["queue"] > 0
    others = [name for name, c in counters.items() if name != "h2" and c["drops"]["queue"]]
    assert others == []
    assert fabric.daemon.status()["kernel_lost"] == 0
