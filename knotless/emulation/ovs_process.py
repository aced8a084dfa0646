"""One ovs-vswitchd with a database of its own, in a network namespace of its own.

The kernel has a datapath ``ovs-system`` for each namespace; it vanishes with the namespace. Each
ovs-vswitchd with the userspace datapath makes an interface ``ovs-netdev``, so two of them cannot
share a namespace.
"""

from __future__ import annotations

import ctypes.util
import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from knotless.base.errors import EmulationError
from knotless.emulation import processes
from knotless.emulation.names import Names, role_of
from knotless.emulation.patience import Patience
from knotless.emulation.priority import Part, Priority, has_revalidator, prioritise
from knotless.emulation.runtime import Runtime

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
START_LIMIT_S = 60
CHANGE_LIMIT_S = 60

_ALLOCATOR = "libjemalloc.so.2"
_ALLOCATOR_SETTINGS = (
    "narenas:1,tcache_nslots_small_min:512,tcache_nslots_small_max:2048,tcache_nslots_large:512"
)
"""On each wake-up Open vSwitch allocates 32 aligned buffers per port and frees most unused.

This is slow in glibc, and fast in jemalloc if its thread cache holds all of them.
"""


def _allocator() -> dict[str, str]:
    """Return the environment that makes Open vSwitch use jemalloc, if it is installed."""
    if ctypes.util.find_library("jemalloc") != _ALLOCATOR:
        return {}
    return {"LD_PRELOAD": _ALLOCATOR, "MALLOC_CONF": _ALLOCATOR_SETTINGS}


def by_hand(names: Names, role: str) -> processes.Process | None:
    """Return the process that a user has started in place of one of ours that has ended.

    It has the arguments of ours, so that it wrote the same pid file.
    """
    try:
        pid = int((names.ovs_directory / f"{role}.pid").read_text(encoding="ascii"))
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return None
    return processes.identify(pid) if name and role.startswith(name) else None


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
        """The process id of the switch daemon; raises :class:`EmulationError` if it has ended."""
        process = self._running(self._daemon)
        if process is None:
            raise EmulationError(self._died(self._daemon))
        return process.pid

    @property
    def pid_file(self) -> Path:
        """The file with the process id of the switch daemon."""
        return self._runtime.names.ovs_directory / f"{self._daemon}.pid"

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
        self._start_database()
        # One thread each, to leave the cores to packet processing.
        threads = [f"other_config:n-{kind}-threads=1" for kind in ("handler", "revalidator")]
        self.vsctl(["init"], ["set", "Open_vSwitch", ".", *threads], options=["--no-wait"])
        self._start_daemon()
        self._await(self._daemon, self.pid_file.exists)

    def revive(self) -> bool:
        """Start what has ended of database and switch daemon; return whether the latter had.

        The daemon then has its bridges again, which it reads from the database, and the priority of
        the fabric. Raises :class:`EmulationError`.
        """
        if self._running(self._database) is None:
            self._start_database()
        if self._running(self._daemon) is not None:
            return False
        self._start_daemon()
        self.vsctl(["init"])
        if self._rows("Bridge", "name"):
            self.prioritise()
        return True

    def _start_database(self) -> None:
        self._runtime.spawn(
            self._database,
            [
                *("ovsdb-server", f"--remote=punix:{self._socket}"),
                *(f"--pidfile={self._database}.pid", str(self._file)),
            ],
            environment=self._environment,
        )
        self._await(self._database, self._is_listening)

    def _start_daemon(self) -> None:
        self._runtime.spawn(
            self._daemon,
            ["ovs-vswitchd", f"unix:{self._socket}", f"--pidfile={self._daemon}.pid"],
            namespace=self.namespace,
            environment={**self._environment, **_allocator()},
        )

    def prioritise(self) -> None:
        """Give the threads of a switch daemon that has a bridge the priority of the fabric."""
        if self._runtime.priority == Priority.REALTIME:
            # It starts them after it has opened the ports, and revalidators have their own.
            self._await(self._daemon, lambda: has_revalidator(self.pid))
            prioritise(Part.SWITCHES, Priority.REALTIME, self.pid)

    def vsctl(self, *commands: Sequence[str], options: Sequence[str] = ()) -> str:
        """Run ``ovs-vsctl`` commands as one transaction and return the output.

        It waits until the switch daemon has followed, unless that has ended.
        """
        has_started = self._daemon in self._runtime.state.processes
        if has_started and self._running(self._daemon) is None:
            options = ("--no-wait", *options)
        argv = ["ovs-vsctl", f"--db=unix:{self._socket}", f"--timeout={CHANGE_LIMIT_S}", *options]
        for command in commands:
            argv += ["--", *command]
        return self._run(argv)

    def connected(self) -> dict[str, bool]:
        """Tell for each bridge whether all its controllers are connected."""
        rows = self._rows("Bridge", "name,controller")
        up = {row[0][1] for row in self._rows("Controller", "_uuid,is_connected") if row[1] is True}
        return {name: bool(ids := references(column)) and ids <= up for name, column in rows}

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
        if done.returncode == -signal.SIGALRM:  # by --timeout
            parts = f"{self._database} and {self._daemon}"
            raise EmulationError(f"{argv[0]}: {parts} do not answer within {CHANGE_LIMIT_S} s")
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            for role in (self._database, self._daemon):
                if role in self._runtime.state.processes and self._running(role) is None:
                    lines.append(self._died(role))
            raise EmulationError(f"{argv[0]}: {lines[-1]}")
        return done.stdout

    def _running(self, role: str) -> processes.Process | None:
        recorded = self._runtime.state.processes.get(role)
        if recorded is not None and processes.alive(recorded):
            return recorded
        return by_hand(self._runtime.names, role)

    def _died(self, role: str) -> str:
        return f"{role} has died: {self._runtime.last_words(role)}"

    def _full_environment(self) -> dict[str, str]:
        return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", **self._environment}

    def _is_listening(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self._socket))
            except OSError:
                return False
            return True

    def _await(self, role: str, is_ready: Callable[[], bool]) -> None:
        """Wait until a process that was just started is ready; raises :class:`EmulationError`."""
        process = self._running(role)
        patience = Patience.with_processes(START_LIMIT_S, process.pid if process else None)
        while not is_ready():
            if self._running(role) is None or patience.is_over():
                raise EmulationError(
                    f"Open vSwitch's {role} does not start: {self._runtime.last_words(role)}"
                )
            time.sleep(0.01)


def references(column: Any) -> set[str]:
    """Return the UUIDs of a column of OVSDB: one is ``["uuid", ID]``, others ``["set", [..]]``.

    RFC 7047, 5.1.
    """
    kind, value = column
    return {str(value)} if kind == "uuid" else {str(uuid) for _, uuid in value}
