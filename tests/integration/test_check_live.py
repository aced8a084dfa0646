"""``knotless check --live``: the rules that the switches of a running fabric hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable

import pytest

from knotless.emulation import processes, state
from knotless.emulation.names import Names
from tests.support.waiting import HANG_S

Knotless = Callable[..., subprocess.CompletedProcess[str]]
FREE_PORTS = ("--port", "0", "--rest-port", "0")


def kill_controller(names: Names) -> None:
    """End the controller of a fabric; nobody repairs rules from now on."""
    running = state.read(names)
    assert running is not None
    controller = running.processes["controller"]
    os.kill(controller.pid, signal.SIGKILL)
    assert processes.await_exit(controller, HANG_S)


@pytest.mark.smoke
def test_live_rules_are_judged_as_they_are(knotless: Knotless, names: Names) -> None:
    up = ("up", "ring,5", "--engine", "dor", "--name", names.name, *FREE_PORTS)
    started = knotless(*up)
    assert started.returncode == 0, started.stderr
    try:
        check = ("check", "--live", "--name", names.name, "--json")
        own = knotless(*check)  # its plan has two virtual channels: PFC
        assert own.returncode == 0, own.stderr + own.stdout
        verdict = json.loads(own.stdout)
        assert (verdict["pairs"], verdict["flow_control"], verdict["acyclic"]) == (20, "pfc", True)
        pause = knotless(*check, "--flow-control", "pause")  # which stops both priorities
        assert pause.returncode == 1
        verdict = json.loads(pause.stdout)
        assert verdict["flow_control"] == "pause"
        assert verdict["cycle"] == [f"s{i}:2/0" for i in range(1, 6)]
        kill_controller(names)
        subprocess.run(
            ["ovs-ofctl", "-O", "OpenFlow13", "del-flows", "s1", "table=0"],
            env={**os.environ, "OVS_RUNDIR": str(names.directory / "ovs")},
            check=True,
            timeout=HANG_S,
        )
        broken = knotless(*check, "--flow-control", "pfc")
        assert broken.returncode == 1
        assert "h1 to h2: the frame is dropped at s1" in json.loads(broken.stdout)["problems"]
    finally:
        down = knotless("down", "--name", names.name)
    assert down.returncode == 0, down.stderr


def test_packets_sent_to_a_cut_link_are_lost(knotless: Knotless, names: Names) -> None:
    """Nothing repairs the routes: the controller is dead. A host's link counts, too."""
    name = ("--name", names.name)
    started = knotless("up", "ring,4", "--engine", "updown", *name, *FREE_PORTS)
    assert started.returncode == 0, started.stderr
    try:
        kill_controller(names)
        check = ("check", "--live", *name, "--json")
        whole = knotless(*check)
        assert whole.returncode == 0, whole.stderr + whole.stdout
        lost = {}
        for link, *how in (["s1-s2", "--silent", "--from", "s1"], ["s1-s2"], ["h3"]):
            assert knotless("cut", link, *how, *name).returncode == 0
            done = knotless(*check)
            verdict = json.loads(done.stdout)
            assert (done.returncode, verdict["acyclic"]) == (1, True)
            assert any(line.startswith("cut: ") for line in verdict["problems"])
            assert any(line.startswith("h1 to ") for line in verdict["problems"])
            lost[link, *how] = verdict["undelivered"]
            assert knotless("mend", link, *name).returncode == 0
        assert 0 < lost["s1-s2", "--silent", "--from", "s1"] < lost["s1-s2",]
        assert lost["h3",] == 6
        assert knotless(*check).returncode == 0
    finally:
        down = knotless("down", *name)
    assert down.returncode == 0, down.stderr


@pytest.mark.smoke
def test_nothing_running_is_one_line(knotless: Knotless, names: Names) -> None:
    done = knotless("check", "--live", "--name", names.name)
    assert done.returncode == 2
    assert done.stderr.startswith(f"knotless: no fabric {names.name!r} is running; ")
    assert done.stderr.count("\n") == 1
