"""Switches and Open vSwitch processes that stop, start and restart: who sees what."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from knotless.emulation import state
from knotless.emulation.names import NETNS_DIRECTORY
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.processes import Process
from tests.integration.test_cut_and_mend import is_intact, pings, port_states
from tests.support.fabric_fixtures import Knotless
from tests.support.waiting import until

QUIET: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@pytest.fixture
def fabric(running: EmulatedFabric) -> Iterator[EmulatedFabric]:
    """Return the fabric with all its switches and links."""
    yield running
    for cut in running.cables.cuts():
        running.cables.mend(running.cables.one(cut.link))
    if stopped := state.stopped_switches(running.names):
        running.switches.start(*stopped)
    until("an intact fabric", lambda: is_well(running))


def is_well(fabric: EmulatedFabric) -> bool:
    return is_intact(fabric) and bool(fabric.controller_status()["ready"])


def is_down(fabric: EmulatedFabric, switch: str, port: int) -> bool:
    return "LINK_DOWN" in port_states(fabric, switch)[port]


def drops(fabric: EmulatedFabric, cause: str) -> int:
    return sum(channel["drops"][cause] for channel in fabric.daemon.counters()["channels"])


def shown(knotless: Knotless, fabric: EmulatedFabric) -> dict[str, Any]:
    done = knotless("status", "--name", fabric.name, "--json")
    status: dict[str, Any] = json.loads(done.stdout)["fabrics"][0]
    assert done.returncode == (1 if status["problems"] else 0), done.stderr
    return status


def test_a_switch_stops_alone_its_links_lose_their_carrier_and_it_starts_again(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    name = ("--name", fabric.name)
    fabric.daemon.reset()
    assert pings(fabric, "h1", "10.0.3.1")
    done = knotless("switch", "stop", "s2", *name)
    assert (done.returncode, done.stdout) == (0, "s2: stopped\n"), done.stderr
    until("s1 sees it", lambda: is_down(fabric, "s1", 2))
    until("s3 sees it", lambda: is_down(fabric, "s3", 3))
    assert not is_down(fabric, "s3", 2)
    text, _, _ = fabric.host("h2").pexec("ip", "link", "show", "h2-eth0")
    assert "NO-CARRIER" in text
    until("the controller misses it", lambda: not fabric.controller_status()["ready"])
    status = shown(knotless, fabric)
    assert (status["stopped"], status["cut"]) == (["s2"], [])
    assert any("s2" in problem for problem in status["problems"])
    assert status["emulator"]["valid"], status["emulator"]["problems"]
    assert "stopped: s2" in knotless("status", *name).stdout
    until("routes avoid it", lambda: pings(fabric, "h1", "10.0.3.1"))
    done = knotless("check", "--live", *name)
    assert done.returncode == 1
    assert "stopped: s2" in done.stdout
    assert "h2 does not receive broadcasts from h1" in done.stdout
    assert "h3 does not receive broadcasts from h1" not in done.stdout
    assert not pings(fabric, "h1", "10.0.2.1")
    done = knotless("switch", "start", "s2", *name)
    assert (done.returncode, done.stdout) == (0, "s2: started\n"), done.stderr
    until("a fabric as before", lambda: is_well(fabric) and not shown(knotless, fabric)["problems"])
    assert not any(is_down(fabric, *port) for port in (("s1", 2), ("s3", 3), ("s2", 2)))
    assert pings(fabric, "h1", "10.0.2.1")
    assert pings(fabric, "h2", "10.0.3.1")
    status = shown(knotless, fabric)
    assert (status["stopped"], status["emulator"]["valid"]) == ([], True)


def test_frames_in_the_buffers_of_a_switch_that_restarts_are_lost_and_the_run_is_valid(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    name = ("--name", fabric.name)
    fabric.daemon.reset()
    # Two hosts send to a third: their frames wait in a switch.
    code = (
        "import socket\n"
        "end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "end.connect(('10.0.3.1', 9))\n"
        "while True:\n"
        "    try: end.send(bytes(1400))\n"
        "    except OSError: pass\n"
    )
    programs = [fabric.host(h).popen(["python3", "-c", code], **QUIET) for h in ("h2", "h4")]
    try:

        def has_queue() -> bool:
            channels = {one["channel"]: one for one in fabric.daemon.counters()["channels"]}
            return channels["s3:1"]["priorities"][0]["queue_bytes"] > 3000

        until("a queue", has_queue)
        done = knotless("switch", "restart", "s3", *name)
        assert (done.returncode, done.stdout) == (0, "s3: restarted\n"), done.stderr
        assert drops(fabric, "reboot") > 0
        before = fabric.daemon.counters()

        def arrive() -> bool:
            counts = [
                {c["channel"]: c["rx_frames"] for c in counted["channels"]}
                for counted in (before, fabric.daemon.counters())
            ]
            return counts[1]["s3:1"] > counts[0]["s3:1"] + 20

        until("frames at h3", arrive)
        status = fabric.daemon.status()
        assert status["valid"], status["problems"]
    finally:
        for program in programs:
            program.kill()
            program.wait()


def test_a_cut_link_of_a_switch_that_restarts_stays_cut(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    fabric.cables.cut(fabric.cables.one("s1-s2"))
    done = knotless("switch", "restart", "s1", "s2", "--name", fabric.name)
    assert done.returncode == 0, done.stderr
    assert [cut["link"] for cut in shown(knotless, fabric)["cut"]] == ["s1:2-s2:3"]
    assert is_down(fabric, "s1", 2)
    assert is_down(fabric, "s2", 3)
    until("routes around it", lambda: pings(fabric, "h1", "10.0.2.1"))
    fabric.cables.mend(fabric.cables.one("s1-s2"))
    until("s1 sees it", lambda: not is_down(fabric, "s1", 2))
    until("s2 sees it", lambda: not is_down(fabric, "s2", 3))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_storm_of_failures_ends_well(
    fabric: EmulatedFabric, knotless: Knotless, seed: int
) -> None:
    """Switches stop, start and restart, and links are cut and mended, in a random order."""
    rng = random.Random(seed)  # noqa: S311
    fabric.daemon.reset()
    names = [switch.name for switch in fabric.fabric.switches]
    links = [link.name for link in fabric.fabric.links]
    links += [host.name for host in fabric.fabric.hosts]
    cut: set[str] = set()
    for _ in range(20):
        name, link = rng.choice(names), rng.choice(links)
        stopped = state.stopped_switches(fabric.names)
        match rng.choice(["stop or start", "restart", "cut or mend"]):
            case "restart":
                fabric.switches.restart(name)
            case "stop or start" if name in stopped:
                fabric.switches.start(name)
            case "stop or start":
                fabric.switches.stop(name)
            case _ if link in cut:
                fabric.cables.mend(fabric.cables.one(link))
                cut.remove(link)
            case _:
                fabric.cables.cut(fabric.cables.one(link))
                cut.add(link)
        assert {one.link for one in fabric.cables.cuts()} == cut
        assert set(fabric.daemon.status()["stopped"]) == state.stopped_switches(fabric.names)
    for link in cut:
        fabric.cables.mend(fabric.cables.one(link))
    if stopped := state.stopped_switches(fabric.names):
        fabric.switches.start(*stopped)
    until("an intact fabric", lambda: is_well(fabric) and not shown(knotless, fabric)["problems"])
    done = knotless("check", "--live", "--name", fabric.name)
    assert done.returncode == 0, done.stdout
    for source, to in itertools.permutations(fabric.fabric.hosts, 2):
        assert pings(fabric, source.name, to.ip)
    status = fabric.daemon.status()
    assert status["valid"], status["problems"]


def test_after_a_new_open_vswitch_all_is_as_before(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    with killed(fabric, knotless) as (role, words, environment, priority):
        done = knotless("switch", "restart", "--all", "--name", fabric.name)
        assert done.returncode == 0, done.stderr
        assert "Open vSwitch had died, and runs again, of: " in done.stdout
        again = recorded(fabric)[role].pid
        assert (started_as(again)[0], priorities(again)) == (words, priority)
        for variable in ("LD_PRELOAD", "MALLOC_CONF"):
            assert started_as(again)[1].get(variable) == environment.get(variable)
        home = NETNS_DIRECTORY / namespace(fabric, role)
        assert Path(f"/proc/{again}/ns/net").stat().st_ino == home.stat().st_ino


@contextmanager
def killed(
    fabric: EmulatedFabric, knotless: Knotless
) -> Iterator[tuple[str, list[str], dict[str, str], set[tuple[int, int]]]]:
    """Kill an Open vSwitch process beside traffic; when it runs again, all must be as before.

    Yields its role, arguments, environment and priorities.
    """
    fabric.daemon.reset()
    ping = ["ping", "-q", "-i", "0.05", "10.0.3.1"]
    flood = fabric.host("h1").popen(ping, **QUIET)

    def stretch() -> float:
        return float(fabric.daemon.status()["stretch_now"] or 1e9)

    try:
        until("a pace", lambda: stretch() < 1e9)
        before = stretch()
        role = sorted(r for r in recorded(fabric) if r.startswith("ovs-vswitchd"))[-1]
        pid = recorded(fabric)[role].pid
        words, environment = started_as(pid)
        priority = priorities(pid)
        os.kill(pid, signal.SIGKILL)
        until("an invalid run", lambda: not fabric.daemon.status()["valid"])
        problems = fabric.daemon.status()["problems"]
        assert any("'knotless switch restart --all'" in problem for problem in problems)
        # It keeps the dead one in mind as long as there is no other.
        until("a problem", lambda: bool(shown(knotless, fabric)["problems"]))
        yield role, words, environment, priority
        until("all rules", lambda: is_well(fabric))
        # Other tests run as well; a process that is waited for in vain slows time a hundredfold.
        until("a pace as before", lambda: stretch() <= 10 * before)
        until("pings", lambda: pings(fabric, "h1", "10.0.3.1"))
        until("no problem", lambda: not shown(knotless, fabric)["problems"])
        assert fabric.daemon.status()["abandoned"] == 0
    finally:
        flood.kill()
        flood.wait()


def recorded(fabric: EmulatedFabric) -> dict[str, Process]:
    stored = state.read(fabric.names)
    assert stored is not None
    return stored.processes


def started_as(pid: int) -> tuple[list[str], dict[str, str]]:
    """Return arguments and environment of a process."""

    def read(file: str) -> list[str]:
        return Path(f"/proc/{pid}/{file}").read_text().split("\0")[:-1]

    return read("cmdline"), dict(line.split("=", 1) for line in read("environ"))


def priorities(pid: int) -> set[tuple[int, int]]:
    """Return scheduler and priority of all threads of a process."""
    threads = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    return {
        (os.sched_getscheduler(thread), os.sched_getparam(thread).sched_priority)
        for thread in threads
    }


def namespace(fabric: EmulatedFabric, role: str) -> str:
    number = int(role.rpartition("-")[2]) - 1 if role[-1].isdigit() else 0
    return fabric.names.switches_namespace(number)


def test_mistakes_are_one_line(fabric: EmulatedFabric, knotless: Knotless) -> None:
    for words, complaint in (
        (("start", "s1"), "switch s1 is not stopped"),
        (("stop", "s9"), "no switch 's9'; switches are s1, s2, s3, s4"),
    ):
        done = knotless("switch", *words, "--name", fabric.name)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert complaint in done.stderr
