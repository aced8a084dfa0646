"""Loads and fair rates of a plan with multipath: under equal splitting, and under hashing.

Hashing sends all packets from a host to another on one path. It is the hash of the rules, so that a
seed chooses the same paths as there and in the simulator. Equal splitting, to which spraying comes
close, is the mean of hashing over all seeds. Of adaptive routing, the channels on shortest paths
are split, without the escape; what it makes of them under load is for the simulator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless._core.simulator import select_members
from knotless.base.errors import PlanError
from knotless.routing.graphs.channels import Ints
from knotless.routing.graphs.next_hop_sets import NextHopSets
from knotless.routing.layers import Layers
from knotless.routing.plan import Plan
from knotless.topologies.numbering import mac_value
from knotless.traffic.contention import Lines, contention
from knotless.traffic.fairness import fair_rates
from knotless.traffic.patterns import Pattern

FAIR_FLOWS = 200_000
"""Limit of flows, over all seeds, for which fair rates are computed; more would take minutes."""


class HashedLines(Lines):
    """The channels of a plan with multipath, and those that the hash of a seed gives each flow."""

    def __init__(self, plan: Plan, seed: int) -> None:
        super().__init__(plan)
        self._sets, self.seed = _sets(plan), seed
        macs = [mac_value(host.mac) for host in plan.fabric.hosts]
        self._macs = np.array(macs, dtype=np.uint64)

    def channels_of(self, flows: Ints) -> list[Ints]:
        """Return the channels of ``flows``, an array for each hop; see :class:`Lines`."""
        source, to = flows[:, 0], flows[:, 1]
        sets, head = self._sets, self.plan.channels.head
        sizes, firsts = sets.sizes, sets.firsts
        at, target = self._target[source], self._target[to]
        hops = []
        while (moving := at != target).any():
            flow = np.flatnonzero(moving)
            here = target[flow], at[flow]
            ends = self._macs[source[flow]], self._macs[to[flow]]
            switches, counts = at[flow].astype(np.uint32), sizes[here].astype(np.uint16)
            place = select_members(self.seed, switches, *ends, counts)
            channel = np.full(len(flows), self.count, dtype=np.int32)
            channel[flow] = sets.channels[firsts[here] + place]
            at = at.copy()
            at[flow] = head[channel[flow]]
            hops.append(channel)
        return [self.host_line(source), *hops, self.host_line(to, receiving=True)]


class LayeredLines(Lines):
    """The channels of a plan with layers, and those that the hash of a seed gives each flow."""

    def __init__(self, plan: Plan, seed: int) -> None:
        super().__init__(plan)
        self._layers, self.seed = _layers(plan), seed
        macs = [mac_value(host.mac) for host in plan.fabric.hosts]
        self._macs = np.array(macs, dtype=np.uint64)

    def channels_of(self, flows: Ints) -> list[Ints]:
        """Return the channels of ``flows``, an array for each hop; see :class:`Lines`."""
        source, to = flows[:, 0], flows[:, 1]
        counts = np.full(len(flows), self._layers.count, dtype=np.uint16)
        switches, ends = (
            self._target[source].astype(np.uint32),
            (self._macs[source], self._macs[to]),
        )
        layer = select_members(self.seed, switches, *ends, counts)
        row = self.plan.routes.rows[source]
        channels = self._layers.channels[layer, row, self._target[to]]
        hops = np.where(channels >= 0, channels, np.int32(self.count)).T
        return [self.host_line(source), *hops, self.host_line(to, receiving=True)]


def lines_of_seed(plan: Plan, seed: int) -> Lines:
    """Return the channels that the hash of a seed gives each flow."""
    return HashedLines(plan, seed) if plan.layers is None else LayeredLines(plan, seed)


def split_loads(lines: Lines, flows: Ints) -> NDArray[np.float64]:
    """Return the flows on each channel if every choice splits them equally, (lines,)."""
    plan = lines.plan
    if plan.layers is not None:
        return _loads_of_layers(lines, plan.layers, flows)
    sets, head, count = _sets(plan), plan.channels.head, len(plan.channels.names)
    sizes, firsts = sets.sizes, sets.firsts
    loads = np.bincount(lines.host_line(flows[:, 0]), minlength=lines.count).astype(np.float64)
    loads += np.bincount(lines.host_line(flows[:, 1], receiving=True), minlength=lines.count)
    at, target = lines.switch_of(flows[:, 0]), lines.switch_of(flows[:, 1])
    cells = target.astype(np.int64) * count + at
    weights: NDArray[np.float64] = np.ones(len(flows))
    while len(cells):
        # Flows that meet at a switch on their way to another go on together.
        cells, merged = np.unique(cells, return_inverse=True)
        weights = np.bincount(merged, weights).astype(np.float64)
        to, at = np.divmod(cells, count)
        onward = to != at
        to, at, weights = to[onward], at[onward], weights[onward]
        size = sizes[to, at]
        each = np.repeat(np.arange(len(to)), size)
        place = np.arange(len(each)) - np.repeat(np.cumsum(size) - size, size)
        channel = sets.channels[firsts[to, at][each] + place]
        share = (weights / size)[each]
        loads += np.bincount(channel, share, lines.count)
        cells, weights = to[each] * count + head[channel], share
    return loads


@dataclass(frozen=True)
class MultipathAnalysis:
    """The loads and rates of a pattern under multipath.

    Attributes
    ----------
    flows : int
        The number of flows, in all phases.
    split : array of float64, shape (lines,)
        The load of each channel under equal splitting, the largest of all phases.
    hashed : array of int64, shape (seeds,)
        The largest load of a channel between switches under the hash of each seed.
    ratios : array of float64, shape (seeds,)
        The throughput ratio of each seed.
    fair_min, fair_mean : arrays of float64, shape (seeds,)
        The least and the mean of the flows' max-min fair rates, in Mbit/s; empty if there are more
        than :data:`FAIR_FLOWS` flows over all seeds.
    split_mbps : float
        The rate at which the first channel is full if all flows, split equally, send at one rate,
        in Mbit/s.

    """

    lines: Lines
    flows: int
    split: NDArray[np.float64]
    hashed: NDArray[np.int64]
    ratios: NDArray[np.float64]
    fair_min: NDArray[np.float64]
    fair_mean: NDArray[np.float64]
    split_mbps: float

    def metrics(self) -> dict[str, object]:
        """Return the metrics by name: of seeds the median, the 99th percentile and the worst."""
        between = self.split[: self.lines.switch_lines]
        values: dict[str, object] = {
            "flows": self.flows,
            "split_max_load": round(float(between.max(initial=0.0)), 6),
            "split_fair_mbps": round(self.split_mbps, 6),
        }
        if len(self.hashed):
            values["seeds"] = len(self.hashed)
            values |= _spread("hashed_max_load", self.hashed, low_is_worst=False)
            values |= _spread("hashed_throughput_ratio", self.ratios, low_is_worst=True)
        if len(self.fair_min):
            values |= _spread("hashed_fair_min_mbps", self.fair_min, low_is_worst=True)
            values |= _spread("hashed_fair_mean_mbps", self.fair_mean, low_is_worst=True)
        return values


def analyse_multipath(plan: Plan, pattern: Pattern, seed: int, seeds: int) -> MultipathAnalysis:
    """Analyse a pattern's flows on a plan with multipath, for ``seeds`` seeds of the hash.

    These count from 0. ``seed`` is that of the pattern. Frames that are sprayed or routed
    adaptively are split only.
    """
    lines = Lines(plan)
    split: NDArray[np.float64] = np.zeros(lines.count)
    for flows in pattern.phases(plan.fabric, seed):
        split = np.maximum(split, split_loads(lines, flows))
    capacity = lines.rates_mbps()
    hashed, ratios, fair_min, fair_mean = [], [], [], []
    count = sum(len(flows) for flows in pattern.phases(plan.fabric, seed))
    tried = seeds if plan.multipath in ("ecmp", "layers") else 0
    for number in range(tried):
        of_seed = lines_of_seed(plan, number)
        shared = contention(of_seed, pattern.phases(plan.fabric, seed))
        hashed.append(shared.max_channel_load)
        ratios.append(shared.throughput_ratio)
        if 0 < count * tried <= FAIR_FLOWS:
            rates = np.concatenate(
                [
                    fair_rates(of_seed.channels_of(flows), capacity)
                    for flows in pattern.phases(plan.fabric, seed)
                    if len(flows)
                ]
            )
            fair_min.append(float(rates.min()))
            fair_mean.append(float(rates.mean()))
    used = split > 0
    split_mbps = float((capacity[used] / split[used]).min()) if used.any() else 0.0
    return MultipathAnalysis(
        lines,
        count,
        split,
        np.array(hashed, dtype=np.int64),
        np.array(ratios),
        np.array(fair_min),
        np.array(fair_mean),
        split_mbps,
    )


def _spread(name: str, values: NDArray[Any], *, low_is_worst: bool) -> dict[str, object]:
    """Return the median of values, their 99th percentile towards the worst, and the worst."""
    ordered = sorted(values.tolist(), reverse=low_is_worst)
    percentiles = {"p50": 50, "p99": 99, "worst": 100}
    return {
        f"{name}_{key}": round(ordered[math.ceil(percent * (len(ordered) - 1) / 100)], 6)
        for key, percent in percentiles.items()
    }


def _loads_of_layers(lines: Lines, layers: Layers, flows: Ints) -> NDArray[np.float64]:
    """Return the flows on each channel if all layers carry an equal share of each."""
    loads = np.bincount(lines.host_line(flows[:, 0]), minlength=lines.count).astype(np.float64)
    loads += np.bincount(lines.host_line(flows[:, 1], receiving=True), minlength=lines.count)
    row, to = lines.plan.routes.rows[flows[:, 0]], lines.switch_of(flows[:, 1])
    for channels in layers.channels:
        taken = channels[row, to]
        loads += np.bincount(taken[taken >= 0], minlength=lines.count) / layers.count
    return loads


def _layers(plan: Plan) -> Layers:
    if plan.layers is None:
        raise PlanError("the plan has no layers")
    return plan.layers


def _sets(plan: Plan) -> NextHopSets:
    if plan.next_hops is None:
        raise PlanError("the plan has one path for each pair")
    if plan.next_hops.priorities is not None:
        return plan.next_hops.on_priority(0)  # the escape is for when these are not free
    return plan.next_hops
