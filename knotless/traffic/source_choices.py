"""Loads and fair rates of a plan whose first switches choose, for stated shares of both choices.

Which share of a flow's frames goes over intermediates depends on queues, and is for the simulator.
What is exact is what links must carry if all frames go directly, if none does that has another
choice, and if half of them do. Frames over intermediates use all of them equally.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.source_choices import SourceChoices
from knotless.routing.plan import Plan
from knotless.traffic.contention import Lines
from knotless.traffic.patterns import Pattern

Loads = NDArray[np.float64]
SHARES = {"minimal": 0.0, "half": 0.5, "valiant": 1.0}
"""The shares of frames that go over an intermediate."""


@dataclass(frozen=True)
class SourceChoiceAnalysis:
    """The loads and rates of a pattern for each of :data:`SHARES`.

    Attributes
    ----------
    lines : Lines
        All channels.
    flows : int
        The number of flows, in all phases.
    loads : mapping of str to array of float64, shape (lines,)
        The load of each channel, the largest of all phases.
    capacity : array of float64, shape (lines,)
        The line rate of each channel, in Mbit/s.

    """

    lines: Lines
    flows: int
    loads: dict[str, Loads]
    capacity: Loads

    @property
    def split(self) -> Loads:
        """The load of each channel if half of the frames go over an intermediate."""
        return self.loads["half"]

    def metrics(self) -> dict[str, object]:
        """Return the metrics by name.

        The largest load of a channel between switches, and the rate at which the first channel is
        full if all flows send at one rate.
        """
        values: dict[str, object] = {"flows": self.flows}
        for name, loads in self.loads.items():
            between, used = loads[: self.lines.switch_lines], loads > 0
            rate_mbps = (self.capacity[used] / loads[used]).min() if used.any() else 0.0
            values[f"{name}_max_load"] = round(float(between.max(initial=0.0)), 6)
            values[f"{name}_fair_mbps"] = round(float(rate_mbps), 6)
        return values


def analyse_source_choices(plan: Plan, pattern: Pattern, seed: int) -> SourceChoiceAnalysis:
    """Analyse a pattern's flows on a plan whose first switches choose.

    Raises PlanError if they do not.
    """
    if plan.source_choices is None:
        raise PlanError(f"{plan.engine} leaves no choice to the first switch")
    lines = Lines(plan)
    loads: dict[str, Loads] = {name: np.zeros(lines.count) for name in SHARES}
    count = 0
    for flows in pattern.phases(plan.fabric, seed):
        count += len(flows)
        direct, around = both_loads(lines, plan.source_choices, flows)
        for name, share in SHARES.items():
            loads[name] = np.maximum(loads[name], (1 - share) * direct + share * around)
    return SourceChoiceAnalysis(lines, count, loads, lines.rates_mbps())


def both_loads(lines: Lines, choices: SourceChoices, flows: Ints) -> tuple[Loads, Loads]:
    """Return the load of each channel if all frames go directly, and if none does that can.

    Both (lines,), in flows. Of a flow that has intermediates, each carries an equal share.
    """
    of_hosts = np.bincount(lines.host_line(flows[:, 0]), minlength=lines.count)
    of_hosts += np.bincount(lines.host_line(flows[:, 1], receiving=True), minlength=lines.count)
    count = len(lines.plan.channels.names)
    ends = lines.switch_of(flows[:, 1]).astype(np.int64) * count + lines.switch_of(flows[:, 0])
    cells, weights = np.unique(ends, return_counts=True)
    target, source = (part.astype(np.int32) for part in np.divmod(cells, count))
    directly = np.full(len(cells), -1, dtype=np.int32)
    direct = _loads(lines, choices, source, target, directly, weights.astype(np.float64))
    counts = choices.counts[target, source]
    sizes = np.maximum(counts, 1)
    each = np.repeat(np.arange(len(cells)), sizes)
    place = np.arange(len(each)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = choices.ends[target, source].astype(np.int64) - counts
    padded = np.append(choices.over.astype(np.int32), np.int32(-1))
    over = np.where(counts[each] > 0, padded[first[each] + place], np.int32(-1))
    shares = weights[each] / sizes[each]
    around = _loads(lines, choices, source[each], target[each], over, shares)
    return direct + of_hosts, around + of_hosts


def _loads(
    lines: Lines, choices: SourceChoices, source: Ints, target: Ints, over: Ints, weights: Loads
) -> Loads:
    """Return the load of each channel by paths of these ``weights``."""
    loads = np.zeros(lines.count)
    for channel, _ in choices.tables.hops(lines.plan.channels, source, target, over):
        moving = channel >= 0
        loads += np.bincount(channel[moving], weights[moving], lines.count)
    return loads
