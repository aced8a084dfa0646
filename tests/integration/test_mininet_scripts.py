"""Scripts that users of Mininet write, with one import changed, and ``knotless mn``."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from knotless.emulation.names import Names
from tests.support import REPOSITORY
from tests.support.controller_programs import RYU_MANAGER
from tests.support.fabric_fixtures import Knotless, Remains
from tests.support.stderr_lines import our_lines
from tests.support.waiting import HANG_S, until

SCRIPTS = REPOSITORY / "tests" / "data" / "mininet"
IMPORT = "from mininet.net import Mininet"

Script = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def script(names: Names, tmp_path: Path) -> Script:
    """Return a function that runs a script in which only the import of Mininet is ours.

    The import also gives this test's fabric its own name.
    """

    def run(name: str, *words: str, lines: str = "") -> subprocess.CompletedProcess[str]:
        text = (SCRIPTS / name).read_text()
        assert text.count(IMPORT) == 1
        ours = (
            "from functools import partial; from knotless.mininet import Knotless;"
            f" Mininet = partial(Knotless, name={names.name!r})"
        )
        (tmp_path / name).write_text(text.replace(IMPORT, ours))
        return subprocess.run(
            [sys.executable, str(tmp_path / name), *words],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            input=lines,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
        )

    return run


def test_a_topology_of_ones_own(script: Script, names: Names, remains: Remains) -> None:
    done = script("own_topo.py")
    assert done.returncode == 0, done.stderr
    assert "h1 h1-eth0:s1-eth1" in done.stdout + done.stderr
    assert "lost 0.0" in done.stdout
    assert "3 packets transmitted, 3 received" in done.stdout
    # Both ways: twice the delays of two links of hosts and one between switches.
    times = done.stdout.partition("rtt min/avg/max/mdev = ")[2]
    assert float(times.partition("/")[0]) >= 2 * (1 + 2 + 1), done.stdout
    assert remains(names) == []


def test_a_tree_with_iperf_and_a_link_down(script: Script, names: Names, remains: Remains) -> None:
    done = script("tree.py")
    assert done.returncode == 0, done.stderr
    assert "rates 2" in done.stdout
    assert "Mbits/sec" in done.stderr
    # Two hosts on either side: 8 of 12 pairs are parted.
    assert f"lost {100 * 8 / 12}" in done.stdout
    assert "lost 0.0" in done.stdout
    assert "mac 00:00:00:00:00:01 s1-eth1<->s2-eth3" in done.stdout
    assert remains(names) == []


def test_a_controller_of_ones_own(script: Script, names: Names, remains: Remains) -> None:
    address = ("127.0.0.2", free_port("127.0.0.2"))
    with subprocess.Popen(
        [
            *(str(RYU_MANAGER), "--ofp-listen-host", address[0]),
            *("--ofp-tcp-listen-port", str(address[1]), "ryu.app.simple_switch_13"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as controller:
        try:
            until("the controller to listen", lambda: listens(address))
            lines = "pingall\niperf h1 h2\nlink s1 s9 down\nh1 nonsense\nexit\n"
            done = script("remote.py", address[0], str(address[1]), lines=lines)
        finally:
            controller.terminate()
    assert done.returncode == 0, done.stderr
    text = done.stdout + done.stderr
    assert "cable s1-eth2 s2" in text
    assert "0% dropped (2/2 received)" in text
    assert "Mbits/sec" in text
    assert "*** Error: no link 's1-s9'" in text
    assert "nonsense: command not found" in text
    assert remains(names) == []


def free_port(address: str) -> int:
    with socket.create_server((address, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def listens(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address) == 0


@pytest.mark.smoke
def test_mn_with_a_file_of_ones_own_freezes_a_ring(
    knotless: Knotless, names: Names, remains: Remains
) -> None:
    words = ["mn", "--custom", str(SCRIPTS / "ring.py"), "--topo", "myring,4", "--mac", "--arp"]
    routes = ["--link", "pause", "--engine", "minimal", "--select", "low-port"]
    refused = knotless(*words, *routes, "--test", "pingall", "--name", names.name)
    assert refused.returncode == 2
    assert len(our_lines(refused.stderr)) == 1
    assert "CAN DEADLOCK under PAUSE" in refused.stderr
    lines = "counters s9\nfreeze\npingall\nwhy\nrelease\npingall\nexit\n"
    routes.append("--allow-deadlock")
    done = knotless(*words, *routes, "--name", names.name, input=lines)
    assert done.returncode == 0, done.stderr
    text = done.stdout + done.stderr
    assert "no switch, host or channel 's9'" in text
    assert "cycle of 4 channels: s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0 -> s1:2/0" in text
    assert "4 channels wait for each other" in text
    # Mininet prints to standard error.
    frozen, _, released = done.stderr.partition("*** deadlock: s1:2/0 -> ")
    assert released.startswith("s2:2/0 -> s3:2/0 -> s4:2/0 -> s1:2/0; 'why' explains it")
    assert "0% dropped (12/12 received)" not in frozen
    assert "0% dropped (12/12 received)" in released
    assert remains(names) == []
