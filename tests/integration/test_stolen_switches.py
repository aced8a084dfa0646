"""A program of another user that wants to be a switch of a running fabric."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from knotless.base.ports import free_port
from knotless.emulation import state
from knotless.emulation.network import EmulatedFabric
from tests.support.fabric_fixtures import Knotless, Start
from tests.support.waiting import until

NOBODY = 65534
IMPOSTOR = """
import json, select, socket, sys
served = tries = 0
addresses = json.loads(sys.argv[1])
while True:
    for address in addresses:
        is_path = isinstance(address, str)
        with socket.socket(socket.AF_UNIX if is_path else socket.AF_INET) as switch:
            switch.settimeout(2)
            tries += 1
            try:
                switch.connect(address if is_path else tuple(address))
                switch.sendall(bytes.fromhex("0400000800000001"))
                served += bool(switch.recv(8))
            except OSError:
                pass
    if select.select([sys.stdin], [], [], 0.02)[0]:
        break
print(json.dumps([tries, served]))
"""
"""Says hello wherever it can connect, until its input ends; ``served``: it was answered."""


@contextmanager
def impostor(fabric: EmulatedFabric) -> Iterator[list[int]]:
    """Have nobody try to be a switch meanwhile; then the result has the tries, and those served."""
    ports = sorted({6653, 6633, fabric.controller_ports[0].openflow or 6653})
    sockets = [str(fabric.names.controller_socket(number)) for number in range(2)]
    addresses = [*sockets, *(["127.0.0.1", port] for port in ports)]
    result: list[int] = []
    with subprocess.Popen(
        [sys.executable, "-S", "-c", IMPOSTOR, json.dumps(addresses)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
    ) as program:
        yield result
        output, _ = program.communicate()
        result += json.loads(output)


def listening_ports(fabric: EmulatedFabric) -> set[int]:
    running = state.read(fabric.names)
    assert running is not None
    pids = {process.pid for role, process in running.processes.items() if "controller" in role}
    return {
        connection.laddr.port
        for connection in psutil.net_connections("tcp")
        if connection.laddr and connection.pid in pids and connection.status == psutil.CONN_LISTEN
    }


@pytest.mark.parametrize(
    "controllers", [1, pytest.param(2, marks=pytest.mark.long)], ids=["alone", "two"]
)
def test_no_other_user_takes_the_place_of_a_switch(
    start: Start, knotless: Knotless, controllers: int
) -> None:
    """Not even while all switches connect again."""
    fabric = start("ring,4", controllers=controllers)
    assert listening_ports(fabric) == {ports.rest for ports in fabric.controller_ports}
    for number in range(controllers):
        path = fabric.names.controller_socket(number)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with impostor(fabric) as result:
        assert knotless("controller", "restart", "--name", fabric.name).returncode == 0
        assert listening_ports(fabric) == {ports.rest for ports in fabric.controller_ports}
    tries, served = result
    assert (tries > 0, served) == (True, 0)
    assert fabric.controller_status()["problems"] == []
    assert knotless("probe", "--name", fabric.name).returncode == 0


def test_tcp_opens_only_with_a_port(start: Start) -> None:
    """There anybody is served, as the manual says: so the program above can be."""
    port = free_port(0, "127.0.0.1")
    fabric = start("ring,4", openflow_port=port)
    assert listening_ports(fabric) == {port, fabric.controller_ports[0].rest}
    with impostor(fabric) as result:
        assert fabric.controller_status()["ready"]
    assert result[1] > 0
    assert fabric.controller_status()["ready"]


def test_how_a_part_has_ended_is_in_the_log_of_the_supervisor(
    start: Start, knotless: Knotless
) -> None:
    fabric = start("ring,4")
    running = state.read(fabric.names)
    assert running is not None
    pid = running.processes["controller"].pid
    psutil.Process(pid).kill()
    assert knotless("controller", "restart", "--name", fabric.name).returncode == 0
    log = fabric.names.log_file("supervisor")
    line = f"the controller (pid {pid}) has ended: ended by SIGKILL"
    until("it is written", lambda: log.exists() and line in log.read_text())
