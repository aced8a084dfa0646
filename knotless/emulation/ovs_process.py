"""One ovs-vswitchd with a database of its own, in a network namespace of its own.

The kernel has a datapath ``ovs-system`` for each namespace; it vanishes with the namespace. Each
ovs-vswitchd with the userspace datapath makes an interface ``ovs-netdev``, so two of them cannot
share a namespace.
"""

from __future__ import annotations

import ctypes.util
import json
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from knotless.base.errors import EmulationError
from knotless.emulation.names import role_of
from knotless.emulation.priority import prioritise
from knotless.emulation.runtime import Runtime

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
START_LIMIT_S = 15
CHANGE_LIMIT_S = 60

_ALLOCATOR = "libjemalloc.so.2"
_ALLOCATOR_SETTINGS = (
    "narenas:1,dirty_decay_ms:-1,muzzy_decay_ms:-1,"
    "tcache_nslots_small_min:512,tcache_nslots_small_max:2048,tcache_nslots_large:512"
)
"""On each wake-up Open vSwitch allocates 32 aligned buffers per port and frees most unused.

This is slow in glibc, and fast in jemalloc if its thread cache holds all of them.
"""


def _allocator() -> dict[str, str]:
    """Return the environment that makes Open vSwitch use jemalloc, if it is installed."""
    if ctypes.util.find_library("jemalloc") != _ALLOCATOR:
        return {}
    return {"LD_PRELOAD": _ALLOCATOR, "MALLOC_CONF": _ALLOCATOR_SETTINGS}


class OvsProcess:
    """One of the Open vSwitch processes of a running fabric, and its database.

    ``number`` counts from 0; ``environment`` names the directory that they share.
    """

    def __init__(self, runtime: Runtime, number: int, environment: Mapping[str, str]) -> None:
        self._runtime = runtime
        self._number = number
        self._environment = environment
        self._database, self._daemon = (
            role_of(part, number) for part in ("ovsdb-server", "ovs-vswitchd")
        )
        directory = runtime.names.ovs_directory
        self._file = directory / f"{role_of('conf', number)}.db"
        self._socket = directory / f"{role_of('db', number)}.sock"

    @property
    def namespace(self) -> str:
        """The network namespace of its bridges and their ports."""
        return self._runtime.names.switches_namespace(self._number)

    @property
    def pid(self) -> int:
        """The process id of the switch daemon."""
        return self._runtime.children[self._daemon].pid

    def start(self) -> None:
        """Start the database and the switch daemon.

        Raises :class:`EmulationError` with the last log line of the one that fails.
        """
        if not SCHEMA.is_file():
            raise EmulationError(
                f"Open vSwitch is not installed ({SCHEMA} is missing): "
                "apt-get install openvswitch-switch"
            )
        self._run(["ovsdb-tool", "create", str(self._file), str(SCHEMA)])
        self._runtime.spawn(
            self._database,
            [
                *("ovsdb-server", f"--remote=punix:{self._socket}"),
                *(f"--pidfile={self._database}.pid", str(self._file)),
            ],
            environment=self._environment,
        )
        self._await_database()
        # One thread each, to leave the cores to packet processing.
        threads = [f"other_config:n-{kind}-threads=1" for kind in ("handler", "revalidator")]
        self.vsctl(["init"], ["set", "Open_vSwitch", ".", *threads], options=["--no-wait"])
        self._runtime.spawn(
            self._daemon,
            ["ovs-vswitchd", f"unix:{self._socket}", f"--pidfile={self._daemon}.pid"],
            namespace=self.namespace,
            environment={**self._environment, **_allocator()},
        )

    def prioritise(self, priority: int) -> None:
        """Give the switch daemon's threads a real-time priority; 0: none."""
        if priority:
            prioritise(self.pid, priority)

    def vsctl(self, *commands: Sequence[str], options: Sequence[str] = ()) -> str:
        """Run ``ovs-vsctl`` commands as one transaction and return the output.

        It waits until the switch daemon has followed, unless that has ended.
        """
        daemon = self._runtime.children.get(self._daemon)
        if daemon is not None and daemon.poll() is not None:
            options = ("--no-wait", *options)
        argv = ["ovs-vsctl", f"--db=unix:{self._socket}", f"--timeout={CHANGE_LIMIT_S}", *options]
        for command in commands:
            argv += ["--", *command]
        return self._run(argv)

    def connected(self) -> dict[str, bool]:
        """Tell for each switch whether its controller is connected."""
        rows = self._rows("Bridge", "name,controller")
        links = {str(row[0]): row[1] for row in self._rows("Controller", "_uuid,is_connected")}
        return {name: links.get(str(uuid)) is True for name, uuid in rows}

    def check_ports(self, ports: Mapping[str, Mapping[int, str]]) -> None:
        """Raise :class:`EmulationError` for a port that is not open or has another number."""
        numbers = {
            name: (number, error)
            for name, number, error in self._rows("Interface", "name,ofport,error")
        }
        for owner, by_port in ports.items():
            for port, interface in by_port.items():
                number, error = numbers.get(interface, (None, "it is missing"))
                if number != port:
                    why = error if isinstance(error, str) else f"it got number {number}"
                    raise EmulationError(f"{owner}: port {port} ({interface}) not opened: {why}")

    def _rows(self, table: str, columns: str) -> list[list[Any]]:
        text = self.vsctl([f"--columns={columns}", "list", table], options=["--format=json"])
        rows: list[list[Any]] = json.loads(text)["data"]
        return rows

    def _run(self, argv: Sequence[str]) -> str:
        try:
            done = subprocess.run(
                argv, env=self._full_environment(), capture_output=True, text=True, check=False
            )
        except FileNotFoundError as error:
            raise EmulationError(
                f"Open vSwitch is not installed ({error.filename} not found): "
                "apt-get install openvswitch-switch"
            ) from error
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            for role in (self._database, self._daemon):
                if role in self._runtime.state.processes and not self._runs(role):
                    lines.append(f"{role} has died: {self._runtime.last_words(role)}")
            raise EmulationError(f"{argv[0]}: {lines[-1]}")
        return done.stdout

    def _runs(self, role: str) -> bool:
        child = self._runtime.children.get(role)
        return child is not None and child.poll() is None

    def _full_environment(self) -> dict[str, str]:
        return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", **self._environment}

    def _await_database(self) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(self._socket))
                except OSError:
                    pass
                else:
                    return
            if not self._runs(self._database) or time.monotonic() > deadline:
                raise EmulationError(
                    "Open vSwitch's ovsdb-server does not start: "
                    + self._runtime.last_words(self._database)
                )
            time.sleep(0.01)
