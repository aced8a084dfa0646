"""Traces: files that say which message is sent when."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from knotless_core.simulator import Traffic
from simulation.errors import SimulationError
from topologies.fabric import Fabric

COLUMNS = ["time_us", "source", "destination", "bytes"]
MAX_LINES = 50_000_000


def read_trace(path: str, fabric: Fabric) -> Traffic:
    """Read a CSV file of COLUMNS (named in its first line; hosts by name), in order of time.

    Raises
    ------
    SimulationError
        A file that cannot be read, or a line that makes no sense, by its number.

    """
    times: list[int] = []
    rows: list[tuple[int, int, int]] = []
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file)
            if next(lines, None) != COLUMNS:
                raise SimulationError(f"{path}: line 1 must be {','.join(COLUMNS)}")
            for number, line in enumerate(lines, 2):
                try:
                    times.append(_time_ps(line, times))
                    rows.append(_row(line, fabric))
                except SimulationError as error:
                    raise error.within(f"{path}: line {number}") from None
                if number > MAX_LINES:
                    raise SimulationError(f"{path}: more than {MAX_LINES} lines")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SimulationError(f"{path!r} cannot be read: {error}") from None
    columns = np.array(rows, dtype=np.uint64).reshape(-1, 3).T
    return Traffic.trace(
        np.array(times, dtype=np.uint64),
        columns[0].astype(np.uint32),
        columns[1].astype(np.uint32),
        columns[2].copy(),
    )


def _time_ps(line: list[str], times: list[int]) -> int:
    if len(line) != len(COLUMNS):
        raise SimulationError(f"{len(line)} values, not {len(COLUMNS)}")
    try:
        time_us = float(line[0])
    except ValueError:
        time_us = math.nan
    if not 0 <= time_us <= 1e13:
        raise SimulationError(f"{line[0]!r} is no time in microseconds")
    time_ps = round(time_us * 1e6)
    if times and time_ps < times[-1]:
        raise SimulationError("it is earlier than the line before")
    return time_ps


def _row(line: list[str], fabric: Fabric) -> tuple[int, int, int]:
    for name in line[1:3]:
        if name not in fabric.host_index:
            raise SimulationError(f"{fabric.name} has no host {name!r}")
    if not line[3].isdigit() or not 1 <= int(line[3]) < 2**40:
        raise SimulationError(f"{line[3]!r} is no number of bytes")
    if line[1] == line[2]:
        raise SimulationError(f"{line[1]} would send to itself")
    return fabric.host_index[line[1]], fabric.host_index[line[2]], int(line[3])
