"""A private Open vSwitch in its own network namespace.

Its run directory and database are its own too, so the machine's Open vSwitch is not affected. The
kernel has a datapath ``ovs-system`` for each namespace; it vanishes with the namespace.
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

from common.errors import EmulationError
from emulation.certificates import Pair
from emulation.datapath import TYPES, Datapath
from emulation.priority import PRIORITY, prioritise
from emulation.runtime import Runtime
from topologies.fabric import Switch

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


class PrivateOvs:
    """The private Open vSwitch of one running fabric.

    ``priority`` is the real-time priority of the switch daemon; 0: none.
    """

    def __init__(self, runtime: Runtime, datapath: Datapath, priority: int = PRIORITY) -> None:
        self._runtime = runtime
        self.datapath = datapath
        self._priority = priority
        self._directory = runtime.names.ovs_directory
        self._socket = self._directory / "db.sock"
        self.environment = {
            "OVS_RUNDIR": str(self._directory),
            "OVS_DBDIR": str(self._directory),
            "OVS_LOGDIR": str(self._directory),
        }

    @property
    def pid(self) -> int:
        """The process id of the switch daemon."""
        return self._runtime.children["ovs-vswitchd"].pid

    def start(self) -> None:
        """Start the database and the switch daemon.

        Raises :class:`EmulationError` with the last log line of the one that fails.
        """
        self._directory.mkdir(mode=0o700)
        database = self._directory / "conf.db"
        if not SCHEMA.is_file():
            raise EmulationError(
                f"Open vSwitch is not installed ({SCHEMA} is missing): "
                "apt-get install openvswitch-switch"
            )
        self._run(["ovsdb-tool", "create", str(database), str(SCHEMA)])
        self._runtime.spawn(
            "ovsdb-server",
            ["ovsdb-server", f"--remote=punix:{self._socket}", "--pidfile", str(database)],
            environment=self.environment,
        )
        self._await_database()
        # One thread each, to leave the cores to packet processing.
        threads = [f"other_config:n-{kind}-threads=1" for kind in ("handler", "revalidator")]
        self.vsctl(["init"], ["set", "Open_vSwitch", ".", *threads], options=["--no-wait"])
        self._runtime.spawn(
            "ovs-vswitchd",
            ["ovs-vswitchd", f"unix:{self._socket}", "--pidfile"],
            namespace=self._runtime.names.switches_namespace,
            environment={**self.environment, **_allocator()},
        )

    def add_switches(
        self,
        switches: Sequence[Switch],
        ports: Mapping[str, Mapping[int, str]],
        controllers: Sequence[str],
    ) -> None:
        """Create a bridge for each switch, with its ports at their numbers, in one transaction.

        ``controllers`` are Open vSwitch's names of its controllers, such as ``unix:PATH``.
        A switch without a controller keeps its rules and forwards nothing else (fail mode
        secure). Raises :class:`EmulationError` if a port could not be opened or did not get its
        number.
        """
        commands: list[list[str]] = []
        for number, switch in enumerate(switches):
            commands += [
                ["add-br", switch.name],
                [
                    *("set", "bridge", switch.name, f"datapath_type={TYPES[self.datapath]}"),
                    *("fail_mode=secure", "protocols=OpenFlow13"),
                    f"other_config:datapath-id={switch.dpid:016x}",
                    f"other_config:dp-desc={switch.name}",
                    "other_config:disable-in-band=true",
                ],
            ]
            ids = [f"@c{number}_{place}" for place in range(len(controllers))]
            commands += [
                [
                    *(f"--id={of}", "create", "controller"),
                    f'target="{controller}"',
                    "max_backoff=1000",
                    "inactivity_probe=15000",
                ]
                for of, controller in zip(ids, controllers, strict=True)
            ]
            if ids:
                commands.append(["set", "bridge", switch.name, f"controller=[{','.join(ids)}]"])
            for port, interface in ports.get(switch.name, {}).items():
                commands += [
                    ["add-port", switch.name, interface],
                    ["set", "interface", interface, f"ofport_request={port}"],
                ]
        if commands:
            self.vsctl(*commands)
        self._check_ports(ports)
        if self._priority:
            prioritise(self.pid, self._priority)

    def use_tls(self, own: Pair, authority: Path) -> None:
        """Let the switches show a certificate, and accept controllers of a CA only."""
        self.vsctl(["set-ssl", str(own.key), str(own.certificate), str(authority)])

    def vsctl(self, *commands: Sequence[str], options: Sequence[str] = ()) -> str:
        """Run ``ovs-vsctl`` commands as one transaction and return the output."""
        argv = ["ovs-vsctl", f"--timeout={CHANGE_LIMIT_S}", *options]
        for command in commands:
            argv += ["--", *command]
        return self._run(argv)

    def connected(self) -> dict[str, bool]:
        """Tell for each switch whether its controller is connected."""
        rows = self._rows("Bridge", "name,controller")
        links = {str(row[0]): row[1] for row in self._rows("Controller", "_uuid,is_connected")}
        return {name: links.get(str(uuid)) is True for name, uuid in rows}

    def _check_ports(self, ports: Mapping[str, Mapping[int, str]]) -> None:
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
            for role in ("ovsdb-server", "ovs-vswitchd"):
                if role in self._runtime.state.processes and not self._runs(role):
                    lines.append(f"{role} has died: {self._runtime.last_words(role)}")
            raise EmulationError(f"{argv[0]}: {lines[-1]}")
        return done.stdout

    def _runs(self, role: str) -> bool:
        child = self._runtime.children.get(role)
        return child is not None and child.poll() is None

    def _full_environment(self) -> dict[str, str]:
        return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", **self.environment}

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
            if not self._runs("ovsdb-server") or time.monotonic() > deadline:
                raise EmulationError(
                    "Open vSwitch's ovsdb-server does not start: "
                    + self._runtime.last_words("ovsdb-server")
                )
            time.sleep(0.01)
