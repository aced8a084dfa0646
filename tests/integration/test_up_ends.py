"""``knotless up`` that is interrupted, and fabrics whose parts die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from knotless.emulation import processes, state
from knotless.emulation.names import Names
from knotless.emulation.processes import Process
from tests.integration.test_up_down import status, up
from tests.support.fabric_fixtures import FREE_PORTS, Knotless, Remains
from tests.support.waiting import HANG_S, Limit, until

MORE_PARTS = ("ovsdb-server", "controller")


@pytest.mark.parametrize(
    "part",
    [
        *("owner", "emulator", "ovs-vswitchd"),
        *(pytest.param(name, marks=pytest.mark.long) for name in MORE_PARTS),
    ],
)
def test_a_killed_part_is_reported_and_removed(
    part: str, knotless: Knotless, names: Names, remains: Remains
) -> None:
    assert up(knotless, names).returncode == 0
    running = state.read(names)
    assert running is not None
    victim: Process = running.owner if part == "owner" else running.processes[part]
    os.kill(victim.pid, signal.SIGKILL)
    assert processes.await_exit(victim, HANG_S)
    code, report = status(knotless, names)
    assert code == 1
    assert any(f"{part} has died" in problem for problem in report["problems"])
    assert knotless("down", "--name", names.name).returncode == 0
    assert remains(names) == []
    assert up(knotless, names).returncode == 0


def test_up_removes_a_dead_fabric_and_reports_it(knotless: Knotless, names: Names) -> None:
    assert up(knotless, names).returncode == 0
    running = state.read(names)
    assert running is not None
    os.kill(running.owner.pid, signal.SIGKILL)
    assert processes.await_exit(running.owner, HANG_S)
    done = up(knotless, names)
    assert done.returncode == 0
    assert "removed the remains" in done.stderr


def test_ctrl_c_at_up_leaves_nothing(names: Names, remains: Remains) -> None:
    words = [str(Path(sys.executable).with_name("knotless")), "up", "ring,4"]
    with subprocess.Popen([*words, "--name", names.name, *FREE_PORTS]) as child:
        until("a directory", names.directory.exists)
        child.send_signal(signal.SIGINT)
        assert child.wait(HANG_S) == 130
    assert remains(names) == []


def test_a_killed_up_takes_its_half_started_fabric_with_it(names: Names, remains: Remains) -> None:
    words = [str(Path(sys.executable).with_name("knotless")), "up", "ring,4"]
    with subprocess.Popen([*words, "--name", names.name, *FREE_PORTS]) as child:
        limit = Limit()
        while (running := state.read(names)) is None or not running.running:
            limit.check("a process of the fabric")
        child.kill()
    assert processes.await_exit(running.owner, HANG_S)
    assert remains(names) == []
