"""A deadlock on purpose, and its end: what a demonstration of a running fabric needs."""

from __future__ import annotations

import time

from knotless.base.errors import EmulationError
from knotless.base.flow_control import FlowControl
from knotless.emulation import running_traffic, state
from knotless.emulation.daemon import Daemon, Deadlock
from knotless.emulation.names import Names
from knotless.emulation.ovs_dump import live_state
from knotless.emulation.waiting import emptied
from knotless.simulation.freezing import find_freeze
from knotless.verification.check import verdict_of

FREEZE_LIMIT_S = 30.0
SEARCHES = 20
"""Sets of flows that are simulated at most, before something is sent."""
_LOOK_EVERY_S = 0.1


def freeze(names: Names, limit_s: float = FREEZE_LIMIT_S) -> Deadlock:
    """Deadlock a running fabric, and return the deadlock when the emulator has detected it.

    Flows that freeze the rules of the switches in simulation, or else one for each step of a cycle,
    send as fast as they can until it is closed. Raises :class:`EmulationError` if the rules allow
    no deadlock, if the fabric is deadlocked already, if other traffic runs, or after ``limit_s``
    without a deadlock.
    """
    fabric = state.require_emulated(names)
    daemon = Daemon(names.emulator_socket, fabric.switch_index)
    if daemon.deadlock() is not None:
        raise EmulationError("it is deadlocked already: 'knotless release' ends that")
    rules, flow_control = live_state(names.name)
    verdict = verdict_of(rules, flow_control)
    if verdict.safe:
        raise EmulationError(f"there is nothing to freeze: by the rules, it {verdict.text}")
    index = fabric.host_index
    freeze_found = find_freeze(rules, verdict.flow_control, searches=SEARCHES)
    wanted = freeze_found.flows if freeze_found.freezes else verdict.witnesses
    pairs = {(one.source, one.destination): None for one in wanted}
    flows = [(index[a], index[b]) for a, b in pairs if a in index and b in index]
    if not flows:
        raise EmulationError("only broadcasts close a cycle here: no flows of hosts can")
    running_traffic.start_flows(names, fabric, "freeze", flows)
    try:
        deadline = time.monotonic() + limit_s
        while (deadlock := daemon.deadlock()) is None:
            if time.monotonic() > deadline:
                raise EmulationError(f"no deadlock after {limit_s:g} s of {len(flows)} flows")
            time.sleep(_LOOK_EVERY_S)
        return deadlock
    finally:
        running_traffic.stop(names)


def release(names: Names) -> bool:
    """End a deadlock: stop our traffic and drop all frames; return whether the fabric is quiet.

    All counters begin at zero. Raises :class:`EmulationError` if there is no deadlock.
    """
    fabric = state.require_emulated(names)
    daemon = Daemon(names.emulator_socket, fabric.switch_index)
    if daemon.deadlock() is None:
        raise EmulationError("there is no deadlock to release")
    running_traffic.stop(names)
    return emptied(daemon, FlowControl(state.require_running(names).settings["flow_control"]))
