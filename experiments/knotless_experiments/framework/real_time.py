"""Programs on hosts that have no virtual time while a case is measured: a note in its row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

LOOK_EVERY_S = 1.0


@contextmanager
def programs_seen(*labs: EmulatedFabric) -> Iterator[list[str]]:
    """Look for such programs during the block, in a thread: at its begin and end, and each second.

    The list, as of :func:`knotless.emulation.virtual_clock.programs_in_real_time`, is complete
    after the block. A program counts if it is there at two looks in a row: one that has just
    started has not opened the clock's page yet.
    """
    seen: list[str] = []
    clocked = [lab for lab in labs if lab.virtual_clock]
    ended = Event()
    looking = Thread(target=_look, args=(clocked, ended, seen), name="real-time", daemon=True)
    looking.start()
    try:
        yield seen
    finally:
        ended.set()
        looking.join()


def _look(labs: Sequence[EmulatedFabric], ended: Event, seen: list[str]) -> None:
    from knotless.emulation.virtual_clock import programs_in_real_time

    before: list[str] = []
    is_last = False
    while True:
        now = [
            program
            for lab in labs
            for program in programs_in_real_time(lab.names, lab.fabric.host_index)
        ]
        seen += [program for program in now if program in before and program not in seen]
        if is_last:
            return
        before = now
        is_last = ended.wait(LOOK_EVERY_S)
