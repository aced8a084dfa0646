"""Fast failover on Open vSwitch: frames take backup paths without a controller, and with one."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest

from knotless.emulation import state
from knotless.emulation.network import EmulatedFabric
from knotless.routing.request import PlanRequest
from tests.integration.test_cut_and_mend import pings
from tests.support.fabric_fixtures import Knotless, new_fabric, new_names
from tests.support.waiting import HANG_S, until

FAILOVER = PlanRequest(engine="dl", vcs=2, protection="fast-failover")
INTERVAL_S = 0.01


@pytest.fixture(scope="module")
def fabric() -> Iterator[EmulatedFabric]:
    """Return a fabric that these tests share; each waits until the routes have returned."""
    with new_fabric(new_names(), "ring,4", FAILOVER) as running:
        yield running


def frames_from(fabric: EmulatedFabric, channel: str) -> int:
    """Return how many frames a channel has carried."""
    channels = fabric.daemon.counters()["channels"]
    (count,) = (int(one["tx_frames"]) for one in channels if one["channel"] == channel)
    return count


def lost_while_cut(fabric: EmulatedFabric) -> int:
    """Cut s1-s2 while h1 pings h2, which is one link away; return the pings without answer."""
    before = frames_from(fabric, "s1:2")
    ping = fabric.host("h1").popen(
        ["ping", "-c", "300", "-i", str(INTERVAL_S), "-W", "2", "10.0.2.1"], text=True
    )
    until("some pings take the link", lambda: frames_from(fabric, "s1:2") > before + 10)
    fabric.cables.cut(fabric.cables.one("s1-s2"))
    text, _ = ping.communicate(timeout=HANG_S)
    sent, received = map(int, re.findall(r"(\d+) (?:packets transmitted|received)", text))
    assert sent == 300
    return int(sent - received)


def repaired(fabric: EmulatedFabric, failed: list[str]) -> bool:
    """Return True if the controller has changed the routes, and these parts count as failed."""
    routes = fabric.controller_status()["routes"]
    return bool(not routes["changing"] and routes["failed"] == failed)


@pytest.mark.smoke
def test_switches_recover_without_a_controller(fabric: EmulatedFabric, knotless: Knotless) -> None:
    until("h1 reaches h2", lambda: pings(fabric, "h1", "10.0.2.1"))
    checked = knotless("check", "--live", "--name", fabric.name)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    running = state.read(fabric.names)
    assert running is not None
    controller = running.processes["controller"].pid
    os.kill(controller, signal.SIGSTOP)
    try:
        lost = lost_while_cut(fabric)
        assert lost * INTERVAL_S < 1, f"{lost} of 300 pings lost: switches did not recover"
        for address in ("10.0.1.1", "10.0.3.1", "10.0.4.1"):
            assert pings(fabric, "h2", address), address
    finally:
        os.kill(controller, signal.SIGCONT)
    fabric.cables.mend(fabric.cables.one("s1-s2"))
    until("the routes have returned", lambda: repaired(fabric, []))
    log = fabric.names.directory / "controller.log"
    before = log.stat().st_size
    fabric.restart_controller()
    since = log.read_bytes()[before:].decode()
    assert since.count("as wanted; 0 added, 0 modified, 0 deleted") == 4, since
    assert fabric.daemon.status()["kernel_lost"] == 0


def test_the_controller_repairs_what_switches_have_diverted(fabric: EmulatedFabric) -> None:
    until("h1 reaches h2", lambda: pings(fabric, "h1", "10.0.2.1"))
    lost = lost_while_cut(fabric)
    assert lost * INTERVAL_S < 1
    until("the routes are repaired", lambda: repaired(fabric, ["s1:2-s2:3"]))
    assert pings(fabric, "h2", "10.0.1.1")
    fabric.cables.mend(fabric.cables.one("s1-s2"))
    until("the routes have returned", lambda: repaired(fabric, []))
    assert pings(fabric, "h1", "10.0.2.1")
    log = (fabric.names.directory / "controller.log").read_text(encoding="utf-8")
    assert "the process that plans ahead has ended" not in log
