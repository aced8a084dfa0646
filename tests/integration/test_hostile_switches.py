"""Malicious switches: the controller survives them and serves the other switches."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

from tests.fake_switch import FLOW_STATS, FakeSwitch
from tests.integration.bare_fabric import REPOSITORY, RYU_MANAGER, until
from tests.openflow_messages import flow_entry, message, multipart

MAX_RSS_BYTES = 300 << 20
HOSTILE_DPID, HONEST_DPID = 1, 2
SWITCH_PORTS = 3
"""Of a switch of ring,4: its host and two neighbours."""


@dataclass
class Controller:
    """A running controller of ring,4."""

    process: subprocess.Popen[bytes]
    openflow: int
    rest: int
    log: Path

    def status(self) -> dict[str, Any]:
        with urlopen(f"http://127.0.0.1:{self.rest}/status", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def rss_bytes(self) -> int:
        found: int = psutil.Process(self.process.pid).memory_info().rss
        return found

    def serves_an_honest_switch(self) -> None:
        until("the former s2 is gone", lambda: "s2" not in self.installed())
        switch = FakeSwitch(self.openflow, HONEST_DPID, SWITCH_PORTS)
        with contextlib.closing(switch):
            until("s2 has its rules", lambda: switch.answer_all() and "s2" in self.installed())
            assert switch.flow_mods > 0

    def installed(self) -> list[str]:
        switches = self.status()["switches"].items()
        return [name for name, switch in switches if switch["installed"]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    directory = tmp_path_factory.mktemp("controller")
    openflow, rest = free_port(), free_port()
    (directory / "lab.yaml").write_text(f"fabric: ring,4\nrest: {{port: {rest}}}\n")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [RYU_MANAGER, f"--ofp-tcp-listen-port={openflow}", REPOSITORY / "controller/app.py"],
            cwd=directory,
            env={**os.environ, "KNOTLESS_CONFIG": str(directory / "lab.yaml")},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    found = Controller(process, openflow, rest, directory / "log")

    def answers() -> bool:
        assert process.poll() is None, found.log.read_text()
        with contextlib.suppress(OSError):
            return bool(found.status())
        return False

    try:
        until("the controller answers", answers, 60)
        yield found
    finally:
        process.terminate()
        process.wait(timeout=30)


def hostile(controller: Controller) -> socket.socket:
    return socket.create_connection(("127.0.0.1", controller.openflow), timeout=30)


def await_closed(connection: socket.socket) -> None:
    """Read until the controller closes the connection; the timeout is the deadline."""
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(1 << 16):
            pass
    connection.close()


@pytest.mark.parametrize(
    "text",
    [
        bytes.fromhex("04000010000000010001000000000000"),
        message(77),
        struct.pack("!BBHI", 4, 0, 3, 1),
        multipart(7, bytes(64)),
        multipart(9, bytes(64)),
        multipart(13, b""),
        message(10, bytes(40)),
    ],
    ids=["hello", "unknown", "short", "groups", "meters", "unasked", "packet-in"],
)
def test_a_message_that_harms_ryu_ends_its_connection(controller: Controller, text: bytes) -> None:
    attacker = hostile(controller)
    attacker.sendall(text)
    await_closed(attacker)
    controller.serves_an_honest_switch()
    assert controller.rss_bytes() < MAX_RSS_BYTES


def test_endless_lists_of_rules_end_the_connection(controller: Controller) -> None:
    part = flow_entry() * 1000
    switch = FakeSwitch(controller.openflow, HOSTILE_DPID, SWITCH_PORTS)
    asked = switch.read()
    while not (asked[0] == 18 and int.from_bytes(asked[2][:2], "big") == FLOW_STATS):
        switch.reply(*asked)
        asked = switch.read()
    endless = multipart(FLOW_STATS, part, more=True, xid=asked[1])
    sent = 0
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while sent < 256 << 20:
            switch.socket.sendall(endless)
            sent += len(endless)
    switch.close()
    assert sent < 64 << 20
    controller.serves_an_honest_switch()
    assert controller.rss_bytes() < MAX_RSS_BYTES


def test_connections_that_say_nothing_are_closed(controller: Controller) -> None:
    silent = [hostile(controller) for _ in range(500)]
    controller.serves_an_honest_switch()
    for connection in silent:
        await_closed(connection)
    assert controller.rss_bytes() < MAX_RSS_BYTES


def test_many_attacks_are_few_lines_in_the_log(controller: Controller) -> None:
    before = controller.log.stat().st_size
    for _ in range(300):
        attacker = hostile(controller)
        attacker.sendall(message(77))
        await_closed(attacker)
    assert controller.log.stat().st_size - before < 20_000
    # At most one line in ten seconds, which may be about another test's attack.
    assert "is closed: " in controller.log.read_text()
