"""The status of a fabric: its parts, controller, pace of virtual time and deadlock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from knotless.base.errors import KnotlessError
from knotless.base.pause_storms import name_flows
from knotless.emulation import controller, forwarding_loops, health, ovs_process, rest, state
from knotless.emulation.cuts import Cables, Cut
from knotless.emulation.daemon import Daemon
from knotless.emulation.health import Answer, Question
from knotless.emulation.interface_names import numbered
from knotless.emulation.names import Names, role_of
from knotless.emulation.state import State
from knotless.emulation.summary import deadlock_advice, fabric_notes, fabric_problems
from knotless.emulation.virtual_clock import programs_in_real_time
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files

_EMULATOR, _CONTROLLER, _SWITCHES = "emulator", "controller", "ovs-vswitchd"


class _Links(NamedTuple):
    """The status of emulated links, and which links are cut; None where it is unknown.

    ``loops`` are the frames that go round: see :func:`forwarding_loops.find_reasons`.
    """

    status: dict[str, Any] | None = None
    cut: list[dict[str, object]] | None = None
    loops: forwarding_loops.Hops = ()


def report(names: Names) -> dict[str, Any] | None:
    """Return the status of a fabric as plain values, or None if there is none.

    Keys: ``name fabric phase owner parts settings controller controller_url emulator cut stopped
    real_time_programs interfaces problems notes advice``. ``phase`` is starting, ready or dead.
    ``problems`` are texts of one line, a deadlock first, none if all is well; ``notes`` say what
    else is to be known, ``advice`` what to do in a deadlock. ``controller`` and ``emulator`` are
    their status, null if unavailable; of several controllers that of the active one, at
    ``controller_url``. ``cut`` lists the links that ``knotless cut`` has cut, null if unknown;
    ``stopped`` the switches that ``knotless switch stop`` has stopped; ``real_time_programs`` the
    programs on hosts without virtual time, null with ``--no-virtual-clock``; ``interfaces`` the
    names of nodes in those of their interfaces and bridges, where they differ. A controller or an
    Open vSwitch that a user has started by hand, after ours has ended, counts as the fabric's part.
    A part's ``answers`` tells whether it does, null if it was not asked.

    All parts are asked at the same time: see :mod:`knotless.emulation.health`.
    """
    fabric_state = state.read(names)
    if fabric_state is None:
        return None
    parts = parts_of(names, fabric_state)
    phase = fabric_state.phase if fabric_state.running else "dead"
    answers = health.ask_all(_questions(names, fabric_state, parts, _ask_emulator))
    for role, part in parts.items():
        part["answers"] = answers[role].problem is None if role in answers else None
    url, controller_status = _active(fabric_state, answers)
    links = answers.get(_EMULATOR, Answer())
    emulator, cut, loops = links.value or _Links()
    if emulator is not None:
        pids = {role: part["pid"] for role, part in parts.items() if part["answers"]}
        reasons = loop_reasons(names, emulator, loops, pids)
        emulator = forwarding_loops.with_reasons(emulator, reasons)
    unread = _unanswered(fabric_state, answers)
    plain = fabric_state.is_ready and fabric_state.settings.get("links") == "plain"
    if plain:
        try:
            cut = _cuts(names)
        except KnotlessError as error:
            unread.append(str(error))
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
            proof=state.proof_problems(names),
            controller=controller_status,
            emulator=emulator,
            unread=unread,
        ),
        "notes": fabric_notes(
            controller=controller_status,
            emulator=emulator,
            cut=[str(Cut.from_json(one)) for one in cut or ()],
            stopped=stopped,
            plain=plain,
            interfaces=interfaces,
        ),
        "advice": advice,
    }


def parts_of(names: Names, fabric_state: State) -> dict[str, dict[str, Any]]:
    """Return the parts of a fabric by role: ``pid``, ``alive``, ``by_hand`` if a user's."""
    missing = fabric_state.missing()
    parts: dict[str, dict[str, Any]] = {
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
    names: Names, fabric_state: State, parts: Mapping[str, Mapping[str, Any]]
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


def loop_reasons(
    names: Names, status: Mapping[str, Any], hops: forwarding_loops.Hops, pids: Mapping[str, int]
) -> forwarding_loops.Reasons:
    """Return what sends frames on in loops; nothing if there are none or the fabric is unknown.

    ``pids`` are the processes of the parts that answer.
    """
    if not hops:
        return {}
    try:
        fabric = files.read(names.fabric_file)
    except KnotlessError:
        return {}
    switches = {role: pid for role, pid in pids.items() if role.startswith(_SWITCHES)}
    return forwarding_loops.find_reasons(names, fabric, status["loops"], hops, switches)


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


def _unanswered(fabric_state: State, answers: Mapping[str, Answer]) -> list[str]:
    """Return one line for each part that should answer and does not.

    A user's own controller may lack our REST interface.
    """
    if fabric_state.phase != "ready":
        return []
    is_remote = fabric_state.settings.get("controller") == "remote"
    lines = [
        answer.problem
        for role, answer in answers.items()
        if answer.problem is not None and not (is_remote and role.startswith(_CONTROLLER))
    ]
    return list(dict.fromkeys(lines))


def _questions(
    names: Names,
    fabric_state: State,
    parts: Mapping[str, Mapping[str, Any]],
    ask_emulator: Callable[[Names], object],
) -> dict[str, Question]:
    """Return what to ask of each part that is alive."""
    if not fabric_state.running:
        return {}
    questions = {}
    if names.supervisor_socket.exists():
        owner = fabric_state.owner.pid
        questions["supervisor"] = Question(owner, partial(health.ask_supervisor, names))
    alive = {role: part["pid"] for role, part in parts.items() if part["alive"]}
    for role, pid in alive.items():
        if role.startswith("ovsdb-server"):
            questions[role] = Question(pid, partial(health.ask_database, names, role))
        elif role.startswith(_SWITCHES):
            questions[role] = Question(pid, partial(health.ask_switch_daemon, names, pid))
        elif role == _EMULATOR:
            questions[role] = Question(pid, partial(ask_emulator, names))
        elif role == "web" and names.page_file.exists():
            questions[role] = Question(pid, partial(health.ask_page, names))
    is_remote = fabric_state.settings.get("controller") == "remote"
    for number, ports in enumerate(rest.ports_of(fabric_state.settings)):
        role = role_of(_CONTROLLER, number)
        if is_remote or role in alive:
            questions[role] = Question(alive.get(role), partial(rest.status, ports.rest))
    return questions


def silent_parts(
    names: Names, fabric_state: State, parts: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Return one line for each part that runs and does not answer, by role; it asks for little."""
    if fabric_state.phase != "ready":
        return {}
    answers = health.ask_all(_questions(names, fabric_state, parts, _ask_for_deadlock))
    return {
        role: answer.problem
        for role, answer in answers.items()
        if answer.problem and answer.is_silent
    }


def _ask_for_deadlock(names: Names) -> object:
    return Daemon(names.emulator_socket, {}).request("deadlock")


def _ask_emulator(names: Names) -> _Links:
    fabric = files.read(names.fabric_file)
    daemon = Daemon(names.emulator_socket, fabric.switch_index)
    status = link_status(daemon, fabric)
    fabric_state = state.read(names)
    is_ready = fabric_state is not None and fabric_state.is_ready
    return _Links(status, _cuts(names) if is_ready else None, daemon.loops(status))


def _cuts(names: Names) -> list[dict[str, object]]:
    return [cut.as_json() for cut in Cables.of_running(names).cuts()]


def _active(
    fabric_state: State, answers: Mapping[str, Answer]
) -> tuple[str | None, dict[str, Any] | None]:
    """Return address and status of the active controller, else of the first that has answered."""
    there = [
        (ports, answer.value)
        for number, ports in enumerate(rest.ports_of(fabric_state.settings))
        if (answer := answers.get(role_of(_CONTROLLER, number))) and answer.problem is None
    ]
    if not there:
        return None, None
    ports, status = next((one for one in there if rest.is_active(one[1])), there[0])
    return f"http://{rest.ADDRESS}:{ports.rest}", status


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
