"""Recorded programs on a simulated fabric: what each process did, in order, as fast as it can.

Unlike a trace of messages at fixed times, a replay waits where the program waited: a slower
network makes it take longer.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from knotless_core import simulator
from knotless_core.replay import replay_traffic
from routing.plan import Plan
from simulation.channels import PICOSECONDS_PER_US, Buffers, channel_table
from simulation.errors import SimulationError
from simulation.run import FOREVER_PS, SLICE_EVENTS, check_memory
from simulation.tables import forwarding

COLUMNS = ["process", "kind", "peer", "bytes", "seconds"]
KINDS = {"send": 0, "recv": 1, "compute": 2}
COMPUTE = KINDS["compute"]
PACKET_BYTES = 1500
MAX_LINES = 50_000_000
MAX_SECONDS = 1e6


class Step(Protocol):
    """One thing that a process did: a row of COLUMNS."""

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
class Row:
    """A step as a program trace has it."""

    process: int
    kind: str
    peer: int
    bytes: int
    seconds: float


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
    flow_control: str = "all",
    computing: float = 0.0,
    progress: Callable[[float, int], None] | None = None,
) -> Replayed:
    """Replay a program. Computing takes ``computing`` times what it once took.

    With 0, only the messages count, and the result is equal to the bit from run to run.

    Raises
    ------
    SimulationError
        Steps that the fabric has no hosts for, or that make no sense; a process that waits
        for a message that nobody sends.

    """
    check_memory(plan)
    table = channel_table(plan.fabric, flow_control, Buffers())
    hosts = len(plan.fabric.hosts)
    rows = [
        (step.process, KINDS[step.kind], max(0, step.peer), _amount(step, computing))
        for step in steps
        if step.kind != "compute" or computing > 0
    ]
    columns = np.array(rows, dtype=np.uint64).reshape(-1, 4).T
    try:
        traffic, ends = replay_traffic(
            hosts,
            columns[0].astype(np.uint32),
            columns[1].astype(np.uint8),
            columns[2].astype(np.uint32),
            columns[3].copy(),
        )
        simulation = simulator.Simulation(
            len(plan.fabric.switches),
            hosts,
            table,
            forwarding(plan, table),
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
    times = ends.times_ps()
    ended = [time for time in times if time is not None]
    found = simulation.report().deadlock
    cycle = [] if found is None else [f"{table.names[at]}/{of}" for at, of in found.cycle]
    if len(ended) < hosts and not cycle:
        waiting = plan.fabric.hosts[times.index(None)].name
        raise SimulationError(f"replay: {waiting} waits for a message that nobody sends")
    last_ps = max(ended, default=0) if len(ended) == hosts else simulation.now_ps
    return Replayed(last_ps / 1e12, len(ended), bool(cycle), cycle)


def _amount(step: Step, computing: float) -> int:
    """Return bytes of a message (one at least, as on a line), or picoseconds of computing."""
    return round(1e12 * computing * step.seconds) if step.kind == "compute" else max(1, step.bytes)


def read_program(path: str, processes: int) -> list[Row]:
    """Read a program trace, a CSV file of COLUMNS; processes are numbered below ``processes``.

    Raises SimulationError for a file that cannot be read or a line that makes no sense.
    """
    rows = []
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file)
            if next(lines, None) != COLUMNS:
                raise SimulationError(f"{path}: line 1 must be {','.join(COLUMNS)}")
            for number, line in enumerate(lines, 2):
                try:
                    rows.append(_row(line, processes))
                except SimulationError as error:
                    raise error.within(f"{path}: line {number}") from None
                if number > MAX_LINES:
                    raise SimulationError(f"{path}: more than {MAX_LINES} lines")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SimulationError(f"{path!r} cannot be read: {error}") from None
    return rows


def _row(line: list[str], processes: int) -> Row:
    if len(line) != len(COLUMNS):
        raise SimulationError(f"{len(line)} values, not {len(COLUMNS)}")
    kind = line[1]
    if kind not in KINDS:
        raise SimulationError(f"{kind[:40]!r} is none of {', '.join(KINDS)}")
    try:
        row = Row(int(line[0]), kind, int(line[2]), int(line[3]), float(line[4]))
    except ValueError as error:
        raise SimulationError(str(error)) from None
    for process in (row.process,) if kind == "compute" else (row.process, row.peer):
        if not 0 <= process < processes:
            raise SimulationError(f"there are {processes} processes, from 0, but no {process}")
    if kind != "compute" and row.peer == row.process:
        raise SimulationError(f"process {row.process} and itself")
    if not 0 <= row.bytes < 2**40:
        raise SimulationError(f"{row.bytes} is no number of bytes")
    if not 0 <= row.seconds <= MAX_SECONDS:
        raise SimulationError(f"{row.seconds} is no time in seconds")
    return row
