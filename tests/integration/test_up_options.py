"""Options of ``knotless up``: VLANs, ports and controllers of users' own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from knotless.emulation.names import Names
from knotless.routing.plan import make_plan
from knotless.routing.vlans.assignment import ASSIGNMENTS
from knotless.topologies import load
from tests.integration.test_up_down import status, up
from tests.support import REPOSITORY
from tests.support.all_pairs import missing_pairs
from tests.support.fabric_fixtures import Knotless
from tests.support.stderr_lines import our_lines
from tests.support.waiting import LIMIT_S, until


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
        assert missing_pairs(spaces, addresses, LIMIT_S) == set()
    finally:
        assert knotless("down", "--name", names.name).returncode == 0


def test_a_taken_port_names_its_holder(knotless: Knotless, names: Names) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        done = knotless("up", "ring,4", "--name", names.name, "--port", str(port))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"port {port} is taken by" in done.stderr
    assert f"pid {os.getpid()}" in done.stderr


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
            until("a controller listens", lambda: listens(int(port)))
            done = knotless(
                *("up", "ring,4", "--name", names.name, "--controller", "remote", "--port", port)
            )
            assert (done.returncode, our_lines(done.stderr)) == (0, [])
            _, report = status(knotless, names)
            assert "controller" not in report["parts"]
            assert knotless("down", "--name", names.name).returncode == 0
            assert ryu.poll() is None
        finally:
            ryu.terminate()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free() -> int:
    """Return a port on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
