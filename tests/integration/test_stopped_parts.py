"""Open vSwitch, the link emulator or a program stops for a while, or ends: what `valid` says."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from knotless.emulation import state
from knotless.emulation.network import EmulatedFabric
from knotless.routing.request import PlanRequest
from tests.support.fabric_fixtures import Start, new_fabric, new_names
from tests.support.waiting import until

STOPPED_S = 0.6


SPEC, PLAN = "ring,4,rate=10,delay=500", PlanRequest.from_options(engine="updown")
PROCESSES = pytest.mark.parametrize("processes", [1, 2], ids=["one Open vSwitch", "two"])


@pytest.fixture(scope="module", params=[1, 2], ids=["one Open vSwitch", "two"])
def fabric(request: pytest.FixtureRequest) -> Iterator[EmulatedFabric]:
    """Return a fabric that these tests share; none of its parts ends."""
    with new_fabric(new_names(), SPEC, PLAN, switch_processes=request.param) as running:
        yield running


@pytest.fixture
def program(fabric: EmulatedFabric) -> Iterator[subprocess.Popen[str]]:
    """Return a program that sends as fast as it can from h1 to h3."""
    with flooding(fabric) as running:
        yield running


@contextmanager
def flooding(fabric: EmulatedFabric) -> Iterator[subprocess.Popen[str]]:
    """Send as fast as a program can from h1 to h3."""
    fabric.daemon.reset()
    there = fabric.fabric.hosts[2].ip
    code = (
        "import socket\n"
        "end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"end.connect(({there!r}, 9))\n"
        "while True:\n"
        "    try: end.send(bytes(1400))\n"
        "    except ConnectionRefusedError: pass\n"
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    program = fabric.host("h1").popen(["python3", "-c", code], **quiet)
    try:
        until("frames", lambda: arrived(fabric) > 20)
        fabric.daemon.reset()
        yield program
    finally:
        program.kill()
        program.wait()


def arrived(fabric: EmulatedFabric) -> int:
    """Return how many frames have come to h3 since the reset."""
    channels = fabric.daemon.counters()["channels"]
    return sum(one["rx_frames"] for one in channels if one["to"] == "h3")


def stop_for_a_while(pid: int) -> None:
    """Stop a process for a time; how much longer it takes does not matter."""
    os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + STOPPED_S
    until("real time", lambda: time.monotonic() > end)
    os.kill(pid, signal.SIGCONT)


def runs_on(fabric: EmulatedFabric) -> None:
    """Frames arrive, now and later."""
    before = arrived(fabric)
    until("further frames", lambda: arrived(fabric) > before + 20)


LATE_PROGRAMS = ("lines of hosts were idle", "programs on hosts waited")
"""Problems of a machine on which programs get no processor, whatever is stopped."""


def assert_valid(fabric: EmulatedFabric) -> None:
    """The run is valid, but for programs that had no processor beside other tests."""
    problems = fabric.daemon.status()["problems"]
    assert [line for line in problems if not line.startswith(LATE_PROGRAMS)] == []


@pytest.mark.usefixtures("program")
def test_virtual_time_waits_while_open_vswitch_is_stopped(fabric: EmulatedFabric) -> None:
    runs_on(fabric)

    def has_waited() -> bool:
        """On a busy machine, the program may have sent nothing meanwhile."""
        stop_for_a_while(fabric.ovs.pids[-1])
        runs_on(fabric)
        waited_ms = fabric.daemon.status()["holds"]["switch"]["ms"]
        return bool(waited_ms >= 1000 * STOPPED_S / 2)

    until("virtual time waits", has_waited)
    assert_valid(fabric)


@pytest.mark.usefixtures("program")
def test_virtual_time_stands_still_while_the_emulator_is_stopped(fabric: EmulatedFabric) -> None:
    runs_on(fabric)
    stored = state.read(fabric.names)
    assert stored is not None
    pid = stored.processes["emulator"].pid

    def stands_still() -> bool:
        """Virtual time passes if no frame is in the network, as when the program gets no turn."""
        before = fabric.daemon.status()
        stop_for_a_while(pid)
        after = fabric.daemon.status()
        real_s = after["real_s"] - before["real_s"]
        return bool(after["uptime_s"] - before["uptime_s"] <= real_s - STOPPED_S / 2)

    until("virtual time stands still", stands_still)
    runs_on(fabric)
    assert_valid(fabric)


def test_a_program_that_is_stopped_sends_nothing_and_holds_nothing(
    fabric: EmulatedFabric, program: subprocess.Popen[str]
) -> None:
    runs_on(fabric)
    os.kill(program.pid, signal.SIGSTOP)
    until("an idle network", lambda: fabric.daemon.status()["frames_in_network"] == 0)
    before = fabric.daemon.status()["uptime_s"]
    until("virtual time", lambda: fabric.daemon.status()["uptime_s"] > before + STOPPED_S)
    os.kill(program.pid, signal.SIGCONT)
    runs_on(fabric)
    assert_valid(fabric)


@PROCESSES
def test_frames_in_an_open_vswitch_that_ends_are_lost_and_the_run_is_not_valid(
    start: Start, processes: int
) -> None:
    fabric = start(SPEC, PLAN, switch_processes=processes)

    def lost() -> int:
        return sum(one["drops"]["reboot"] for one in fabric.daemon.counters()["channels"])

    with flooding(fabric):
        runs_on(fabric)
        os.kill(fabric.ovs.pids[-1], signal.SIGKILL)
        until("an invalid run", lambda: not fabric.daemon.status()["valid"])
        until("lost frames", lambda: lost() > 0)
    status = fabric.daemon.status()
    assert status["abandoned"] == 0
    assert any("Open vSwitch" in problem for problem in status["problems"])
