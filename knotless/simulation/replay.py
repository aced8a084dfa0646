"""Replay of recorded programs on a simulated fabric.

The steps of each process run in order, each as soon as possible. Unlike a trace of messages at
fixed times, a replay waits where the program waited: on a slower network it takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from knotless._core import simulator
from knotless.base.errors import SimulationError
from knotless.base.flow_control import AUTO, resolved
from knotless.forwarding.from_plan import state_of_plan
from knotless.routing.plan import Plan
from knotless.simulation.bubbles import use_bubbles
from knotless.simulation.channels import channel_table
from knotless.simulation.memory import check_memory
from knotless.simulation.program import KINDS, Program, waiting
from knotless.simulation.run import FOREVER_PS, SLICE_EVENTS
from knotless.simulation.settings import Switching
from knotless.simulation.tables import tables_of
from knotless.simulation.units import PICOSECONDS_PER_US

PACKET_BYTES = 1500


class Step(Protocol):
    """One step of a process: a row of a program trace."""

    @property
    def process(self) -> int:
        """The number of the process; process p runs on host p."""

    @property
    def kind(self) -> str:
        """One of KINDS."""

    @property
    def peer(self) -> int:
        """The other process; -1 for computing."""

    @property
    def bytes(self) -> int:
        """Length of the message in bytes."""

    @property
    def seconds(self) -> float:
        """Time of computing, in seconds."""


@dataclass(frozen=True)
class Replayed:
    """The result of a replay. ``seconds`` is when the last process ended.

    In a deadlock it is when the last frame moved, and ``cycle`` names the channels.
    """

    seconds: float
    ended: int
    deadlock: bool
    cycle: list[str]


def replay(
    plan: Plan,
    steps: Iterable[Step],
    *,
    places: Sequence[int] | None = None,
    flow_control: str = AUTO,
    computing: float = 0.0,
    progress: Callable[[float, int], None] | None = None,
) -> Replayed:
    """Replay a program; process p runs on host ``places[p]``, by default on host p.

    ``flow_control`` ``auto`` means the plan's. Recorded compute times are multiplied by
    ``computing``; with 0 only the messages count, and the result is reproducible bit for bit.

    Raises
    ------
    SimulationError
        A step is invalid or its host does not exist, or a process waits for a message that
        nobody sends.

    """
    check_memory(plan.fabric, vlans=plan.vlan_count)
    chosen = plan.flow_control if flow_control == AUTO else resolved(flow_control, plan.vcs)
    switching, state = Switching(chosen), state_of_plan(plan)
    table = channel_table(plan.fabric, switching)
    hosts = len(plan.fabric.hosts)
    processes = hosts if places is None else len(places)
    program = Program(processes, computing)
    for step in steps:
        for process in (step.process, max(0, step.peer)):
            if not 0 <= process < processes:
                raise SimulationError(
                    f"replay: process {process} is not one of 0 to {processes - 1}"
                )
        kind = KINDS[step.kind]
        program.add(step.process, kind, max(0, step.peer), step.bytes, step.seconds)
    traffic, ends = program.traffic(hosts, places)
    try:
        simulation = simulator.Simulation(
            len(plan.fabric.switches),
            hosts,
            table,
            tables_of(state, table),
            [],
            traffic,
            seed=1,
            warm_up_ps=0,
            end_ps=FOREVER_PS,
            packet_bytes=PACKET_BYTES,
            header_bytes=0,
            link_changes=[],
        )
        use_bubbles(simulation, state, table, switching)
    except ValueError as error:
        raise SimulationError(f"replay: {error}") from None
    while simulation.run(SLICE_EVENTS):
        if progress is not None:
            progress(simulation.now_ps / PICOSECONDS_PER_US, simulation.events)
    ended = [time for time in ends.times_ps() if time is not None]
    deadlock = simulation.report().deadlock
    cycle = (
        []
        if deadlock is None
        else [f"{table.names[channel]}/{priority}" for channel, priority in deadlock.cycle]
    )
    if not cycle:
        waiting(plan.fabric, ends)
    last_ps = max(ended, default=0) if len(ended) == hosts else simulation.now_ps
    return Replayed(last_ps / 1e12, len(ended), bool(cycle), cycle)
