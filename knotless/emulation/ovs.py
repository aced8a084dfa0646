"""The private Open vSwitch of a running fabric: one process, or several that share the switches.

Its run directory, databases and network namespaces are its own, so the machine's Open vSwitch is
not affected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from knotless.emulation.certificates import Pair
from knotless.emulation.datapath import TYPES, Datapath
from knotless.emulation.ovs_process import OvsProcess
from knotless.emulation.runtime import Runtime
from knotless.topologies.fabric import Switch


class PrivateOvs:
    """The private Open vSwitch of one running fabric.

    ``process_of`` is the number of the process of each switch, from 0 on
    (:func:`knotless.emulation.wiring.divided`); ``names`` the name of the bridge of each switch
    (:func:`knotless.emulation.interface_names.interface_names`).
    """

    def __init__(
        self,
        runtime: Runtime,
        datapath: Datapath,
        process_of: Mapping[str, int],
        names: Mapping[str, str],
    ) -> None:
        self.datapath = datapath
        self._names = names
        self._process_of = process_of
        self._directory = runtime.names.ovs_directory
        self.environment = {
            "OVS_RUNDIR": str(self._directory),
            "OVS_DBDIR": str(self._directory),
            "OVS_LOGDIR": str(self._directory),
        }
        self._processes = [
            OvsProcess(runtime, number, self.environment)
            for number in range(max(process_of.values(), default=0) + 1)
        ]

    @property
    def pids(self) -> list[int]:
        """The process ids of the switch daemons."""
        return [one.pid for one in self._processes]

    @property
    def pid_files(self) -> list[str]:
        """The files with these ids, by the number of the process."""
        return [str(one.pid_file) for one in self._processes]

    @property
    def process_of(self) -> dict[str, int]:
        """Switch -> the number of its process."""
        return dict(self._process_of)

    @property
    def namespaces(self) -> list[str]:
        """Their network namespaces."""
        return [one.namespace for one in self._processes]

    def start(self) -> None:
        """Start all processes.

        Raises :class:`EmulationError` with the last log line of the one that fails.
        """
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for one in self._processes:
            one.start()

    def revive(self) -> set[str]:
        """Start the processes that have ended; return the switches that had lost theirs.

        They have their bridges and ports again, but no rules. Raises :class:`EmulationError`.
        """
        revived = {number for number, one in enumerate(self._processes) if one.revive()}
        return {switch for switch, number in self._process_of.items() if number in revived}

    def process(self, switch: str) -> OvsProcess:
        """Return the process that runs a switch."""
        return self._processes[self._process_of.get(switch, 0)]

    def bridge(self, switch: str) -> str:
        """Return the name of a switch's bridge."""
        return self._names[switch]

    def add_switches(
        self,
        switches: Sequence[Switch],
        ports: Mapping[str, Mapping[int, str]],
        controllers: Sequence[str],
    ) -> None:
        """Create a bridge for each switch, with its ports at their numbers.

        Each process makes its own in one transaction. ``controllers`` are Open vSwitch's names of
        its controllers, such as ``unix:PATH``. A switch without a controller keeps its rules and
        forwards nothing else (fail mode secure). Raises :class:`EmulationError` if a port could not
        be opened or did not get its number.
        """
        for process in self._processes:
            mine = [switch for switch in switches if self.process(switch.name) is process]
            if not mine:
                continue
            process.vsctl(*self._commands(mine, ports, controllers))
            process.check_ports({one.name: ports.get(one.name, {}) for one in mine})
            process.prioritise()

    def remove_switches(self, switches: Collection[str]) -> None:
        """Remove the bridges of switches, with their rules; raises :class:`EmulationError`."""
        for process in self._processes:
            mine = [switch for switch in switches if self.process(switch) is process]
            if mine:
                process.vsctl(*(["--if-exists", "del-br", self.bridge(switch)] for switch in mine))

    def _commands(
        self,
        switches: Sequence[Switch],
        ports: Mapping[str, Mapping[int, str]],
        controllers: Sequence[str],
    ) -> list[list[str]]:
        commands: list[list[str]] = []
        for number, switch in enumerate(switches):
            bridge = self.bridge(switch.name)
            commands += [
                ["--may-exist", "add-br", bridge],
                [
                    *("set", "bridge", bridge, f"datapath_type={TYPES[self.datapath]}"),
                    *("fail_mode=secure", "protocols=OpenFlow13"),
                    f"other_config:datapath-id={switch.dpid:016x}",
                    f"other_config:dp-desc={switch.name}",
                    "other_config:disable-in-band=true",
                ],
            ]
            ids = [f"@c{number}_{place}" for place in range(len(controllers))]
            commands += [
                [
                    *(f"--id={record}", "create", "controller"),
                    f'target="{controller}"',
                    "max_backoff=1000",
                    "inactivity_probe=15000",
                ]
                for record, controller in zip(ids, controllers, strict=True)
            ]
            if ids:
                commands.append(["set", "bridge", bridge, f"controller=[{','.join(ids)}]"])
            for port, interface in ports.get(switch.name, {}).items():
                commands += [
                    ["--may-exist", "add-port", bridge, interface],
                    ["set", "interface", interface, f"ofport_request={port}"],
                ]
        return commands

    def use_tls(self, own: Pair, authority: Path) -> None:
        """Let the switches show a certificate, and accept controllers of a CA only."""
        for process in self._processes:
            process.vsctl(["set-ssl", str(own.key), str(own.certificate), str(authority)])

    def connected(self) -> dict[str, bool]:
        """Tell for each switch whether its controller is connected."""
        there = {
            bridge: connected
            for process in self._processes
            for bridge, connected in process.connected().items()
        }
        names = {switch: self.bridge(switch) for switch in self._process_of}
        return {switch: there[bridge] for switch, bridge in names.items() if bridge in there}
