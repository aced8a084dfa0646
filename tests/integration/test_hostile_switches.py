"""Malicious switches: the controller survives them and serves the other switches."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.support.controller_programs import APPLICATION
from tests.support.fake_switch import FLOW_STATS, FakeSwitch
from tests.support.lone_controller import LoneController, lone_controller
from tests.support.openflow_messages import flow_entry, message, multipart
from tests.support.waiting import HANG_S, until

MAX_RSS_BYTES = 300 << 20
HOSTILE_DPID, HONEST_DPID = 1, 2
SWITCH_PORTS = 3
"""Of a switch of ring,4: its host and two neighbours."""


@pytest.fixture(scope="module", params=[None, (APPLICATION,)], ids=["alone", "ryu"])
def controller(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[LoneController]:
    config = "fabric: ring,4\nconnect_timeout_s: 1\nreread_interval_s: 3600"
    folder = tmp_path_factory.mktemp("controller")
    with lone_controller(folder, config, applications=request.param) as running:
        yield running


def serves_an_honest_switch(controller: LoneController) -> None:
    until("the former s2 is gone", lambda: "s2" not in controller.installed())
    switch = FakeSwitch(controller.openflow, HONEST_DPID, SWITCH_PORTS)
    with contextlib.closing(switch):
        until("s2 has its rules", lambda: switch.answer_all() and "s2" in controller.installed())
        assert switch.flow_mods > 0


def hostile(controller: LoneController) -> socket.socket:
    return socket.create_connection(("127.0.0.1", controller.openflow), timeout=HANG_S)


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
def test_a_message_that_harms_ryu_ends_its_connection(
    controller: LoneController, text: bytes
) -> None:
    attacker = hostile(controller)
    attacker.sendall(text)
    await_closed(attacker)
    serves_an_honest_switch(controller)
    assert controller.rss_bytes() < MAX_RSS_BYTES


def test_endless_lists_of_rules_end_the_connection(controller: LoneController) -> None:
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
    serves_an_honest_switch(controller)
    assert controller.rss_bytes() < MAX_RSS_BYTES


def test_connections_that_say_nothing_are_closed(controller: LoneController) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    silent = [hostile(controller) for _ in range(1500)]
    serves_an_honest_switch(controller)
    for connection in silent:
        await_closed(connection)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert controller.rss_bytes() < MAX_RSS_BYTES


def test_many_attacks_are_few_lines_in_the_log(controller: LoneController) -> None:
    before = len(controller.log())
    for _ in range(300):
        attacker = hostile(controller)
        attacker.sendall(message(77))
        await_closed(attacker)
    assert len(controller.log()) - before < 20_000
    # At most one line in ten seconds, which may be about another test's attack.
    assert "is closed: " in controller.log()


def test_many_unknown_switches_are_few_lines(controller: LoneController) -> None:
    """Of the problems and of the log, and each wave of them as few as the one before."""

    def is_said(pool: ThreadPoolExecutor, switches: list[FakeSwitch]) -> bool:
        list(pool.map(FakeSwitch.answer_all, switches))
        lines = controller.status()["problems"]
        of_unknown = [line for line in lines if "no such dpid" in line or "more such" in line]
        assert len(of_unknown) <= 4, of_unknown
        # Others are on the four switches of ring,4, and on what a busy machine delays.
        assert len(lines) < 20, lines
        return any(line.startswith("397 more such switches") for line in lines)

    for _ in range(2):
        before = len(controller.log())
        with contextlib.ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(40))
            all_of_them = [FakeSwitch(controller.openflow, dpid, 3) for dpid in range(100, 500)]
            for switch in all_of_them:
                stack.callback(switch.close)
            until("all are counted", partial(is_said, pool, all_of_them))
        until("all are gone", lambda: "such switches" not in str(controller.status()["problems"]))
        assert len(controller.log()) - before < 20_000
    serves_an_honest_switch(controller)
