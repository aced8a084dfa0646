"""How much of the line rate an all-to-all schedule gets on a Latin-square fat-tree.

Paths are what the fabric has: one through the one spine that two leaves share. Where two
leaves are the two sides of one point any spine of theirs will do, and the source's place on its
leaf chooses it, as the spread of a routing engine does.

References
----------
Shimizu, Nakashima: all-to-all communication on Latin-square fat-trees, section 5 (the path-level
measure).

"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from routing.channels import Ints
from routing.latin_square import LatinSquare
from routing.schedule import Schedule

_FLOWS_AT_ONCE = 1 << 16
"""Bounds memory; larger ones are no faster."""


@dataclass(frozen=True)
class Contention:
    """What a schedule gets.

    throughput_ratio : the mean, over all flows and phases, of 1 / (flows on the fullest channel
        of the flow's path), links to hosts included; 1.0 is free of contention.
    max_channel_load : the most flows that share a channel in one phase.
    """

    throughput_ratio: float
    max_channel_load: int


def contention(schedule: Schedule, square: LatinSquare) -> Contention:
    """Route every flow of every phase over its path and count what shares channels."""
    measure = _Measure(schedule, square)
    together = max(1, _FLOWS_AT_ONCE // len(schedule.hosts))
    # Counted by load and summed as whole numbers, so that 1.0 is exact.
    flows_by_load = np.zeros(square.leaves * square.hosts + 1, dtype=np.int64)
    phases = schedule.phases()
    while batch := list(islice(phases, together)):
        found = np.bincount(measure.largest_loads(np.stack(batch)))
        flows_by_load[: len(found)] += found
    loads = np.flatnonzero(flows_by_load)
    got = sum(int(flows_by_load[load]) / int(load) for load in loads)
    return Contention(got / int(flows_by_load.sum()), int(loads.max()))


class _Measure:
    """The channels of every path, looked up by its two leaves.

    Each channel between switches is numbered by a leaf and the place of the link there, up
    links and down links alike; one number more stands for 'none' (both ends on one leaf).
    """

    def __init__(self, schedule: Schedule, square: LatinSquare) -> None:
        points, self.degree = len(square.lines), square.order + 1
        self.leaves, self.none = square.leaves, square.leaves * self.degree
        self.leaf, self.place = np.divmod(schedule.hosts, square.hosts)
        leaf = np.arange(self.leaves, dtype=np.int32)
        point = leaf % points
        up = leaf[:, None] * self.degree + square.up_link()[point[:, None], point[None, :]]
        up[leaf, leaf] = self.none
        down = up.T.copy()
        self.up, self.down = up.reshape(-1), down.reshape(-1)
        self.mirrors = square.sides > 1
        self.points = points

    def largest_loads(self, to: Ints) -> Ints:
        """Return, flow by flow of ``to`` (phases, hosts), the load of its fullest channel."""
        target = self.leaf[to]
        pair = target + self.leaf * self.leaves
        up, down = self.up[pair], self.down[pair]
        if self.mirrors:
            apart = np.abs(target - self.leaf) == self.points
            chosen = np.broadcast_to(self.place % self.degree, to.shape)
            up = np.where(apart, self.leaf * self.degree + chosen, up)
            down = np.where(apart, target * self.degree + chosen, down)
        # The link to the source's host carries its one flow.
        largest = np.maximum(self._loads(to, len(self.leaf)), 1)
        for channel in (up, down):
            largest = np.maximum(largest, self._loads(channel, self.none))
        return largest.reshape(-1)

    def _loads(self, channel: Ints, none: int) -> Ints:
        """Return how many flows of its phase use the channel of each flow; 0 for ``none``."""
        first = np.arange(len(channel), dtype=np.int32)[:, None] * np.int32(none + 1)
        numbered = (channel + first).reshape(-1)
        counts = np.bincount(numbered, minlength=len(channel) * (none + 1)).astype(np.int32)
        counts.reshape(-1, none + 1)[:, none] = 0
        return counts[numbered].reshape(channel.shape)
