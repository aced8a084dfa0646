"""Times at which processes entered and left barriers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WARM_UP = 2
"""Barriers not counted, while processes start and switches fill their caches."""

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Passages:
    """Microseconds on one clock; both arrays are (barriers, processes)."""

    entered_us: Times
    left_us: Times

    @property
    def durations_us(self) -> Times:
        """(barriers, processes): the time that each process spent in each barrier."""
        return self.left_us - self.entered_us

    def without_warm_up(self) -> Passages:
        """Return the passages after the warm-up."""
        return Passages(self.entered_us[WARM_UP:], self.left_us[WARM_UP:])

    @property
    def left_early(self) -> int:
        """The number of barriers that a process left before all had entered; must be 0."""
        return int((self.left_us.min(axis=1) < self.entered_us.max(axis=1)).sum())


def by_process(
    ranks: NDArray[np.uint32], entered_us: Times, left_us: Times, processes: int
) -> Passages | None:
    """Sort passages, in the order in which they ended, by barrier and process.

    Returns None if processes passed different numbers of barriers.
    """
    counts = np.bincount(ranks, minlength=processes)
    if len(counts) != processes or len(set(counts.tolist())) != 1:
        return None
    order = np.argsort(ranks, kind="stable")
    shape = (processes, -1)
    return Passages(entered_us[order].reshape(shape).T, left_us[order].reshape(shape).T)


def together(parts: list[Passages]) -> Passages:
    """Concatenate passages of the same processes."""
    return Passages(
        np.concatenate([part.entered_us for part in parts]),
        np.concatenate([part.left_us for part in parts]),
    )
