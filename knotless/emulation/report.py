"""The status of a fabric: its parts, controller, pace of virtual time and deadlock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knotless.base.errors import EmulationError, KnotlessError
from knotless.base.pause_storms import name_flows
from knotless.emulation import controller, ovs_process, rest, state
from knotless.emulation.cuts import Cables, Cut
from knotless.emulation.daemon import Daemon
from knotless.emulation.interface_names import numbered
from knotless.emulation.names import Names
from knotless.emulation.state import State
from knotless.emulation.summary import deadlock_advice, fabric_notes, fabric_problems
from knotless.emulation.virtual_clock import programs_in_real_time
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files


def report(names: Names) -> dict[str, Any] | None:
    """Return the status of a fabric as plain values, or None if there is none.

    Keys: ``name fabric phase owner parts settings controller controller_url emulator cut stopped
    real_time_programs interfaces problems notes advice``. ``phase`` is starting, ready or dead.
    ``problems`` are texts of one line, a deadlock first, none if all is well; ``notes`` say what
    else is to be known, ``advice`` what to do in a deadlock. ``controller`` and ``emulator`` are
    their status, null if unavailable; of several controllers that of the active one, at
    ``controller_url``. ``cut`` lists the links that ``knotless cut`` has cut, null if unknown;
    ``stopped`` the switches that ``knotless switch stop`` has stopped; ``real_time_programs`` the
    programs on hosts without virtual time, null without ``--virtual-clock``; ``interfaces`` the
    names of nodes in those of their interfaces and bridges, where they differ. A controller or an
    Open vSwitch that a user has started by hand, after ours has ended, counts as the fabric's part.
    """
    fabric_state = state.read(names)
    if fabric_state is None:
        return None
    unread: list[str] = []
    parts = parts_of(names, fabric_state)
    phase = fabric_state.phase if fabric_state.running else "dead"
    url, controller_status = _controller(fabric_state, parts, unread)
    emulator = _emulator(names, fabric_state, unread)
    cut = _cuts(names, fabric_state, unread)
    stopped = sorted(state.stopped_switches(names))
    interfaces = _numbered(names)
    advice = []
    if emulator is not None and emulator["deadlock"] is not None:
        advice = deadlock_advice(fabric_state.name, fabric_state.fabric, controller_status)
    return {
        "name": fabric_state.name,
        "fabric": fabric_state.fabric,
        "phase": phase,
        "started_at": fabric_state.started_at,
        "owner": fabric_state.owner.pid,
        "parts": parts,
        "settings": fabric_state.settings,
        "controller": controller_status,
        "controller_url": url,
        "emulator": emulator,
        "cut": cut,
        "stopped": stopped,
        "real_time_programs": _real_time_programs(names, fabric_state),
        "interfaces": interfaces,
        "problems": fabric_problems(
            phase=phase,
            processes=process_problems(names, fabric_state, parts),
            controller=controller_status,
            emulator=emulator,
            unread=unread,
        ),
        "notes": fabric_notes(
            controller=controller_status,
            cut=[str(Cut.from_json(one)) for one in cut or ()],
            stopped=stopped,
            interfaces=interfaces,
        ),
        "advice": advice,
    }


def parts_of(names: Names, fabric_state: State) -> dict[str, dict[str, object]]:
    """Return the parts of a fabric by role: ``pid``, ``alive``, ``by_hand`` if a user's."""
    missing = fabric_state.missing()
    parts: dict[str, dict[str, object]] = {
        role: {"pid": process.pid, "alive": role not in missing}
        for role, process in sorted(fabric_state.processes.items())
    }
    for role in missing:
        if role == "controller":
            other = (controller.by_hand(fabric_state) or {}).get("pid")
        else:
            process = ovs_process.by_hand(names, role)
            other = process and process.pid
        if other is not None:
            parts[role] = {"pid": other, "alive": True, "by_hand": True}
    return parts


def process_problems(
    names: Names, fabric_state: State, parts: Mapping[str, Mapping[str, object]]
) -> list[str]:
    """Return the problems of the processes of a fabric, one line each."""
    lines = []
    if not fabric_state.running:
        lines.append(
            f"its owner has died: 'knotless down --name {names.name}' removes what remains"
        )
    dead = [role for role, part in parts.items() if not part["alive"]]
    return lines + [f"{role} has died: {names.log_file(role)} may say why" for role in dead]


def link_status(daemon: Daemon, fabric: Fabric) -> dict[str, Any]:
    """Return the emulator's status with the names of hosts; raises :class:`EmulationError`."""
    status = daemon.status()
    name_flows(status["pausing_hosts"], {host.mac: host.name for host in fabric.hosts})
    return status


def _real_time_programs(names: Names, fabric_state: State) -> list[str] | None:
    if not fabric_state.running or not fabric_state.settings.get("virtual_clock"):
        return None
    prefix = names.host_namespace("")
    spaces = [space for space in fabric_state.namespaces if space.startswith(prefix)]
    return programs_in_real_time(names, [space.removeprefix(prefix) for space in spaces])


def _numbered(names: Names) -> dict[str, str]:
    """Return the nodes whose interfaces are numbered; none if the fabric is unknown."""
    try:
        return numbered(files.read(names.fabric_file))
    except KnotlessError:
        return {}


def _cuts(names: Names, fabric_state: State, unread: list[str]) -> list[dict[str, object]] | None:
    if (
        fabric_state.phase != "ready"
        or not fabric_state.running
        or "emulator" in fabric_state.missing()
    ):
        return None
    try:
        return [cut.as_json() for cut in Cables.of_running(names).cuts()]
    except KnotlessError as error:
        unread.append(str(error))
        return None


def _controller(
    fabric_state: State, parts: Mapping[str, Mapping[str, object]], unread: list[str]
) -> tuple[str | None, dict[str, Any] | None]:
    """Return address and status of the controller, of several of the active one."""
    remote = fabric_state.settings.get("controller") == "remote"
    if not remote and not any(
        part["alive"] for role, part in parts.items() if role.startswith("controller")
    ):
        return None, None
    try:
        (host, port), status = rest.active_of(rest.ports_of(fabric_state.settings))
    except EmulationError as error:
        # The user's own controller may lack our REST interface.
        if fabric_state.phase == "ready" and not remote:
            unread.append(str(error))
        return None, None
    return f"http://{host}:{port}", status


def _emulator(names: Names, fabric_state: State, unread: list[str]) -> dict[str, Any] | None:
    if "emulator" not in fabric_state.processes or "emulator" in fabric_state.missing():
        return None
    try:
        fabric = files.read(names.fabric_file)
        return link_status(Daemon(names.emulator_socket, fabric.switch_index), fabric)
    except KnotlessError as error:
        if fabric_state.phase == "ready":
            unread.append(str(error))
        return None


def pace(status: Mapping[str, Any]) -> str:
    """Describe how fast virtual time passes, and what holds it, in one line."""
    stretch, now = status["stretch"], status["stretch_now"]
    if stretch is None:
        return "virtual time stands still"
    lost = {cause: hold["ms"] for cause, hold in status["holds"].items() if hold["ms"]}
    held = ", ".join(f"{cause} {ms:.0f} ms" for cause, ms in lost.items()) or "none"
    slowest = status["slowest_switch"]
    switch = "" if slowest is None else f", slowest switch {slowest['switch']}"
    recent = "" if now is None else f" ({now:.2f} now)"
    return f"stretch {stretch:.2f}{recent}, held: {held}{switch}"
