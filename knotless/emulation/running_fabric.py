"""A running fabric, whoever has started it: what its prompt, scripts and other processes use."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from knotless.base.errors import EmulationError
from knotless.base.files import write_whole
from knotless.base.flow_control import FlowControl, refuse_bubbles
from knotless.base.printable import listed
from knotless.emulation import demonstration, processes, state
from knotless.emulation.cuts import Cables
from knotless.emulation.daemon import Daemon, Deadlock
from knotless.emulation.host_words import host_in
from knotless.emulation.names import NETNS_DIRECTORY, Names
from knotless.emulation.priority import Part, Priority, prioritise, start_program
from knotless.emulation.processes import Process
from knotless.emulation.runtime import machine_lock
from knotless.emulation.switches import Switches
from knotless.emulation.virtual_clock import program_environment
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files

CHANNEL_COLUMNS = frozenset(
    ("channel", "from", "to", "link", "rate_mbps", "up", "cut", "dropped_frames")
)


class RunningFabric:
    """The running fabric with these names.

    Parameters
    ----------
    names : Names
        The names of the fabric.

    Attributes
    ----------
    fabric : Fabric
        Its switches, hosts and links.
    links : {"emulated", "plain"}
        Whether its links pass through the link emulator.
    daemon : Daemon
        The client of the link emulator.

    Raises
    ------
    EmulationError
        No fabric with these names is running.

    """

    def __init__(self, names: Names) -> None:
        self.names = names
        settings = self.settings
        self.links: Literal["emulated", "plain"] = settings.get("links", "emulated")
        self.fabric: Fabric = files.read(names.fabric_file)
        self.daemon = Daemon(names.emulator_socket, self.fabric.switch_index)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options with which it was started; raises EmulationError if it has ended."""
        return state.require_running(self.names).settings

    @property
    def is_running(self) -> bool:
        """Whether it still runs."""
        current = state.read(self.names)
        return current is not None and current.running

    @cached_property
    def cables(self) -> Cables:
        """The cables, to cut and mend."""
        return Cables.of_running(self.names)

    @property
    def switches(self) -> Switches:
        """The switches, to stop and start."""
        return Switches(self.names)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that programs on hosts get in addition to the user's."""
        virtual = bool(self.settings.get("virtual_clock"))
        return program_environment(self.names, priority=self._priority, virtual_clock=virtual)

    @property
    def _priority(self) -> Priority:
        return Priority(self.settings.get("priority", Priority.NORMAL))

    def run(
        self, host: str, *argv: str, timeout_s: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on a host, and return its exit status and its output.

        Parameters
        ----------
        host : str
            The host.
        *argv : str
            The program and its arguments, in which names of hosts stand for their addresses.
        timeout_s : float, optional
            Real time after which it is killed. None: it may take as long as it wants.

        Returns
        -------
        subprocess.CompletedProcess
            ``returncode``, ``stdout`` and ``stderr``.

        Raises
        ------
        EmulationError
            There is no such host or program.
        subprocess.TimeoutExpired
            It took longer than ``timeout_s``.

        """
        begin = partial(
            subprocess.Popen,
            self.program_on(host, argv),
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        with start_program(Part.HOST, self._priority, begin) as program:
            try:
                shown, errors = program.communicate(timeout=timeout_s)
            except BaseException:
                program.kill()
                raise
        return subprocess.CompletedProcess(program.args, program.returncode, shown, errors)

    def prioritise(self) -> None:
        """Give this process the priority of the hosts of the fabric."""
        prioritise(Part.HOST, self._priority)

    def channels(self) -> list[dict[str, Any]]:
        """Return the counters of all virtual channels: a row each, for :func:`knotless.frame`.

        A row has the columns of a channel (``channel from to link rate_mbps up cut
        dropped_frames``) and of its priority (``priority tx_frames tx_bytes paused_us pauses
        queue_bytes ..``), and ``now_us``, the virtual time. Raises EmulationError on plain links.
        """
        counters = self._require_daemon().counters()
        rows = []
        for channel in counters["channels"]:
            own = {key: value for key, value in channel.items() if key in CHANNEL_COLUMNS}
            rows += [
                {"now_us": counters["now_us"], **own, **priority}
                for priority in channel["priorities"]
            ]
        return rows

    def cut(self, link: str, *, silent: bool = False) -> None:
        """Cut a link, such as ``s1-s2``; see :meth:`knotless.emulation.cuts.Cables.cut`."""
        self.cables.cut(self.cables.one(link), silent=silent)

    def mend(self, link: str) -> None:
        """Restore a link; raises EmulationError if there is none of this name."""
        self.cables.mend(self.cables.one(link))

    def link(self, link: str, *, sender: str | None = None, **changes: float) -> None:
        """Change a link, as in ``link("s1-s2", loss=0.01, delay_us=1000)``.

        See :meth:`knotless.emulation.cuts.Cables.set_line`, which raises EmulationError.
        """
        self.cables.set_line(self.cables.one(link), changes, sender=sender)

    def _require_daemon(self) -> Daemon:
        if self.links != "emulated":
            raise EmulationError("plain links have no emulator: start it with emulated ones")
        return self.daemon

    def deadlock(self) -> Deadlock | None:
        """Return the deadlock of now, or None; on plain links there is none."""
        return self.daemon.deadlock() if self.links == "emulated" else None

    def freeze(self) -> Deadlock:
        """Deadlock it on purpose; see :func:`knotless.emulation.demonstration.freeze`."""
        return demonstration.freeze(self.names)

    def release(self) -> bool:
        """End a deadlock; see :func:`knotless.emulation.demonstration.release`."""
        return demonstration.release(self.names)

    def set_flow_control(self, flow_control: FlowControl) -> None:
        """Change the flow control of all links; empties all queues, resets all counters.

        The rules stay, so the plan may deadlock under the new flow control. Raises
        :class:`EmulationError` if the emulator refuses, and PlanError for bubbles.
        """
        refuse_bubbles(flow_control, "a running fabric")
        with machine_lock():
            current = state.require_running(self.names)
            self.daemon.reset(flow_control=flow_control)
            current.settings["flow_control"] = str(flow_control)
            state.write(self.names, current)

    def shell_of(self, host: str) -> Process | None:
        """Return the host's first shell, or None if it has ended.

        Raises :class:`EmulationError` if there is no such host.
        """
        if host not in self.fabric.host_index:
            hosts = listed([one.name for one in self.fabric.hosts], 4)
            raise EmulationError(f"no host {host[:80]!r} in fabric {self.names.name!r}: {hosts}")
        try:
            shells = json.loads(self.names.shells_file.read_text(encoding="utf-8"))
            shell = Process(**shells[host])
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return shell if processes.alive(shell) else None

    def command_on(self, host: str, argv: Sequence[str]) -> list[str]:
        """Return the command that runs ``argv`` on a host: in its namespaces, where we are.

        It needs :attr:`environment`, and raises :class:`EmulationError` if there is no such host.
        """
        shell = self.shell_of(host)
        own = [] if shell is None else [f"--mount=/proc/{shell.pid}/ns/mnt", f"--wd={Path.cwd()}"]
        space = NETNS_DIRECTORY / self.names.host_namespace(host)
        return ["nsenter", f"--net={space}", *own, "--", *argv]

    def program_on(self, host: str, argv: Sequence[str]) -> list[str]:
        """Return the command that runs ``argv`` on a host, as at the prompt.

        The IP addresses of hosts stand in place of their names. Raises :class:`EmulationError` if
        there is no such host, or the program, which is the first word, is not installed.
        """
        self.shell_of(host)  # the host is the first word that a user writes
        return self.command_on(host, self._words_on(argv))

    def _words_on(self, argv: Sequence[str]) -> list[str]:
        if not argv or shutil.which(argv[0]) is None:
            missing = argv[0][:80] if argv else ""
            raise EmulationError(f"there is no program {missing!r}: give one, such as ping")
        addresses = {host.name: host.ip for host in self.fabric.hosts}
        hosts = [host_in(word, addresses) for word in argv[1:]]
        return [
            argv[0],
            *(
                addresses[host] if host else word
                for host, word in zip(hosts, argv[1:], strict=True)
            ),
        ]


def write_shells(names: Names, shells: Mapping[str, int]) -> None:
    """Write down the shell of each host by its pid, for programs that other processes start."""
    identities = {
        name: asdict(one) for name, pid in shells.items() if (one := processes.identify(pid))
    }
    write_whole(names.shells_file, json.dumps(identities), EmulationError)


def cycle_text(deadlock: Deadlock) -> str:
    """Return the cycle of a deadlock as text, which ends where it begins.

    Examples
    --------
    >>> cycle_text(Deadlock(0, ("s1:2/0", "s2:2/0"), ()))
    's1:2/0 -> s2:2/0 -> s1:2/0'

    """
    return " -> ".join([*deadlock.cycle, deadlock.cycle[0]])
