"""Plots of collective operations: when their hosts finish, beside the lower bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from knotless.results.plots import BLUE, GRID, INK, RED
from knotless.simulation.result import Result
from knotless.simulation.units import PICOSECONDS_PER_US
from knotless.simulation.workload import CollectiveRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LABELLED = 8
"""The most groups that have their number and ratio beside them; of more, only some have."""


@dataclass(frozen=True)
class GroupTimes:
    """The times at which the hosts of a group have finished, by rank, and the lower bound.

    A group is all hosts of a collective operation, or those of a rail. A host that has not
    finished has None; ``bound_us`` is None where no bound is known.
    """

    hosts_us: tuple[float | None, ...]
    bound_us: float | None

    @property
    def time_us(self) -> float | None:
        """The time at which the last host has finished; None if one has not."""
        finished = [time for time in self.hosts_us if time is not None]
        return max(finished) if len(finished) == len(self.hosts_us) else None

    @property
    def highest_us(self) -> float:
        """The latest of the bound and the times of the hosts that have finished."""
        return max(self.bound_us or 0, *(time or 0 for time in self.hosts_us))

    @property
    def label(self) -> str:
        """The time over the bound; empty without a bound."""
        if self.time_us is None:
            return "not\nfinished"
        return f"{self.time_us / self.bound_us:.3f} x" if self.bound_us else ""


def group_times(result: Result) -> list[GroupTimes]:
    """Return the times of the groups of a collective operation; empty for other traffic."""
    workload = result.scenario.demand.workload
    if not isinstance(workload, CollectiveRun) or result.ends is None:
        return []
    times_us = [
        None if time is None else time / PICOSECONDS_PER_US for time in result.ends.times_ps()
    ]
    groups = workload.groups(result.scenario.plan.fabric)
    return [
        GroupTimes(tuple(times_us[host] for host in hosts), bound_us)
        for hosts, bound_us in zip(groups, result.bounds_us or [None] * len(groups), strict=True)
    ]


def plot_collective(axes: Axes, groups: Sequence[GroupTimes]) -> None:
    """Draw a bar for the time of each group, with its hosts as points and its bound as a line."""
    size = len(groups[0].hosts_us)
    centres = [number * size + (size - 1) / 2 for number in range(len(groups))]
    times_us = [group.time_us or 0 for group in groups]
    axes.bar(centres, times_us, size - 0.4, color=GRID, label="operation")
    hosts_us = [time for group in groups for time in group.hosts_us]
    finished = [(rank, time) for rank, time in enumerate(hosts_us) if time is not None]
    ranks, ends_us = np.array(finished).reshape(-1, 2).T
    axes.plot(ranks, ends_us, "o", color=BLUE, markersize=3, zorder=3, label="host")
    bounds_us = [group.bound_us for group in groups if group.bound_us is not None]
    if bounds_us:
        left = np.arange(len(bounds_us)) * size - 0.5
        label = "lower bound (1 x)"
        axes.hlines(bounds_us, left, left + size, colors=RED, linestyles="--", label=label)
    labelled = slice(None, None, -(-len(groups) // MAX_LABELLED))
    for centre, group in list(zip(centres, groups, strict=True))[labelled]:
        axes.annotate(
            *(group.label, (centre, group.highest_us)),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            fontsize=7 if len(groups) > 1 else 10,
            color=INK,
        )
    if len(groups) > 1:
        axes.set_xticks(centres[labelled], [str(n + 1) for n in range(len(groups))][labelled])
    else:
        axes.locator_params(axis="x", integer=True)
    axes.set(xlabel="rank" if len(groups) == 1 else "rail", ylabel="finished after, us")
    axes.set_ylim(0, 1.5 * max(group.highest_us for group in groups) or 1)
    axes.legend(loc="upper left", ncols=3, fontsize=8, columnspacing=1, handletextpad=0.5)
