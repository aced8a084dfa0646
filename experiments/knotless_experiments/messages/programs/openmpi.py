"""Open MPI in the hosts of a running fabric: unmodified mpirun, one process in each host.

mpirun starts in the first host and reaches the others with an agent instead of ssh, which
enters a host's network namespace. So all communication of the processes, including Open
MPI's own connections, goes through the fabric. On one machine all would share a
host name, by which Open MPI distinguishes machines: so each has its own.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

from knotless.base.errors import KnotlessError
from knotless.base.package import WORKING_DIRECTORY
from knotless.emulation import namespaces, processes
from knotless.emulation.names import NETNS_DIRECTORY, Names
from knotless.emulation.priority import prioritise_program
from knotless.topologies.fabric import Host
from knotless_experiments.messages.programs.mpi import SLOW_DOWN

PACKAGES = "openmpi-bin python3-mpi4py"
START_LIMIT_S = 90.0
POLL_S = 0.02
WHEN_IDLE = ("chrt", "--idle", "0")
"""Prefix of a command that may run only on otherwise idle cores. Computing, and waiting by
spinning, must not keep switches and emulator waiting, as even a process of the lowest niceness does
for milliseconds."""
READY, GO, DONE = "ready", "go", "done"
"""Files in a job's folder: all processes are ready; start; all have ended."""

OPTIONS: Mapping[str, str] = {
    "plm_rsh_no_tree_spawn": "1",
    "pml": "ob1",
    "btl": "tcp,self",
    "btl_tcp_if_exclude": "127.0.0.0/8",
    "oob_tcp_if_exclude": "127.0.0.0/8",
    "mpi_yield_when_idle": "1",
    "orte_base_help_aggregate": "0",
}
"""Messages use TCP only: hosts have no shared memory and no other network."""


class OpenMpiError(KnotlessError):
    """An Open MPI that is not installed, or a program that it could not run."""


def require_openmpi() -> None:
    """Raise OpenMpiError unless mpirun and mpi4py are installed."""
    import importlib.util

    if shutil.which("mpirun") is None or importlib.util.find_spec("mpi4py") is None:
        raise OpenMpiError(f"Open MPI is not installed: sudo apt-get install {PACKAGES}")


def agent_script(names: Names, hosts: Sequence[Host]) -> str:
    """Return the program that mpirun calls as ``ssh ADDRESS COMMAND``."""
    cases = "\n".join(
        f"{shlex.quote(host.ip)}) name={shlex.quote(host.name)} "
        f"namespace={shlex.quote(str(NETNS_DIRECTORY / names.host_namespace(host.name)))};;"
        for host in hosts
    )
    return (
        f'#!/bin/sh\naddress=$1\nshift\ncase "$address" in\n{cases}\n*) exit 255;;\nesac\n'
        'exec nsenter --net="$namespace" -- unshare --uts -- '
        'sh -c \'hostname "$1" && exec sh -c "$2"\' sh "$name" "$*"\n'
    )


def mpirun_command(agent: Path, host_file: Path, count: int, program: Sequence[str]) -> list[str]:
    """Return the command that runs ``program`` on the ``count`` hosts of ``host_file``."""
    options = {**OPTIONS, "plm_rsh_agent": str(agent), "orte_tmpdir_base": str(agent.parent)}
    return [
        *("mpirun", "--allow-run-as-root", "--bind-to", "none", "--map-by", "node"),
        *("-np", str(count), "--hostfile", str(host_file)),
        *(word for name, value in options.items() for word in ("--mca", name, value)),
        *program,
    ]


class Lab(Protocol):
    """A running fabric."""

    @property
    def names(self) -> Names:
        """The names that belong to the fabric."""

    @property
    def slow_down(self) -> float:
        """By how much virtual time is slower than real time at least."""

    def program_environment(self) -> dict[str, str]:
        """Return the environment variables of programs on its hosts."""


@dataclass
class Job:
    """A program run by mpirun; its processes write files to ``folder``."""

    folder: Path
    process: subprocess.Popen[bytes]

    def await_file(
        self, name: str, limit_s: float, watch: Callable[[], None] | None = None
    ) -> None:
        """Wait until the processes have created a file; ``watch`` is called while waiting.

        Raises OpenMpiError, with the last line that mpirun printed, when it ends before,
        or when ``limit_s`` have passed.
        """
        deadline = time.monotonic() + limit_s
        while not (self.folder / name).exists():
            if self.process.poll() is not None and not (self.folder / name).exists():
                raise OpenMpiError(
                    f"mpirun ended with {self.process.returncode}: {self.last_line()}"
                )
            if time.monotonic() > deadline:
                raise OpenMpiError(f"mpirun: no {name!r} after {limit_s:g} s: {self.last_line()}")
            if watch is not None:
                watch()
            time.sleep(POLL_S)

    def last_line(self) -> str:
        """Return the last meaningful line that mpirun or a process printed."""
        text = (self.folder / "log").read_text(encoding="utf-8", errors="replace")
        lines = [" ".join(line.split()) for line in text.splitlines()]
        meaningful = [line for line in lines if any(c.isalnum() for c in line)]
        errors = [line for line in meaningful if "Error" in line]
        return (errors or meaningful or ["no output"])[-1][:300]

    def finish(self) -> None:
        """Wait until the processes have ended normally; raises OpenMpiError otherwise."""
        try:
            code = self.process.wait(START_LIMIT_S)
        except subprocess.TimeoutExpired:
            code = -1
        if code != 0:
            raise OpenMpiError(f"mpirun ended with {code}: {self.last_line()}")


@contextlib.contextmanager
def job(lab: Lab, hosts: Sequence[Host], module: str, words: Sequence[str]) -> Iterator[Job]:
    """Run a Python module as one MPI process per host during the block.

    The processes get the job's folder as their first argument. See :func:`synchronised`.
    """
    require_openmpi()
    names = lab.names
    with tempfile.TemporaryDirectory(prefix="knotless-mpi-") as directory:
        folder = Path(directory)
        agent, host_file = folder / "agent", folder / "hosts"
        agent.write_text(agent_script(names, hosts), encoding="utf-8")
        agent.chmod(0o700)
        host_file.write_text("".join(f"{host.ip} slots=1\n" for host in hosts), encoding="utf-8")
        program = [sys.executable, "-m", module, directory, *words]
        inside = mpirun_command(agent, host_file, len(hosts), program)
        first = names.host_namespace(hosts[0].name)
        named = ["unshare", "--uts", "--", "sh", "-c", 'hostname "$0" && exec "$@"', hosts[0].name]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*WHEN_IDLE, *namespaces.enter(first, [*named, *inside])],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=WORKING_DIRECTORY,
                env={
                    **os.environ,
                    **lab.program_environment(),
                    "OMP_NUM_THREADS": "1",
                    SLOW_DOWN: f"{lab.slow_down:g}",
                },
                start_new_session=True,
            )
        try:
            yield Job(folder, process)
        finally:
            _end(process, folder)


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Kill mpirun and the remaining processes of the job, found by its folder in their command."""
    if process.poll() is None and (identity := processes.identify(process.pid)):
        processes.end([identity])
    process.wait()
    left = (
        processes.identify(each.pid)
        for each in psutil.process_iter(["cmdline"])
        if any(str(folder) in word for word in each.info["cmdline"] or ())
    )
    processes.end(each for each in left if each is not None and each.pid != os.getpid())


def synchronised(folder: Path, communicator: Any, body: Callable[[], None]) -> None:
    """In every process: report that all are ready, wait for the start, report the end."""
    communicator.barrier()
    if communicator.rank == 0:
        (folder / READY).touch()
        while not (folder / GO).exists():
            time.sleep(POLL_S)
    prioritise_program()
    communicator.barrier()
    body()
    communicator.barrier()
    if communicator.rank == 0:
        (folder / DONE).touch()
