"""The measurements in simulation: their messages are recorded, then replayed.

PingPong and SendRecv have the same messages as with MPI. For Alltoall and Barrier, Open MPI selects
its own algorithms; here they are those of
:mod:`knotless_experiments.messages.programs.communicator`: pairwise exchange and dissemination.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from knotless_experiments.framework.experiment import SIMULATION
from knotless_experiments.framework.routed import Measured, in_simulation
from knotless_experiments.messages.programs.communicator import Communicator, require_power_of_two
from knotless_experiments.messages.programs.local import run_local
from knotless_experiments.messages.programs.trace import Event, Recorder
from knotless_experiments.studies.parallel.measure import Case, row_of
from knotless_experiments.studies.parallel.program import pingpong, sendrecv


def alltoall(communicator: Communicator, size: int) -> Callable[[], None]:
    """Return an exchange of ``size`` bytes by each pair."""
    parts = [np.zeros(size, np.uint8)] * communicator.size
    shapes = [(size,)] * communicator.size

    def once() -> None:
        communicator.alltoall(parts, shapes)

    return once


def barrier(communicator: Communicator, _size: int) -> Callable[[], None]:
    """Return a barrier."""
    return communicator.barrier


MEASUREMENTS: dict[str, Callable[[Communicator, int], Callable[[], None]]] = {
    "pingpong": pingpong,
    "sendrecv": sendrecv,
    "alltoall": alltoall,
    "barrier": barrier,
}


def require(measurements: Sequence[str], processes: int) -> None:
    """Raise CommunicatorError for a number of processes that is not supported."""
    if "alltoall" in measurements:
        require_power_of_two(processes, "alltoall in simulation")


def virtual(case: Case) -> Measured:
    """Record one repetition and replay it on the simulated fabric."""
    from knotless.simulation.replay import replay

    def program(communicator: Communicator) -> list[Event]:
        recorder = Recorder(communicator)
        MEASUREMENTS[case.measurement](recorder, case.message_bytes)()
        return recorder.events

    events = [event for part in run_local(case.processes, program) for event in part]
    replayed = replay(
        case.routed.plan, events, places=case.places, flow_control=case.routed.plan.flow_control
    )
    seconds = [] if replayed.deadlock else [replayed.seconds]
    row = row_of(SIMULATION, case, seconds)
    row |= {"deadlock": replayed.deadlock, "cycle": replayed.cycle}
    samples = [{"repetition": 0, "time_us": 1e6 * each} for each in seconds]
    return in_simulation(row), samples
