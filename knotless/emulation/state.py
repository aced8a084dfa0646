"""The recorded state of a running fabric, with which any process can find and end it."""

from __future__ import annotations

import dataclasses
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from knotless.base.errors import EmulationError
from knotless.base.files import write_whole
from knotless.base.printable import listed
from knotless.emulation.names import NETNS_DIRECTORY, Names, names_of, running_names
from knotless.emulation.processes import Process, alive
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files


@dataclass
class State:
    """``state.json`` of a running fabric.

    ``owner`` is the process that holds the hosts' shells: when it is dead, so is the
    fabric. ``processes`` are the parts by role; ``namespaces`` are the network namespaces
    that this fabric may remove. ``phase`` is starting or ready.
    """

    name: str
    fabric: str
    owner: Process
    phase: str = "starting"
    started_at: float = field(default_factory=time.time)
    processes: dict[str, Process] = field(default_factory=dict)
    namespaces: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        """Whether the owner is alive."""
        return alive(self.owner)

    @property
    def is_ready(self) -> bool:
        """Whether it has started, and its owner is alive."""
        return self.phase == "ready" and self.running

    def missing(self) -> list[str]:
        """Roles of the parts that have died."""
        return sorted(role for role, process in self.processes.items() if not alive(process))


def write(names: Names, state: State) -> None:
    """Write the state; a reader finds the old or the new one."""
    text = json.dumps(dataclasses.asdict(state), indent=1)
    write_whole(names.state_file, text, EmulationError)


def read(names: Names) -> State | None:
    """Return the state of a fabric, or None if there is none.

    A directory without a readable state was left by a crash. It is treated as a dead fabric that
    owns all namespaces with its name.
    """
    if not names.directory.is_dir():
        return None
    try:
        fields = json.loads(names.state_file.read_text(encoding="utf-8"))
        fields["owner"] = Process(**fields["owner"])
        fields["processes"] = {r: Process(**p) for r, p in fields["processes"].items()}
        return State(**fields)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return State(names.name, "unknown", Process(0, 0), namespaces=existing_namespaces(names))


def stopped_switches(names: Names) -> frozenset[str]:
    """Return the switches of a running fabric that are stopped."""
    try:
        return frozenset(json.loads(names.stopped_file.read_text(encoding="utf-8")))
    except OSError:
        return frozenset()


def write_proof_verdict(names: Names, reason: str) -> None:
    """Record why a proof of the rules, which was asked for, is not accepted; empty: it is."""
    write_whole(names.proof_verdict_file, json.dumps({"reason": reason}), EmulationError)


def proof_problems(names: Names) -> list[str]:
    """Return a line if a proof of the rules was asked for and is not accepted."""
    try:
        reason = json.loads(names.proof_verdict_file.read_text(encoding="utf-8"))["reason"]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = f"{names.proof_verdict_file}: {error}"
    return [f"--proven was given, and its rules are not proven: {reason}"] if reason else []


def running_fabrics() -> list[str]:
    """Return the names of the fabrics that run, sorted; none if the user may not see them."""
    with suppress(PermissionError):
        states = {name: read(names_of(name)) for name in running_names()}
        return [name for name, one in states.items() if one is not None and one.is_ready]
    return []


def no_fabric(name: str) -> EmulationError:
    """Return the error of a command for a fabric that does not run; it names those that do."""
    running = running_fabrics()
    if not running:
        return EmulationError(f"no fabric {name!r} is running; 'knotless up' starts one")
    return EmulationError(
        f"no fabric {name!r} is running; running: {listed(running)}; add --name {running[0]}"
    )


def require_running(names: Names) -> State:
    """Return the state of a running fabric; raises :class:`EmulationError` if it is not running."""
    state = read(names)
    if state is None or not state.is_ready:
        raise no_fabric(names.name)
    return state


def require_emulated(names: Names) -> Fabric:
    """Return a running fabric whose links are emulated; raises :class:`EmulationError`."""
    if require_running(names).settings.get("links", "emulated") != "emulated":
        raise EmulationError("plain links have no emulator: start the fabric with emulated ones")
    return files.read(names.fabric_file)


def existing_namespaces(names: Names) -> list[str]:
    """Return the existing network namespaces with this fabric's names."""
    if not NETNS_DIRECTORY.is_dir():
        return []
    fixed = {names.switches_namespace(), names.links_namespace}
    return sorted(
        entry.name
        for entry in NETNS_DIRECTORY.iterdir()
        if entry.name in fixed or entry.name.startswith(names.host_namespace(""))
    )
