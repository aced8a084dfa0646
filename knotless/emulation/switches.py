"""Switches of a running fabric that stop, start or restart, from any process.

A switch is a bridge of one of the fabric's Open vSwitch processes. When it stops, as in a power
failure, the bridge goes, with its rules; the frames in its buffers are lost (``reboot`` in the
emulator's counters); all its links lose their carrier. When it starts, the bridge has its ports and
controllers again, and no rules. Links that were cut stay cut.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import partial

from knotless.base.errors import EmulationError
from knotless.base.files import write_whole
from knotless.emulation import controller as control
from knotless.emulation import rest, state, wiring
from knotless.emulation.cuts import Cables
from knotless.emulation.daemon import Daemon
from knotless.emulation.interface_names import interface_names
from knotless.emulation.names import Names
from knotless.emulation.ovs import PrivateOvs
from knotless.emulation.runtime import Runtime, machine_lock
from knotless.emulation.undo import Step, taking_back
from knotless.topologies.fabric import Switch
from knotless.topologies.formats import files

_SHOWN = 4


class Switches:
    """The switches of the running fabric with these names.

    What fails after a part of it was done is taken back, except that frames in buffers are lost,
    and that a switch whose restart fails stays stopped. Raises :class:`EmulationError` if it is
    not running.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        current = state.require_running(names)
        settings = current.settings
        fabric = files.read(names.fabric_file)
        self._switches = {switch.name: switch for switch in fabric.switches}
        cables = wiring.divided(wiring.wire(fabric), settings.get("switch_processes", 1))
        self._ports = wiring.ports(cables)
        self._cables = Cables(names, cables, settings.get("links", "emulated"))
        emulated = settings.get("links", "emulated") == "emulated"
        self._daemon = Daemon(names.emulator_socket, {}) if emulated else None
        self._ovs = PrivateOvs(
            Runtime(names, current),
            settings.get("datapath", "user"),
            wiring.process_of_switches(cables),
            interface_names(fabric),
        )
        count = 0 if settings.get("controller") == "none" else len(rest.ports_of(settings))
        tls = bool(settings.get("tls"))
        self._targets = [control.target(names, number, tls=tls) for number in range(count)]

    def stop(self, *switches: str) -> None:
        """Stop switches; raises :class:`EmulationError` if there is none, or it is stopped."""
        with machine_lock():
            self._stop(self._named(switches, stopped=False))

    def start(self, *switches: str) -> None:
        """Start switches; raises :class:`EmulationError` if there is none, or it is not stopped."""
        with machine_lock():
            self._start(self._running(self._named(switches, stopped=True)))

    def restart(self, *switches: str) -> None:
        """Stop switches and start them again; one that is stopped is started.

        Raises :class:`EmulationError` if there is none, or its process has ended.
        """
        with machine_lock():
            self._restart(self._running(self._named(switches)))

    def restart_all(self) -> list[str]:
        """Restart all switches; return those whose process had ended, which is started again.

        It has the namespace, memory allocator and priority of the one before. Raises
        :class:`EmulationError`.
        """
        with machine_lock():
            revived = self._ovs.revive()
            stopped = state.stopped_switches(self._names)
            self._restart(
                switch for name, switch in self._switches.items() if name not in revived - stopped
            )
            return [name for name in self._switches if name in revived]

    def _restart(self, switches: Iterable[Switch]) -> None:
        chosen = list(switches)
        stopped = state.stopped_switches(self._names)
        self._stop([switch for switch in chosen if switch.name not in stopped])
        self._start(chosen)

    def _stop(self, switches: Collection[Switch]) -> None:
        stopping = {switch.name for switch in switches}
        with taking_back() as steps:
            # First the frames: what the emulator gets from the bridge that goes is of before.
            self._tell_emulator(stopping, steps, up=False)
            self._record(state.stopped_switches(self._names) | stopping, stopping, steps)
            self._cables.update_carriers(stopping)
            self._ovs.remove_switches(stopping)

    def _start(self, switches: Collection[Switch]) -> None:
        starting = {switch.name for switch in switches}
        with taking_back() as steps:
            steps.append(lambda: self._ovs.remove_switches(starting))
            self._ovs.add_switches(list(switches), self._ports, self._targets)
            self._record(state.stopped_switches(self._names) - starting, starting, steps)
            self._cables.update_carriers(starting)
            self._tell_emulator(starting, steps, up=True)

    def _tell_emulator(self, switches: Collection[str], undo: list[Step], *, up: bool) -> None:
        if self._daemon is not None:
            for name in switches:
                self._daemon.set_switch(name, up=up)
                undo.append(partial(self._daemon.set_switch, name, up=not up))

    def _named(self, names: Collection[str], stopped: bool | None = None) -> list[Switch]:
        """Return the switches of these names, which must be stopped or not."""
        now = state.stopped_switches(self._names)
        for name in names:
            if name not in self._switches:
                some = ", ".join(list(self._switches)[:_SHOWN])
                more = ", ..." if len(self._switches) > _SHOWN else ""
                raise EmulationError(f"no switch {name[:80]!r}; switches are {some}{more}")
            if stopped is not None and (name in now) != stopped:
                raise EmulationError(
                    f"switch {name} is not stopped" if stopped else f"switch {name} is stopped"
                )
        return [switch for name, switch in self._switches.items() if name in names]

    def _running(self, switches: list[Switch]) -> list[Switch]:
        """Return these switches, whose processes must run."""
        for switch in switches:
            try:
                self._ovs.process(switch.name).pid  # noqa: B018 - raises if it has ended
            except EmulationError as error:
                how = "'knotless switch restart --all' starts it again"
                raise EmulationError(f"switch {switch.name}: {error}; {how}") from error
        return switches

    def _record(self, stopped: Collection[str], changed: Collection[str], undo: list[Step]) -> None:
        """Write which switches are stopped; what takes that back also restores carriers."""
        before = state.stopped_switches(self._names)
        self._write(stopped)
        undo.append(lambda: self._cables.update_carriers(changed))
        undo.append(lambda: self._write(before))

    def _write(self, stopped: Collection[str]) -> None:
        write_whole(self._names.stopped_file, json.dumps(sorted(stopped)), EmulationError)
