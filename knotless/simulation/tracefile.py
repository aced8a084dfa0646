"""Traces: CSV files of messages at given times, or of the steps of a recorded program.

The first line is the header MESSAGES (times in order, hosts by name) or PROGRAM (each process's
rows in order; process p, from 0, runs on host p). See docs/parallel-programs.md.
"""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from knotless._core.replay import Ends
from knotless._core.simulator import Traffic
from knotless.base.errors import SimulationError
from knotless.base.files import open_text
from knotless.base.model_limits import MAX_BYTES
from knotless.simulation.program import COMPUTE, KINDS, Program
from knotless.topologies.fabric import Fabric

MESSAGES = ("time_us", "source", "destination", "bytes")
PROGRAM = ("process", "kind", "peer", "bytes", "seconds")
MAX_LINES = 50_000_000
MAX_FILE_BYTES = 4 << 30
LONGEST_LINE = 1000
MAX_TIME_US = 1e13
MAX_SECONDS = 1e6
QUOTED = 40
"""Largest number of characters of an invalid value in an error message."""


def read_trace(path: str, fabric: Fabric, computing: float = 1.0) -> tuple[Traffic, Ends | None]:
    """Read a trace of either kind; for a program, also return the end times of its processes.

    Compute times in the trace are multiplied by ``computing``.

    Raises
    ------
    SimulationError
        A file that cannot be read, or a line that makes no sense, by its number.

    """
    messages, program = _Messages(fabric), Program(len(fabric.hosts), computing)
    steps = _Steps(program)
    if _parse(path, {MESSAGES: messages.add, PROGRAM: steps.add}) == MESSAGES:
        return messages.traffic(), None
    try:
        return program.traffic()
    except SimulationError as error:
        raise error.within(path) from None


def read_program(path: str, processes: int, computing: float = 1.0) -> Program:
    """Read the trace of a program of at most so many processes; raises SimulationError."""
    program = Program(processes, computing)
    _parse(path, {PROGRAM: _Steps(program).add})
    return program


class Message(NamedTuple):
    """A message of a trace, by the numbers of its hosts."""

    at_us: float
    source: int
    destination: int
    size_bytes: int


def read_messages(path: str, fabric: Fabric) -> list[Message]:
    """Read a trace of messages; raises SimulationError, also for one of a program."""
    messages = _Messages(fabric)
    _parse(path, {MESSAGES: messages.add})
    return messages.as_list()


Columns = tuple[str, ...]


def _parse(path: str, parsers: Mapping[Columns, Callable[[list[str]], None]]) -> Columns:
    """Pass each line to the parser for the file's header line; return the header."""
    try:
        with open_text(path, SimulationError, MAX_FILE_BYTES) as file:
            # However long a line of the file is, it is read in pieces, which make no sense then.
            pieces = iter(partial(file.readline, LONGEST_LINE), "")
            lines = csv.reader(pieces, quoting=csv.QUOTE_NONE)
            columns = tuple(next(lines, ()))
            if columns not in parsers:
                headers = " or ".join(",".join(each) for each in parsers)
                raise SimulationError(f"{path}: line 1 must be {headers}")
            add = parsers[columns]
            for number, line in enumerate(lines, 2):
                if number > MAX_LINES:
                    raise SimulationError(f"{path}: more than {MAX_LINES} lines")
                try:
                    if len(line) != len(columns):
                        raise SimulationError(f"{len(line)} values, not {len(columns)}")
                    add(line)
                except SimulationError as error:
                    raise error.within(f"{path}: line {number}") from None
    except (OSError, ValueError, csv.Error) as error:
        raise SimulationError(f"{path!r} cannot be read: {error}") from None
    return columns


class _Messages:
    """Messages at fixed times."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._times_ps = array("Q", [0])
        self._ends = array("I"), array("I")
        self._bytes = array("Q")

    def add(self, line: list[str]) -> None:
        time_ps = round(_number(line[0], MAX_TIME_US, "time in microseconds") * 1e6)
        if time_ps < self._times_ps[-1]:
            raise SimulationError("the time is earlier than in the previous line")
        for name, ends in zip(line[1:3], self._ends, strict=True):
            if name not in self._fabric.host_index:
                raise SimulationError(f"{self._fabric.name} has no host {name[:QUOTED]!r}")
            ends.append(self._fabric.host_index[name])
        if line[1] == line[2]:
            raise SimulationError(f"{line[1]} would send to itself")
        self._bytes.append(_whole(line[3], 1, MAX_BYTES, "number of bytes"))
        self._times_ps.append(time_ps)

    def as_list(self) -> list[Message]:
        columns = (self._times_ps[1:], *self._ends, self._bytes)
        return [Message(at_ps / 1e6, *rest) for at_ps, *rest in zip(*columns, strict=True)]

    def traffic(self) -> Traffic:
        source, destination = (np.array(end, dtype=np.uint32) for end in self._ends)
        times_ps = np.array(self._times_ps, dtype=np.uint64)[1:].copy()
        return Traffic.trace(times_ps, source, destination, np.array(self._bytes, dtype=np.uint64))


class _Steps:
    """Lines of a program trace."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def add(self, line: list[str]) -> None:
        kind = KINDS.get(line[1])
        if kind is None:
            raise SimulationError(f"{line[1][:QUOTED]!r} is none of {', '.join(KINDS)}")
        process = self._process(line[0])
        peer = 0 if kind == COMPUTE else self._process(line[2])
        if kind != COMPUTE and peer == process:
            raise SimulationError(f"process {process} is its own peer")
        size = _whole(line[3], 0, MAX_BYTES, "number of bytes")
        seconds = _number(line[4], MAX_SECONDS, "time in seconds")
        self._program.add(process, kind, peer, size, seconds)

    def _process(self, text: str) -> int:
        processes = self._program.processes
        process = _whole(text, 0, 2**32, "process")
        if process >= processes:
            raise SimulationError(f"process {process} is not one of 0 to {processes - 1}")
        return process


def _number(text: str, maximum: float, quantity: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= maximum:
        raise SimulationError(f"{text[:QUOTED]!r} is not a {quantity}")
    return value


def _whole(text: str, minimum: int, end: int, quantity: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < QUOTED):
        raise SimulationError(f"{text[:QUOTED]!r} is not a {quantity}")
    if not minimum <= int(text) < end:
        raise SimulationError(f"{text!r} is not a {quantity}")
    return int(text)
