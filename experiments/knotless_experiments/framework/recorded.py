"""Recordings of what all channels do in each row of a run, for ``knotless replay``."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from knotless.base.errors import EmulationError
from knotless.results import recording
from knotless.results.recording import Recording, file_of_row

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

EVERY_S = 0.25
"""Real time between two frames of an emulated fabric."""
LONGEST_S = 86400.0

folder: ContextVar[Path | None] = ContextVar("folder", default=None)
"""The folder of the run, in which each row gets a recording; None: nothing is recorded."""


@contextmanager
def simulated(row: int, title: str) -> Iterator[None]:
    """Record the simulation in the block; of several the last one, from which the row is."""
    directory = folder.get()
    if directory is None:
        yield
        return
    from knotless.simulation.recorder import keep

    recordings: list[Recording] = []
    token = keep.set(lambda latest: recordings.__setitem__(slice(None), [latest]))
    try:
        yield
    finally:
        keep.reset(token)
    for latest in recordings:
        _write(directory, row, title, latest)


@contextmanager
def emulated(lab: EmulatedFabric, row: int, title: str) -> Iterator[None]:
    """Record a running fabric during the block, in a thread; if its emulator ends, up to then."""
    directory = folder.get()
    if directory is None:
        yield
        return
    from knotless.emulation.record import record

    ended = Event()
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(record, lab.daemon, lab.fabric, LONGEST_S, EVERY_S, ended=ended)
        try:
            yield
        finally:
            ended.set()
        with suppress(EmulationError):
            _write(directory, row, title, making.result())


def _write(directory: Path, row: int, title: str, simulation: Recording) -> None:
    titled = replace(simulation, title=f"row {row}, {title}: {simulation.title}")
    recording.write(file_of_row(directory, row), titled)
