"""Open vSwitch or the link emulator is killed under load: what `status` says, and what helps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest

from knotless.emulation import state
from knotless.emulation.names import Names
from knotless.topologies import load
from tests.support.fabric_fixtures import FREE_PORTS, Knotless, Remains
from tests.support.waiting import until


def status(names: Names, knotless: Knotless) -> dict[str, Any]:
    """Return what the command prints; its exit status must agree."""
    done = knotless("status", "--name", names.name, "--json")
    (fabric,) = json.loads(done.stdout)["fabrics"]
    assert done.returncode == (1 if fabric["problems"] else 0), done.stderr
    shown: dict[str, Any] = fabric
    return shown


def arrives(names: Names) -> bool:
    """Return True if a frame of h1 comes to h3."""
    there = load("ring,4").hosts[2].ip
    words = ["ip", "netns", "exec", names.host_namespace("h1"), "ping", "-c", "1", "-W", "1"]
    return subprocess.run([*words, there], check=False, capture_output=True).returncode == 0


@pytest.mark.long
def test_a_dead_part_is_named_and_open_vswitch_can_be_started_again(
    names: Names, knotless: Knotless, remains: Remains
) -> None:
    name = ("--name", names.name)
    for role, processes, missed in (
        ("ovs-vswitchd", "1", 4),
        ("ovs-vswitchd-2", "2", 2),
        ("emulator", "1", 0),
    ):
        done = knotless("up", "ring,4", *name, *FREE_PORTS, "--switch-processes", processes)
        assert done.returncode == 0, done.stderr
        assert status(names, knotless)["problems"] == []
        assert arrives(names)
        done = knotless("traffic", "start", "shift:1", *name)
        assert done.returncode == 0, done.stderr
        running = state.read(names)
        assert running is not None
        os.kill(running.processes[role].pid, signal.SIGKILL)

        def named(role: str = role) -> bool:
            lines = [line for line in status(names, knotless)["problems"] if role in line]
            return any(line.startswith(f"{role} has died: ") for line in lines)

        until("the dead part is named", named)

        def is_not_valid() -> bool:
            emulator = status(names, knotless)["emulator"]
            return emulator is None or not emulator["valid"]

        until("the run is not valid", is_not_valid)
        if missed:

            def are_missed(missed: int = missed) -> bool:
                report = status(names, knotless)
                unconnected = [line for line in report["problems"] if "is not connected" in line]
                return (len(unconnected), report["controller"]["ready"]) == (missed, False)

            until("its switches are missed", are_missed)
        assert not arrives(names)
        if missed:
            done = knotless("switch", "restart", "--all", *name)
            assert done.returncode == 0, done.stderr

            def is_well() -> bool:
                report = status(names, knotless)
                return report["problems"] == [] and bool(report["emulator"]["valid"])

            until("a fabric without problems", is_well)
            assert arrives(names)
        assert knotless("down", *name).returncode == 0
        assert remains(names) == []
