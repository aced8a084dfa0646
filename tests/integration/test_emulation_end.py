"""A fabric leaves nothing behind, however it ends, and touches nothing else.

Links here are plain and there is no controller: neither has a part in what is tested, and
so it can be tested without them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.emulation import namespaces, processes, runtime, state, wiring
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.topologies import load
from tests.support.fabric_fixtures import Remains
from tests.support.held_namespaces import HeldNamespaces
from tests.support.waiting import HANG_S, until


def plain(names: Names, spec: str = "ring,4", **settings: Any) -> EmulatedFabric:
    return EmulatedFabric(load(spec), name=names.name, controller="none", links="plain", **settings)


def pings(fabric: EmulatedFabric) -> bool:
    _, _, status = fabric.host("h1").pexec("ping", "-c", "1", "-W", "5", "10.0.1.2")
    return bool(status == 0)


def root_interfaces() -> set[str]:
    return {entry.name for entry in Path("/sys/class/net").iterdir()}


def inside(inodes: set[int]) -> list[str]:
    """Return the processes in network namespaces with these inodes, with their commands."""
    commands = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "ns/net").stat().st_ino in inodes:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                commands.append(f"{entry.name}: {b' '.join(words).decode(errors='replace')}")
    return commands


@pytest.fixture
def held(names: Names) -> Iterator[HeldNamespaces]:
    """Return what keeps namespaces of the fabric."""
    with HeldNamespaces(names) as held:
        yield held


@pytest.fixture
def other_process(names: Names) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Return a function that runs a fabric in its own process, which the test may kill."""
    code = (
        "import sys; from knotless.emulation.network import EmulatedFabric\n"
        "from knotless.topologies import load\n"
        "from knotless.emulation.signals import end_at_signal; end_at_signal()\n"
        "with EmulatedFabric(load('ring,4'), name=sys.argv[1], controller='none',\n"
        "                    links='plain') as fabric:\n"
        "    fabric.host('h1').popen(['sleep', '1000'])\n"
        "    fabric.host('h2').popen(['setsid', 'env', '-i', '/bin/sleep', '1000'])\n"
        "    print('up', flush=True); sys.stdin.read()\n"
    )
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", code, names.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def test_nothing_is_left_and_nothing_else_was_touched(
    names: Names, remains: Remains, held: HeldNamespaces
) -> None:
    fabric = plain(names)
    before = root_interfaces()
    with fabric:
        ours = {end.interface for cable in wiring.wire(fabric.fabric) for end in cable.ends}
        assert not (root_interfaces() - before) & ours
        held.add()
        assert len(held.inodes) == 2 + 4
        assert len(remains(names)) > 6
        links = fabric.host("h1").cmd("ip -color=never -o link show").splitlines()
        assert [line.split(": ")[1].split("@")[0] for line in links] == ["lo", "h1-eth0"]
    assert remains(names) == []
    # A process that was killed may take a moment to leave its namespace.
    with contextlib.suppress(AssertionError):
        until("the namespaces to be left", lambda: not inside(held.inodes))
    assert inside(held.inodes) == []


@pytest.mark.parametrize("part", ["owner", "ovsdb-server", "ovs-vswitchd", "host"])
def test_what_a_kill_leaves_is_removed(
    part: str,
    names: Names,
    remains: Remains,
    held: HeldNamespaces,
    other_process: Callable[[], subprocess.Popen[str]],
) -> None:
    owner = other_process()
    stored = state.read(names)
    assert stored is not None
    held.add()
    if part == "host":
        victims = processes.living_in([names.host_namespace("h1")])
    else:
        victims = {stored.owner if part == "owner" else stored.processes[part]}
    assert victims
    for victim in victims:
        os.kill(victim.pid, signal.SIGKILL)
        processes.await_exit(victim, HANG_S)
    if part == "owner":
        owner.wait(HANG_S)
        assert "directory" in " ".join(remains(names))
    assert runtime.remove(names)
    assert remains(names) == []
    # A process that was killed may take a moment to leave its namespace.
    with contextlib.suppress(AssertionError):
        until("the namespaces to be left", lambda: not inside(held.inodes))
    assert inside(held.inodes) == []
    assert not runtime.remove(names)
    with plain(names):
        assert remains(names)
    assert remains(names) == []


def test_the_next_start_removes_and_reports_the_remains_of_a_kill(
    names: Names, other_process: Callable[[], subprocess.Popen[str]]
) -> None:
    owner = other_process()
    owner.kill()
    owner.wait(HANG_S)
    lines: list[str] = []
    fabric = plain(names)
    fabric.progress = lines.append
    with fabric:
        assert any("removed" in line for line in lines)
        stored = state.read(names)
        assert stored is not None
        assert stored.owner == processes.ourselves()


def test_a_second_start_is_refused_and_harms_nothing(names: Names) -> None:
    with plain(names) as fabric:
        with pytest.raises(KnotlessError, match="already running") as caught:
            plain(names).start()
        assert "\n" not in str(caught.value)
        with pytest.raises(KnotlessError, match="leave its prompt"):
            runtime.remove(names)
        assert fabric.host("h1").cmd("echo here").strip() == "here"


def test_a_namespace_that_is_not_ours_is_left_alone(names: Names) -> None:
    space = names.switches_namespace()
    namespaces.ip_batch([f"netns add {space}"])
    try:
        with pytest.raises(KnotlessError, match="not made by knotless"):
            plain(names).start()
        assert state.existing_namespaces(names) == [space]
        assert not names.directory.exists()
    finally:
        namespaces.remove([space])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_good_order(
    number: signal.Signals,
    names: Names,
    remains: Remains,
    other_process: Callable[[], subprocess.Popen[str]],
) -> None:
    owner = other_process()
    owner.send_signal(number)
    assert owner.wait(HANG_S) != 0
    assert remains(names) == []


def test_an_open_vswitch_that_does_not_start_is_one_line(
    names: Names, remains: Remains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "ovsdb-server"
    broken.write_text("#!/bin/sh\necho first >&2\necho 'no room on disk' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(KnotlessError, match=r"ovsdb-server does not start: no room on disk$"):
        plain(names).start()
    assert remains(names) == []


def test_two_fabrics_live_side_by_side(names: Names, remains: Remains) -> None:
    beside = type(names)(f"{names.name}-b")
    with plain(names, "flat,2") as first:
        first.net["s1"].dpctl("add-flow", "actions=normal")
        with plain(beside, "flat,2"):
            assert remains(beside)
        assert remains(beside) == []
        assert pings(first)


STEPS = ["controller", "namespaces", "hosts", "links", "emulator", "switches", "rules"]


@pytest.mark.parametrize("step", STEPS)
def test_a_start_that_is_killed_at_any_step_is_removed(
    step: str, names: Names, remains: Remains
) -> None:
    code = (
        "import os, sys; from knotless.topologies import load\n"
        "from knotless.emulation.network import EmulatedFabric\n"
        "def progress(line):\n"
        "    if sys.argv[2] in line: os.kill(os.getpid(), 9)\n"
        "EmulatedFabric(load('ring,4'), name=sys.argv[1], openflow_port=0, rest_port=0,\n"
        "               progress=progress).start()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, names.name, step]) as child:
        assert child.wait(HANG_S) == -signal.SIGKILL
    assert remains(names) != []
    assert runtime.remove(names)
    assert remains(names) == []
