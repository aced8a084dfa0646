"""Running an MPI program on an emulated fabric, and the validity of the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from knotless.base.counting import counted
from knotless.topologies.fabric import Host
from knotless_experiments.messages.programs import openmpi

LOOK_EVERY_S = 0.25

Result = TypeVar("Result")


class Daemon(Protocol):
    """The requests to the link emulator; see docs/emulator-protocol.md."""

    def status(self) -> Mapping[str, Any]:
        """Return its ``status``."""

    def counters(self) -> Mapping[str, Any]:
        """Return its ``counters``."""

    def reset(self) -> object:
        """Empty all queues, zero all counters."""


class Lab(openmpi.Lab, Protocol):
    """A running fabric."""

    @property
    def daemon(self) -> Daemon:
        """The link emulator."""

    @property
    def slow_down(self) -> float:
        """Seconds that a second of virtual time takes at least."""


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """The outcome of a program, and the emulator's ``status`` at its end.

    ``result`` is None when it did not end: ``problems`` say why, as they say all else but
    the emulator's problems that makes the measurement count for nothing. ``cycle`` names the
    channels of a deadlock.
    """

    result: Result | None
    status: Mapping[str, Any]
    lost_frames: int
    cycle: list[str]
    problems: list[str]


class _Frozen(Exception):  # noqa: N818 - it is an expected outcome
    """The fabric is deadlocked."""


def _deadlock_watch(daemon: Daemon) -> Callable[[], None]:
    next_look = 0.0

    def watch() -> None:
        nonlocal next_look
        if time.monotonic() < next_look:
            return
        next_look = time.monotonic() + LOOK_EVERY_S
        if daemon.status()["deadlock"] is not None:
            raise _Frozen

    return watch


def run(
    lab: Lab,
    hosts: Sequence[Host],
    module: str,
    words: Sequence[str],
    read: Callable[[Path], Result],
    *,
    limit_s: float,
) -> Outcome[Result]:
    """Run a module as an MPI process in each host; ``read`` gets the folder with its results.

    Counters and stretch are those from the moment when all processes are set up to that
    when all have done their work, which may take ``limit_s`` times the slow-down. Raises
    OpenMpiError when the program cannot be started.
    """
    daemon = lab.daemon
    problems: list[str] = []
    result: Result | None = None
    cycle: list[str] = []
    with openmpi.job(lab, hosts, module, words) as job:
        job.await_file(openmpi.READY, openmpi.START_LIMIT_S * lab.slow_down)
        daemon.reset()
        (job.folder / openmpi.GO).touch()
        try:
            job.await_file(openmpi.DONE, limit_s * lab.slow_down, _deadlock_watch(daemon))
        except _Frozen:
            pass
        except openmpi.OpenMpiError as error:
            problems.append(str(error))
        status, lost = daemon.status(), int(daemon.counters()["lost_frames"])
        if status["deadlock"] is not None:
            cycle = list(status["deadlock"]["cycle"])
            problems.append(f"the fabric froze: {' '.join(cycle)}")
        if not problems:
            job.finish()
            result = read(job.folder)
    if lost:
        problems.append(f"{counted(lost, 'frames')} lost")
    return Outcome(result, status, lost, cycle, problems)
