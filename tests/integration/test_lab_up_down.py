"""The commands that start, show and end a fabric, as a user types them."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from emulation import processes, state
from emulation.names import REPOSITORY, Names
from emulation.processes import Process
from routing.plan import make_plan
from routing.vlans.assignment import ASSIGNMENTS
from tests.integration.all_pairs import missing_pairs
from topologies import load

pytestmark = pytest.mark.integration

Knotless = Callable[..., subprocess.CompletedProcess[str]]
Remains = Callable[[Names], list[str]]

FREE_PORTS = ("--port", "0", "--rest-port", "0")


def up(knotless: Knotless, names: Names, *more: str) -> subprocess.CompletedProcess[str]:
    return knotless("up", "ring,4", "--name", names.name, *FREE_PORTS, *more)


def status(knotless: Knotless, names: Names) -> tuple[int, dict[str, Any]]:
    done = knotless("status", "--name", names.name, "--json")
    return done.returncode, json.loads(done.stdout)["fabrics"][0]


class Lab:
    """``knotless lab`` at a terminal."""

    def __init__(self, *words: str) -> None:
        self._terminal, far = pty.openpty()
        self.process = subprocess.Popen(
            [str(Path(sys.executable).with_name("knotless")), "lab", *words],
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(far)
        self.seen = ""

    def expect(self, text: str, within_s: float = 60) -> str:
        """Wait for ``text``; return what came before it."""
        deadline = time.monotonic() + within_s
        while text not in self.seen:
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"no {text!r} in {self.seen!r}"
            if select.select([self._terminal], [], [], left_s)[0]:
                try:
                    piece = os.read(self._terminal, 4096)
                except OSError:
                    piece = b""
                assert piece, f"it ended without {text!r}: {self.seen!r}"
                self.seen += piece.decode(errors="replace")
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait(self, within_s: float = 60) -> int:
        """Read on until it ends, and return its exit status."""
        deadline = time.monotonic() + within_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen
            if select.select([self._terminal], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self._terminal, 4096).decode(errors="replace")
                except OSError:
                    continue
        return self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


@pytest.fixture
def lab(names: Names) -> Iterator[Callable[..., Lab]]:
    """Return a function that opens a lab under this test's name."""
    opened: list[Lab] = []

    def start(*words: str) -> Lab:
        opened.append(Lab(*words, "--name", names.name, *FREE_PORTS))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_pings_pass_in_vlans_that_are_trees(knotless: Knotless, names: Names) -> None:
    fabric = load("ring,4")
    counts = {vlans: make_plan(fabric, "updown", vlans=vlans).vlan_count for vlans in ASSIGNMENTS}
    assert counts == {"default": 1, "tree": 3}
    done = up(knotless, names, "--engine", "updown", "--vlans", "tree")
    assert done.returncode == 0, done.stderr
    try:
        _, shown = status(knotless, names)
        assert shown["settings"]["vlans"] == "tree"
        assert shown["controller"]["plan"]["vlans"] == counts["tree"]
        spaces = {host.name: names.host_namespace(host.name) for host in fabric.hosts}
        addresses = {host.name: host.ip for host in fabric.hosts}
        assert missing_pairs(spaces, addresses, deadline_s=60) == set()
    finally:
        assert knotless("down", "--name", names.name).returncode == 0


def test_up_ping_all_down(knotless: Knotless, names: Names, remains: Remains) -> None:
    done = up(knotless, names)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 switches, 4 hosts" in done.stdout
    code, found = status(knotless, names)
    assert (code, found["phase"], found["problems"]) == (0, "ready", [])
    assert found["controller"]["ready"] is True
    assert set(found["parts"]) == {
        *("ovsdb-server", "ovs-vswitchd", "controller", "forwarder", "emulator")
    }
    for here in range(1, 5):
        for there in range(1, 5):
            ping = [
                *("nsenter", f"--net=/run/netns/{names.host_namespace(f'h{here}')}"),
                *("ping", "-c", "1", "-W", "5", f"10.0.{there}.1"),
            ]
            assert subprocess.run(ping, capture_output=True, check=False).returncode == 0
    _, found = status(knotless, names)
    assert found["emulator"]["deadlock"] is None
    done = knotless("down", "--name", names.name)
    assert (done.returncode, done.stdout) == (0, f"removed {names.name}\n")
    assert remains(names) == []
    done = knotless("down", "--name", names.name)
    assert done.returncode == 0
    assert "no fabric" in done.stdout


def test_a_second_up_is_one_line(knotless: Knotless, names: Names) -> None:
    assert up(knotless, names).returncode == 0
    done = up(knotless, names)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "already running" in done.stderr
    code, found = status(knotless, names)
    assert (code, found["phase"]) == (0, "ready")


@pytest.mark.parametrize(
    "part", ["owner", "emulator", "ovs-vswitchd", "ovsdb-server", "controller", "forwarder"]
)
def test_a_killed_part_is_told_cleaned_and_survived(
    part: str, knotless: Knotless, names: Names, remains: Remains
) -> None:
    assert up(knotless, names).returncode == 0
    running = state.read(names)
    assert running is not None
    victim: Process = running.owner if part == "owner" else running.processes[part]
    os.kill(victim.pid, signal.SIGKILL)
    assert processes.await_exit(victim, 10)
    code, found = status(knotless, names)
    assert code == 1
    assert any(f"{part} has died" in problem for problem in found["problems"])
    assert knotless("down", "--name", names.name).returncode == 0
    assert remains(names) == []
    assert up(knotless, names).returncode == 0


def test_up_over_a_dead_one_removes_it_and_says_so(knotless: Knotless, names: Names) -> None:
    assert up(knotless, names).returncode == 0
    running = state.read(names)
    assert running is not None
    os.kill(running.owner.pid, signal.SIGKILL)
    assert processes.await_exit(running.owner, 10)
    done = up(knotless, names)
    assert done.returncode == 0
    assert "removed what was left" in done.stderr


def test_up_that_fails_leaves_nothing(knotless: Knotless, names: Names, remains: Remains) -> None:
    done = up(knotless, names, "--engine", "no-such-engine")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no-such-engine" in done.stderr
    assert remains(names) == []


def test_a_taken_port_names_its_holder(knotless: Knotless, names: Names) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        done = knotless("up", "ring,4", "--name", names.name, "--port", str(port))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"port {port} is taken by" in done.stderr
    assert f"pid {os.getpid()}" in done.stderr


def test_root_is_required(knotless: Knotless, names: Names) -> None:
    for words in (("up", "ring,4"), ("lab", "ring,4"), ("down",), ("status",)):
        done = knotless(*words, "--name", names.name, user=65534, group=65534)
        assert done.returncode == 2, words
        assert "needs root" in done.stderr
        assert done.stderr.count("\n") == 1


def test_ctrl_c_at_up_leaves_nothing(names: Names, remains: Remains) -> None:
    words = [str(Path(sys.executable).with_name("knotless")), "up", "ring,4"]
    with subprocess.Popen([*words, "--name", names.name, *FREE_PORTS]) as child:
        deadline = time.monotonic() + 30
        while not names.directory.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
    assert remains(names) == []


def test_a_killed_up_takes_its_half_started_fabric_with_it(names: Names, remains: Remains) -> None:
    words = [str(Path(sys.executable).with_name("knotless")), "up", "ring,4"]
    with subprocess.Popen([*words, "--name", names.name, *FREE_PORTS]) as child:
        deadline = time.monotonic() + 30
        while (running := state.read(names)) is None or not running.running:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        child.kill()
    assert processes.await_exit(running.owner, 60)
    assert remains(names) == []


def test_two_ups_at_once_make_one_fabric(knotless: Knotless, names: Names) -> None:
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda _: up(knotless, names), range(3)))
    assert sorted(one.returncode for one in done) == [0, 2, 2]
    code, found = status(knotless, names)
    assert (code, found["phase"]) == (0, "ready")


def test_a_controller_of_the_users_own_is_used(
    knotless: Knotless, names: Names, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(f"fabric: ring,4\nrest: {{port: {free()}}}\n")
    port = str(free())
    done = knotless("up", "ring,4", "--name", names.name, "--controller", "remote", "--port", port)
    assert done.returncode == 2
    assert f"no controller listens on 127.0.0.1:{port}" in done.stderr
    command = [str(Path(sys.executable).with_name("ryu-manager")), "--ofp-listen-host"]
    with subprocess.Popen(
        [*command, "127.0.0.1", "--ofp-tcp-listen-port", port, "controller/app.py"],
        cwd=REPOSITORY,
        env={**os.environ, "KNOTLESS_CONFIG": str(tmp_path / "mine.yaml")},
        stderr=subprocess.DEVNULL,
    ) as ryu:
        try:
            deadline = time.monotonic() + 60
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", int(port))) == 0:
                        break
                assert time.monotonic() < deadline
                time.sleep(0.05)
            done = knotless(
                *("up", "ring,4", "--name", names.name, "--controller", "remote", "--port", port)
            )
            assert (done.returncode, done.stderr) == (0, "")
            _, found = status(knotless, names)
            assert "controller" not in found["parts"]
            assert knotless("down", "--name", names.name).returncode == 0
            assert ryu.poll() is None
        finally:
            ryu.terminate()


def free() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_lab_gives_the_prompt_and_leaves_nothing(
    lab: Callable[..., Lab], names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("mininet> ")
    one.type("pingall\n")
    assert "0% dropped" in one.expect("mininet> ")
    one.type("deadlock\n")
    assert "no deadlock" in one.expect("mininet> ")
    one.type("s1 ip -br link show s1-eth2\n")
    assert "UP" in one.expect("mininet> ")
    one.type("counters s1\n")
    assert "lost frames: 0" in one.expect("mininet> ")
    one.type("link s1 s2 down\n")
    one.expect("mininet> ")
    one.type("h1 ping -c 1 -W 1 10.0.2.1\n")
    assert one.expect(" packet loss").endswith("100%")
    one.expect("mininet> ")
    one.type("exit\n")
    assert one.wait() == 0
    assert remains(names) == []


def test_ctrl_c_while_it_starts_leaves_nothing(
    lab: Callable[..., Lab], names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("links")
    one.process.send_signal(signal.SIGINT)
    assert one.wait() == 130
    assert remains(names) == []


def test_a_closed_terminal_ends_the_lab(
    lab: Callable[..., Lab], names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("mininet> ")
    one.process.send_signal(signal.SIGHUP)
    assert one.wait() != 0
    assert remains(names) == []


def test_down_ends_a_lab_that_somebody_else_holds(
    lab: Callable[..., Lab], knotless: Knotless, names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("mininet> ")
    assert knotless("down", "--name", names.name).returncode == 0
    assert one.wait() != 0
    assert remains(names) == []
