"""The claim to a name, the parts that run under it, and the removal of all of them.

Everything that a running fabric owns is written down before or as it comes to be, and one
function, :func:`sweep`, removes it all: at an orderly end, after a failed start, and when
somebody else finds what a crash has left.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from common.errors import EmulationError
from emulation import namespaces, processes, state
from emulation.names import MARK, RUN_DIRECTORY, Names
from emulation.state import State

OWNER_PATIENCE_S = 20.0
"""How long an owner that has been asked to end may take for it (64 hosts: about 6 s)."""

READY_LIMIT_S = 20.0
"""How long a part may take until it says that it is ready."""
_LINE_LIMIT_BYTES = 64


def require_root() -> None:
    """Raise :class:`EmulationError` unless we are root."""
    if os.geteuid() != 0:
        raise EmulationError("running a fabric needs root: put sudo before the command")


@contextmanager
def _lock() -> Iterator[None]:
    """Hold off every other start and removal on this machine."""
    RUN_DIRECTORY.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (RUN_DIRECTORY / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Runtime:
    """A fabric's name, claimed by this process, and the parts started under it."""

    def __init__(self, names: Names, current: State) -> None:
        self.names = names
        self.state = current
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def save(self) -> None:
        """Write the state down."""
        state.write(self.names, self.state)

    def spawn(
        self,
        role: str,
        argv: Sequence[str],
        *,
        namespace: str | None = None,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        stdout: int | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a part in the background, marked and written down; it logs to ``role.log``.

        It has a session of its own, so that a Ctrl-C at the terminal is not for it, and
        none of our descriptors. Raises :class:`EmulationError` where it is not installed.
        """
        if namespace is not None:
            argv = namespaces.enter(namespace, argv)
        with self.names.log_file(role).open("ab") as log:
            try:
                child = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log if stdout is None else stdout,
                    stderr=log,
                    cwd=directory,
                    env={**os.environ, **(environment or {}), MARK: self.names.name},
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                raise EmulationError(f"{role}: {error.filename} not found") from error
        self.children[role] = child
        if identity := processes.identify(child.pid):
            self.state.processes[role] = identity
            self.save()
        return child

    def await_ready(self, role: str, child: subprocess.Popen[bytes]) -> None:
        """Wait for the line ``ready`` of a part that was started with its output in a pipe.

        Raises :class:`EmulationError` with the last line it logged if it ends first, or
        says nothing for :data:`READY_LIMIT_S`.
        """
        if child.stdout is None:
            raise ValueError(f"{role} was not started with a pipe")
        line = b""
        deadline = time.monotonic() + READY_LIMIT_S
        with child.stdout as pipe:
            # The whole line: one who still writes at it when we close is killed by that.
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            while b"\n" not in line and len(line) < _LINE_LIMIT_BYTES:
                spoke = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
                piece = os.read(pipe.fileno(), _LINE_LIMIT_BYTES) if spoke else b""
                if not piece:
                    break
                line += piece
        if line != b"ready\n":
            processes.end([self.state.processes[role]] if role in self.state.processes else [])
            raise EmulationError(f"the {role} does not start: {self.last_words(role)}")

    def last_words(self, role: str) -> str:
        """The last line that a part has logged, for an error of one line."""
        try:
            text = self.names.log_file(role).read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:300] if lines else "it said nothing"

    def stop(self, *roles: str) -> None:
        """End the parts that play ``roles``, in this order, and forget them."""
        for role in roles:
            if identity := self.state.processes.pop(role, None):
                processes.end([identity])
            if child := self.children.pop(role, None):
                child.wait()
            self.save()

    def release(self) -> None:
        """End every part and remove all that was made."""
        with _lock():
            sweep(self.names, self.state)
        for child in self.children.values():
            child.wait()


def claim(names: Names, fabric: str) -> tuple[Runtime, bool]:
    """Take a name for a fabric that this process is about to start.

    Returns the runtime, and whether a dead fabric of that name had to be removed first.
    Raises :class:`EmulationError` where one is running, where we are not root, or where
    a namespace of that name exists that is not ours.
    """
    require_root()
    with _lock():
        former = state.read(names)
        if former is not None and former.running:
            raise EmulationError(
                f"fabric {names.name!r} ({former.fabric}) is already running: "
                f"stop it with 'knotless down --name {names.name}' or choose another --name"
            )
        if former is not None:
            sweep(names, former)
        foreign = state.existing_namespaces(names)
        if foreign:
            raise EmulationError(
                f"network namespace {foreign[0]} exists and was not made by knotless: "
                "remove it with 'ip netns del' or choose another --name"
            )
        names.directory.mkdir(mode=0o700)
        runtime = Runtime(names, State(names.name, fabric, processes.ourselves()))
        runtime.save()
    return runtime, former is not None


def remove(names: Names) -> bool:
    """End a fabric, whoever owns it and whatever is left of it; False where there is none."""
    require_root()
    found = state.read(names)
    if found is None:
        return False
    if found.running:
        if found.owner.pid in processes.family():
            raise EmulationError(
                f"fabric {names.name!r} is held by the very process that this was asked from: "
                "leave its prompt instead"
            )
        processes.end([found.owner], patience_s=OWNER_PATIENCE_S)
    with _lock():
        left = state.read(names)
        # Its owner may have removed everything, and somebody else begun anew.
        if left is not None and not left.running:
            sweep(names, left)
    return True


def sweep(names: Names, known: State) -> None:
    """Remove all that is known of a fabric but its owner, and at last its directory."""
    spaces = sorted({*known.namespaces})
    hosts = [space for space in spaces if "." in space]
    fixed = [space for space in spaces if "." not in space]
    family = processes.family()
    victims = {
        *processes.marked(names.name),
        *processes.living_in(spaces),
        *known.processes.values(),
    }
    processes.end(victim for victim in victims if victim.pid not in family)
    for space in fixed:
        namespaces.remove_pairs(space)
    namespaces.remove([*hosts, *fixed])
    shutil.rmtree(names.directory, ignore_errors=True)
    if names.directory.exists():
        raise EmulationError(f"{names.directory} cannot be removed")
