"""Time limits for processes that may have to wait for a processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

LONGEST_STEP_S = 0.5
"""What counts of the time between two looks at most: more, and nobody looked."""

Effort = tuple[float, bool]
"""Seconds of processor time that threads have had, and whether one runs or waits for a processor.
"""


def effort_of(pids: Iterable[int]) -> Effort:
    """Return what all threads of these processes have done; one that has ended does nothing."""
    spent_ns, wants_processor = 0, False
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*"):
            try:
                spent_ns += int((task / "schedstat").read_text().split()[0])
                state = (task / "stat").read_text().rpartition(") ")[2][:1]
            except (OSError, ValueError, IndexError):
                continue
            wants_processor |= state == "R"
    return spent_ns / 1e9, wants_processor


class Patience:
    """A time limit of which a busy machine takes nothing; the emulator has the same.

    While a thread that is waited for runs or waits for a processor, the processor time that it gets
    counts; else real time, at most :data:`LONGEST_STEP_S` for each look.

    Parameters
    ----------
    limit_s : float
        The limit in seconds, which may be changed.
    effort : callable
        Returns what is waited for has done.
    clock : callable
        Returns the time in seconds.

    """

    def __init__(
        self,
        limit_s: float,
        effort: Callable[[], Effort],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit_s = limit_s
        self.spent_s = 0.0
        self._effort, self._clock = effort, clock
        self._looked_s = clock()
        self._had_s, self._wanted = effort()

    @classmethod
    def with_processes(cls, limit_s: float, *pids: int | None) -> Patience:
        """Return the patience with some processes; None stands for one that does not run."""
        running = [pid for pid in pids if pid is not None]
        return cls(limit_s, lambda: effort_of(running))

    def is_over(self) -> bool:
        """Look again; return whether the limit is reached."""
        now_s, (had_s, wants) = self._clock(), self._effort()
        if wants or self._wanted:
            self.spent_s += max(0.0, had_s - self._had_s)
        else:
            self.spent_s += min(LONGEST_STEP_S, now_s - self._looked_s)
        self._looked_s, self._had_s, self._wanted = now_s, had_s, wants
        return self.spent_s > self.limit_s
