"""Waiting for a condition, within a limit that counts a fair share of a processor.

A test that runs beside others gets less of a processor, and so does what it waits for. So a limit
counts the time on the wall only as far as one runnable thread has had a processor in it: beside two
busy threads on two processors, 60 s of it take longer than a minute.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 60.0
"""What a test waits for comes within a fraction of this, given a processor."""
HANG_S = 540.0
"""A limit on the wall, for calls that take no other; pytest ends a test at 600 s."""
_POLL_S = 0.02
_IDLE, _IOWAIT, _STEAL, _FIELDS = 3, 4, 7, 8


@dataclass(frozen=True)
class Reading:
    """What the machine says at one moment."""

    wall_s: float
    runnable: int
    """Tasks that run or could run, with the one that asks."""
    busy_ticks: int = 0
    """The time of all processors in which a task wanted them, whether or not it got them."""
    stolen_ticks: int = 0
    """The part of it that a hypervisor gave to others."""


def fair_s(before: Reading, now: Reading, processors: int) -> float:
    """Return for how long one runnable thread has had a processor between two readings."""
    share = min(1.0, processors / max(1, now.runnable))
    busy, stolen = now.busy_ticks - before.busy_ticks, now.stolen_ticks - before.stolen_ticks
    if 0 < stolen <= busy:
        share *= 1 - stolen / busy
    return (now.wall_s - before.wall_s) * share


def read_machine() -> Reading:
    """Return what the machine says now."""
    runnable, _, _ = Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")
    with Path("/proc/stat").open(encoding="ascii") as file:
        ticks = [int(field) for field in file.readline().split()[1 : 1 + _FIELDS]]
    busy = sum(ticks) - ticks[_IDLE] - ticks[_IOWAIT]
    return Reading(time.monotonic(), int(runnable), busy, ticks[_STEAL])


class Limit:
    """A limit that begins now, for loops that :func:`until` does not fit.

    Such a loop must ask often: what was runnable when it asks counts for all the time since.
    """

    def __init__(self, seconds: float = LIMIT_S) -> None:
        self.seconds = seconds
        self._processors = len(os.sched_getaffinity(0))
        self._last = read_machine()
        self._spent_s = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the limit has passed."""
        if time.monotonic() - self._last.wall_s >= _POLL_S / 2:
            now = read_machine()
            self._spent_s += fair_s(self._last, now, self._processors)
            self._last = now
        return self._spent_s >= self.seconds

    def check(self, what: object) -> None:
        """Fail the test with what it has waited for if the limit has passed."""
        assert not self.is_over, f"waited {self.seconds:g} s in vain for: {what}"


def until(what: str, condition: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Wait until ``condition`` is true; at the limit, fail the test with what it waited for."""
    limit = Limit(limit_s)
    while not condition():
        limit.check(what)
        time.sleep(_POLL_S)
