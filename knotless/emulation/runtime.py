"""Claiming a fabric's name, starting its parts, and removing all of them.

Everything that a running fabric owns is recorded before or when it is created. One function,
:func:`sweep`, removes it all: at the end, after a failed start, or after a crash.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from knotless.base.errors import EmulationError
from knotless.emulation import namespaces, processes, state
from knotless.emulation.names import CREDIT_DIRECTORY, MARK, RUN_DIRECTORY, Names
from knotless.emulation.patience import LONGEST_STEP_S, Patience
from knotless.emulation.priority import Part, Priority, start_program
from knotless.emulation.state import State

OWNER_PATIENCE_S = 20.0
"""Time for an owner to end after it was asked to (64 hosts: about 6 s)."""

READY_LIMIT_S = 20.0
"""Time for a part to report that it is ready."""
END_ROUNDS = 4
"""Number of times all processes of a fabric are looked for and ended, up to 5 s each time."""
_LINE_LIMIT_BYTES = 64


@contextmanager
def machine_lock() -> Iterator[None]:
    """Prevent all other starts and removals on this machine for the block."""
    RUN_DIRECTORY.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (RUN_DIRECTORY / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Runtime:
    """A fabric's name, claimed by this process, and the parts that run under it."""

    def __init__(self, names: Names, current: State) -> None:
        self.names = names
        self.state = current
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def priority(self) -> Priority:
        """The priority with which the fabric was started."""
        return Priority(self.state.settings.get("priority", Priority.NORMAL))

    def save(self) -> None:
        """Write the state file."""
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
        """Start a part in the background, marked, recorded and with its priority.

        It logs to ``role.log``.

        It has its own session, so that Ctrl-C at the terminal does not reach it, and inherits no
        descriptors. Raises :class:`EmulationError` if it is not installed.
        """
        if namespace is not None:
            argv = namespaces.enter(namespace, argv)
        with self.names.log_file(role).open("ab") as log:

            def begin() -> subprocess.Popen[bytes]:
                return subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log if stdout is None else stdout,
                    stderr=log,
                    cwd=directory,
                    env={**os.environ, **(environment or {}), MARK: self.names.name},
                    start_new_session=True,
                )

            try:
                child = start_program(Part.of_role(role), self.priority, begin)
            except FileNotFoundError as error:
                raise EmulationError(f"{role}: {error.filename} not found") from error
        self.children[role] = child
        if identity := processes.identify(child.pid):
            self.state.processes[role] = identity
            self.save()
        return child

    def await_ready(self, role: str, child: subprocess.Popen[bytes]) -> None:
        """Wait until a part whose output is a pipe prints the line ``ready``.

        Raises :class:`EmulationError` with its last log line if it exits first, or prints nothing
        for :data:`READY_LIMIT_S` of its :class:`~knotless.emulation.patience.Patience`.
        """
        if child.stdout is None:
            raise ValueError(f"{role} was not started with a pipe")
        line = b""
        patience = Patience.with_processes(READY_LIMIT_S, child.pid)
        with child.stdout as pipe:
            # Read the whole line: a part that still writes when the pipe closes would be killed.
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            while b"\n" not in line and len(line) < _LINE_LIMIT_BYTES:
                spoke = poll.poll(1000 * LONGEST_STEP_S)
                if not spoke and not patience.is_over():
                    continue
                piece = os.read(pipe.fileno(), _LINE_LIMIT_BYTES) if spoke else b""
                if not piece:
                    break
                line += piece
        if line != b"ready\n":
            processes.end([self.state.processes[role]] if role in self.state.processes else [])
            raise EmulationError(f"the {role} does not start: {self.last_words(role)}")

    def last_words(self, role: str) -> str:
        """Return the last line that a part has logged, for an error message."""
        try:
            text = self.names.log_file(role).read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:300] if lines else "its log is empty"

    def stop(self, *roles: str) -> None:
        """End the parts with these ``roles``, in order, and remove them from the record."""
        for role in roles:
            if identity := self.state.processes.pop(role, None):
                processes.end([identity])
            if child := self.children.pop(role, None):
                child.wait()
            self.save()

    def release(self) -> None:
        """End every part and remove everything that was created."""
        with machine_lock():
            sweep(self.names, self.state)
        for child in self.children.values():
            child.wait()


def claim(names: Names, fabric: str) -> tuple[Runtime, bool]:
    """Claim a name for a fabric that this process is about to start.

    Returns the runtime, and whether a dead fabric of that name was removed first. Raises
    :class:`EmulationError` if one is running, or if a namespace of that name exists
    that is not ours.
    """
    with machine_lock():
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
        names.clock_page.parent.mkdir(exist_ok=True)
        names.clock_page.parent.chmod(0o755)  # whatever the umask
        runtime = Runtime(names, State(names.name, fabric, processes.ourselves()))
        runtime.save()
    return runtime, former is not None


def remove(names: Names) -> bool:
    """Remove a fabric, whoever owns it and in whatever state; return False if there is none."""
    fabric_state = state.read(names)
    if fabric_state is None:
        return False
    if fabric_state.running:
        if fabric_state.owner.pid in processes.family():
            raise EmulationError(
                f"fabric {names.name!r} is owned by the process that runs this command: "
                "leave its prompt instead"
            )
        processes.end([fabric_state.owner], patience_s=OWNER_PATIENCE_S)
    with machine_lock():
        left = state.read(names)
        # Its owner may have removed everything, and another process started a new one.
        if left is not None and not left.running:
            sweep(names, left)
    return True


def remove_credit(directory: Path = CREDIT_DIRECTORY) -> None:
    """Remove the credit pages of link emulators that have ended.

    A link emulator removes its own pages unless it is killed. It locks them before it gives them
    their size, and as long as it runs.
    """
    for page in directory.glob("*"):
        with suppress(FileNotFoundError, BlockingIOError), page.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if page.stat().st_size:
                page.unlink()


def sweep(names: Names, fabric_state: State) -> None:
    """Remove everything of a fabric except its owner, and finally its directory."""
    spaces = sorted({*fabric_state.namespaces})
    hosts = [space for space in spaces if "." in space]
    fixed = [space for space in spaces if "." not in space]
    _end_processes(names, fabric_state, spaces)
    for space in fixed:
        namespaces.remove_pairs(space)
    namespaces.remove([*hosts, *fixed])
    remove_credit()
    names.clock_page.unlink(missing_ok=True)
    shutil.rmtree(names.directory, ignore_errors=True)
    if names.directory.exists():
        raise EmulationError(f"{names.directory} cannot be removed")


def _end_processes(names: Names, fabric_state: State, spaces: list[str]) -> None:
    """End every process of a fabric except this one and its ancestors.

    A process may start another one in the moment in which it is ended, which only a second look
    finds: the controller does when the process that plans ahead has ended.
    """
    family = processes.family()
    for _ in range(END_ROUNDS):
        candidates = {
            *processes.marked(names.name),
            *processes.living_in(spaces),
            *filter(processes.alive, fabric_state.processes.values()),
        }
        victims = sorted(victim for victim in candidates if victim.pid not in family)
        if not victims:
            return
        processes.end(victims)
    raise EmulationError(
        f"processes of the fabric {names.name} do not end: "
        + ", ".join(str(victim.pid) for victim in victims)
    )
