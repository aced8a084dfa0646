"""The status of a fabric: its parts, controller, pace of virtual time and deadlock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless.base.broadcasts import problems as broadcast_problems
from knotless.base.errors import EmulationError, KnotlessError
from knotless.base.pause_storms import name_flows
from knotless.base.pause_storms import problems as storm_problems
from knotless.base.printable import listed
from knotless.emulation import controller, ovs_process, rest, state
from knotless.emulation.cuts import Cables
from knotless.emulation.daemon import Daemon
from knotless.emulation.names import Names
from knotless.emulation.state import State
from knotless.emulation.virtual_clock import programs_in_real_time
from knotless.topologies.formats import files


def report(names: Names) -> dict[str, Any] | None:
    """Return the status of a fabric as plain values, or None if there is none.

    Keys: ``name fabric phase owner parts settings controller emulator cut stopped
    real_time_programs problems``. ``phase`` is starting, ready or dead. ``problems`` are texts of
    one line, none if all is well. ``controller`` and ``emulator`` are their own status, null if
    unavailable. ``cut`` lists the links that ``knotless cut`` has cut, null if unknown; ``stopped``
    the switches that ``knotless switch stop`` has stopped; ``real_time_programs`` the programs on
    hosts that have no virtual time, null without ``--virtual-clock``. A controller or an Open
    vSwitch that a user has started by hand, after ours has ended, counts as the fabric's part.
    """
    fabric_state = state.read(names)
    if fabric_state is None:
        return None
    problems: list[str] = []
    if not fabric_state.running:
        problems.append(
            f"its owner has died: 'knotless down --name {names.name}' removes what remains"
        )
    parts: dict[str, dict[str, object]] = {
        role: {"pid": process.pid, "alive": role not in fabric_state.missing()}
        for role, process in sorted(fabric_state.processes.items())
    }
    for role in fabric_state.missing():
        if role == "controller":
            other = (controller.by_hand(fabric_state) or {}).get("pid")
        else:
            process = ovs_process.by_hand(names, role)
            other = process and process.pid
        if other is not None:
            parts[role] = {"pid": other, "alive": True, "by_hand": True}
    problems += [
        f"{role} has died: {names.log_file(role)} may say why"
        for role in fabric_state.missing()
        if not parts[role]["alive"]
    ]
    return {
        "name": fabric_state.name,
        "fabric": fabric_state.fabric,
        "phase": fabric_state.phase if fabric_state.running else "dead",
        "started_at": fabric_state.started_at,
        "owner": fabric_state.owner.pid,
        "parts": parts,
        "settings": fabric_state.settings,
        "controller": _controller(fabric_state, parts, problems),
        "emulator": _emulator(names, fabric_state, problems),
        "cut": _cuts(names, fabric_state, problems),
        "stopped": sorted(state.stopped_switches(names)),
        "real_time_programs": _real_time_programs(names, fabric_state),
        "problems": problems,
    }


def _real_time_programs(names: Names, fabric_state: State) -> list[str] | None:
    if not fabric_state.running or not fabric_state.settings.get("virtual_clock"):
        return None
    prefix = names.host_namespace("")
    spaces = [space for space in fabric_state.namespaces if space.startswith(prefix)]
    return programs_in_real_time(names, [space.removeprefix(prefix) for space in spaces])


def _cuts(names: Names, fabric_state: State, problems: list[str]) -> list[dict[str, object]] | None:
    if (
        fabric_state.phase != "ready"
        or not fabric_state.running
        or "emulator" in fabric_state.missing()
    ):
        return None
    try:
        return [cut.as_json() for cut in Cables.of_running(names).cuts()]
    except KnotlessError as error:
        problems.append(str(error))
        return None


def _controller(
    fabric_state: State, parts: dict[str, dict[str, object]], problems: list[str]
) -> dict[str, Any] | None:
    remote = fabric_state.settings.get("controller") == "remote"
    if not remote and not any(
        part["alive"] for role, part in parts.items() if role.startswith("controller")
    ):
        return None
    try:
        status = rest.status_of(rest.ports_of(fabric_state.settings))
    except EmulationError as error:
        # The user's own controller may lack our REST interface.
        if fabric_state.phase == "ready" and not remote:
            problems.append(str(error))
        return None
    lines = list(status.get("problems", []))
    if fabric_state.phase == "ready":
        lines += _without_rules(status, lines)
    problems += [f"controller: {line}" for line in lines]
    return status


def _without_rules(status: Mapping[str, Any], lines: Sequence[str]) -> Iterator[str]:
    """Yield lines if switches may lack rules, unless ``lines`` say why already.

    A switch that has restarted is connected again before it is read and gets its rules, and its
    links are up before routes return to them: its hosts are cut off until then.
    """
    waiting = [
        name
        for name, switch in status.get("switches", {}).items()
        if switch["connected"] and not switch["installed"]
    ]
    if waiting:
        yield f"switches that have not confirmed their rules: {listed(waiting)}"
    elif not status.get("ready", True) and not lines:
        yield "not ready: it has not read all switches yet"
    up_again = set(status.get("routes", {}).get("failed", ())) - set(status.get("links_down", ()))
    if up_again and not lines:
        yield f"routes still avoid what is up again: {listed(sorted(up_again))}"


def _emulator(names: Names, fabric_state: State, problems: list[str]) -> dict[str, Any] | None:
    if "emulator" not in fabric_state.processes or "emulator" in fabric_state.missing():
        return None
    try:
        fabric = files.read(names.fabric_file)
        daemon = Daemon(names.emulator_socket, fabric.switch_index)
        status = daemon.status()
        deadlock = daemon.deadlock()
    except KnotlessError as error:
        if fabric_state.phase == "ready":
            problems.append(str(error))
        return None
    if deadlock is not None:
        status["deadlock"] = {"since_us": deadlock.since_us, "cycle": list(deadlock.cycle)}
        problems.append(f"deadlock: {' waits for '.join([*deadlock.cycle, deadlock.cycle[0]])}")
    name_flows(status["pausing_hosts"], {host.mac: host.name for host in fabric.hosts})
    problems += storm_problems(status)
    problems += broadcast_problems(status)
    problems += [f"link emulator: {problem}" for problem in status["problems"]]
    return status


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
