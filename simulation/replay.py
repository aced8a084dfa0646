"""Recorded programs on a simulated fabric: what each process did, in order, as fast as it can.

Unlike a trace of messages at fixed times, a replay waits where the program waited: a slower
network makes it take longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from common.flow_control import AUTO
from forwarding.from_plan import state_of_plan
from knotless_core import simulator
from routing.plan import Plan
from simulation.channels import PICOSECONDS_PER_US, Buffers, channel_table
from simulation.errors import SimulationError
from simulation.memory import check_memory
from simulation.program import KINDS, Program, waiting
from simulation.run import FOREVER_PS, SLICE_EVENTS
from simulation.tables import tables_of

PACKET_BYTES = 1500


class Step(Protocol):
    """One thing that a process did: a row of a program trace."""

    @property
    def process(self) -> int:
        """Which process; process p runs on host p."""

    @property
    def kind(self) -> str:
        """One of KINDS."""

    @property
    def peer(self) -> int:
        """The other process; -1 where it computed."""

    @property
    def bytes(self) -> int:
        """Length of the message."""

    @property
    def seconds(self) -> float:
        """How long it computed."""


@dataclass(frozen=True)
class Replayed:
    """What came of a replay. ``seconds`` is when the last process ended.

    In a deadlock that is when nothing moved any more, and ``cycle`` names the channels.
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
    """Replay a program; process p runs on host ``places[p]``, or on host p.

    ``flow_control`` ``auto`` is the plan's. Computing takes ``computing`` times what it once
    took. With 0, only the messages count, and the result is equal to the bit from run to run.

    Raises
    ------
    SimulationError
        Steps that the fabric has no hosts for, or that make no sense; a process that waits
        for a message that nobody sends.

    """
    check_memory(plan.fabric, vlans=plan.vlan_count)
    chosen = plan.flow_control if flow_control == AUTO else flow_control
    table = channel_table(plan.fabric, chosen, Buffers())
    hosts = len(plan.fabric.hosts)
    processes = hosts if places is None else len(places)
    program = Program(processes, computing)
    for step in steps:
        for process in (step.process, max(0, step.peer)):
            if not 0 <= process < processes:
                raise SimulationError(f"replay: there are {processes} processes, but no {process}")
        kind = KINDS[step.kind]
        program.add(step.process, kind, max(0, step.peer), step.bytes, step.seconds)
    traffic, ends = program.traffic(hosts, places)
    try:
        simulation = simulator.Simulation(
            len(plan.fabric.switches),
            hosts,
            table,
            tables_of(state_of_plan(plan), table),
            [],
            traffic,
            seed=1,
            warm_up_ps=0,
            end_ps=FOREVER_PS,
            packet_bytes=PACKET_BYTES,
            header_bytes=0,
            link_changes=[],
        )
    except ValueError as error:
        raise SimulationError(f"replay: {error}") from None
    while simulation.run(SLICE_EVENTS):
        if progress is not None:
            progress(simulation.now_ps / PICOSECONDS_PER_US, simulation.events)
    ended = [time for time in ends.times_ps() if time is not None]
    found = simulation.report().deadlock
    cycle = [] if found is None else [f"{table.names[at]}/{of}" for at, of in found.cycle]
    if not cycle:
        waiting(plan.fabric, ends)
    last_ps = max(ended, default=0) if len(ended) == hosts else simulation.now_ps
    return Replayed(last_ps / 1e12, len(ended), bool(cycle), cycle)
