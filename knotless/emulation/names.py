"""The names and paths that belong to a running fabric.

All of them follow from the fabric's name, so that everything can be removed after a crash.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from knotless.base.errors import EmulationError

RUN_DIRECTORY = Path("/run/knotless")
"""Directory of the state of running fabrics; mode 0700, owned by root."""
CLOCK_DIRECTORY = Path("/run/knotless-clocks")
"""Directory of the clock pages of running fabrics, which all users may read; mode 0755."""
CREDIT_DIRECTORY = RUN_DIRECTORY / ".nic"
"""Credit files of all fabrics, INODE-INTERFACE by the network namespace of the host."""
NETNS_DIRECTORY = Path("/run/netns")
DEFAULT_NAME = "default"
MARK = "KNOTLESS_FABRIC"
"""Environment variable of every process of a running fabric; its value is the fabric's name."""
SENDERS_MARK = "KNOTLESS_SENDS"
"""Environment variable of a process with sockets in several hosts; its value is the fabric's name.
Virtual time waits for it as for the programs of each host."""
SHELL_MARK = "knotless:"
"""Argument of the shell of each node, followed by the node's name, to be found in ``ps``."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")


@dataclass(frozen=True)
class Names:
    """The names of one running fabric; make one with :func:`names_of`."""

    name: str

    @property
    def directory(self) -> Path:
        """The state directory."""
        return RUN_DIRECTORY / self.name

    @property
    def state_file(self) -> Path:
        """The parts that run: see :mod:`knotless.emulation.state`."""
        return self.directory / "state.json"

    @property
    def fabric_file(self) -> Path:
        """The fabric as JSON, for the controller and for ``knotless check --live``."""
        return self.directory / "fabric.json"

    @property
    def controller_file(self) -> Path:
        """The controller's configuration."""
        return self.directory / "controller.yaml"

    @property
    def overrides_file(self) -> Path:
        """The file in which the controller keeps changes and drained parts."""
        return self.directory / "overrides.json"

    @property
    def token_file(self) -> Path:
        """The token with which programs may change the controller over HTTP."""
        return self.directory / "rest-token"

    @property
    def emulator_file(self) -> Path:
        """The link emulator's configuration."""
        return self.directory / "emulator.json"

    @property
    def emulator_socket(self) -> Path:
        """The link emulator's control socket."""
        return self.directory / "emulator.sock"

    @property
    def supervisor_socket(self) -> Path:
        """The socket on which the process that owns the fabric tells which parts run."""
        return self.directory / "supervisor.sock"

    @property
    def page_file(self) -> Path:
        """The address of the page that is a part of the fabric."""
        return self.directory / "page.url"

    @property
    def clock_page(self) -> Path:
        """The file in which the link emulator publishes virtual time for programs of all users."""
        return CLOCK_DIRECTORY / self.name

    @property
    def stopped_file(self) -> Path:
        """The switches that are stopped: see :mod:`knotless.emulation.switches`."""
        return self.directory / "stopped.json"

    @property
    def proof_verdict_file(self) -> Path:
        """The verdict on the proof of ``up --proven``: see :mod:`knotless.emulation.state`."""
        return self.directory / "proof.json"

    @property
    def tags_file(self) -> Path:
        """The VLANs in which hosts send, if they tag their frames: for ``check --live``."""
        return self.directory / "tags.json"

    @property
    def traffic_file(self) -> Path:
        """The traffic that runs: see :mod:`knotless.emulation.running_traffic`."""
        return self.directory / "traffic.json"

    @property
    def shells_file(self) -> Path:
        """The process of each host's shell, whose mount namespace the host's programs share."""
        return self.directory / "shells.json"

    @property
    def captures_directory(self) -> Path:
        """The directory to which the page captures."""
        return self.directory / "captures"

    @property
    def ovs_directory(self) -> Path:
        """Run directory of the private Open vSwitch (``OVS_RUNDIR``)."""
        return self.directory / "ovs"

    def controller_socket(self, number: int = 0) -> Path:
        """The socket to a controller; OVS allows it only in its run directory."""
        return self.ovs_directory / f"{role_of('controller', number)}.sock"

    @property
    def tls_directory(self) -> Path:
        """The certificates of switches and controller, if they speak TLS."""
        return self.directory / "tls"

    def switches_namespace(self, process: int = 0) -> str:
        """Network namespace of one of the fabric's Open vSwitch processes, its bridges and ports.

        Names of hosts begin with a letter or digit, so no host's namespace has the same name.
        """
        return f"kn-{self.name}" + (f".-{process + 1}" if process else "")

    @property
    def links_namespace(self) -> str:
        """Network namespace that holds only the link emulator's ends of all links."""
        return f"kn-{self.name}-links"

    def host_namespace(self, host: str) -> str:
        """Network namespace of a host. Fabric names have no dot, so the result is unique."""
        return f"kn-{self.name}.{host}"

    def log_file(self, role: str) -> Path:
        """The log of the process with this role."""
        return self.directory / f"{role}.log"


def role_of(part: str, number: int) -> str:
    """Return the role of one of several equal parts: ``controller``, ``controller-2``."""
    return part if number == 0 else f"{part}-{number + 1}"


def names_of(name: str) -> Names:
    """Return the names of the fabric called ``name``.

    Raises :class:`EmulationError` for a name that could be confused with another one, or that
    is too long for a socket's path (108 bytes).
    """
    if not _NAME.fullmatch(name) or name.endswith("-links"):
        raise EmulationError(
            f"--name {name!r}: a name is 1 to 24 of a-z, 0-9 and '-', "
            "must not start with '-' and must not end in '-links'"
        )
    return Names(name)


def running_names() -> list[str]:
    """Names of all fabrics that have a state directory, running or dead, sorted."""
    if not RUN_DIRECTORY.is_dir():
        return []
    return sorted(
        entry.name
        for entry in RUN_DIRECTORY.iterdir()
        if entry.is_dir() and _NAME.fullmatch(entry.name)
    )
