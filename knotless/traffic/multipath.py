"""Loads and fair rates of a plan with multipath: under equal splitting, and under hashing.

Hashing sends all packets from a host to another on one path. It is the hash of the rules, so that a
seed chooses the same paths as there and in the simulator. Equal splitting, to which spraying comes
close, is the mean of hashing over all seeds. Of adaptive routing, the channels on shortest paths
are split, without the escape; where first switches choose by their queues, loads are those of
stated shares of direct paths. What becomes of both under load is for the simulator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless._core.simulator import select_members
from knotless.routing.choices.choice import Binding, Flows, Loads
from knotless.routing.graphs.channels import Ints
from knotless.routing.plan import Plan
from knotless.topologies.numbering import mac_value
from knotless.traffic.contention import Lines, contention
from knotless.traffic.fairness import fair_rates
from knotless.traffic.patterns import Pattern

Numbers = NDArray[Any]
FAIR_FLOWS = 200_000
"""Limit of flows, over all seeds, for which fair rates are computed; more would take minutes."""


class HashedLines(Lines):
    """The channels of a plan with multipath, and those that the hash of a seed gives each flow."""

    def __init__(self, plan: Plan, seed: int) -> None:
        super().__init__(plan)
        self.seed = seed
        macs = [mac_value(host.mac) for host in plan.fabric.hosts]
        self._macs = np.array(macs, dtype=np.uint64)

    def channels_of(self, flows: Ints) -> list[Ints]:
        """Return the channels of ``flows``, an array for each hop; see :class:`Lines`."""
        source, to = flows[:, 0], flows[:, 1]

        def pick(flow: Numbers, switches: Numbers, counts: Numbers) -> Ints:
            ends = self._macs[source[flow]], self._macs[to[flow]]
            places = switches.astype(np.uint32), *ends, counts.astype(np.uint16)
            return select_members(self.seed, *places).astype(np.int32)

        hops = self.plan.choice.hashed_hops(_located(self, flows), pick)
        between = [np.where(hop >= 0, hop, np.int32(self.count)) for hop in hops]
        return [self.host_line(source), *between, self.host_line(to, receiving=True)]


def _located(lines: Lines, flows: Ints) -> Flows:
    """Return flows with their rows and switches."""
    ends = lines.switch_of(flows[:, 0]), lines.switch_of(flows[:, 1])
    return Flows(lines.plan, lines.plan.routes.rows[flows[:, 0]], *ends)


def split_loads(lines: Lines, flows: Ints) -> dict[str, Loads]:
    """Return the flows on each channel if choices carry equal shares, (lines,), by case.

    See :meth:`Choice.split_loads <knotless.routing.choices.choice.Choice.split_loads>`.
    """
    plan = lines.plan
    of_hosts = np.bincount(lines.host_line(flows[:, 0]), minlength=lines.count)
    of_hosts += np.bincount(lines.host_line(flows[:, 1], receiving=True), minlength=lines.count)
    of_cases: dict[str, Loads] = {}
    for name, between in plan.choice.split_loads(_located(lines, flows)).items():
        of_cases[name] = of_hosts.astype(np.float64)
        of_cases[name][: lines.switch_lines] += between
    return of_cases


@dataclass(frozen=True)
class MultipathAnalysis:
    """The loads and rates of a pattern under multipath.

    Attributes
    ----------
    flows : int
        The number of flows, in all phases.
    loads : mapping of str to array of float64, shape (lines,)
        The load of each channel for each case of equal splitting, the largest of all phases.
    capacity : array of float64, shape (lines,)
        The line rate of each channel, in Mbit/s.
    hashed : array of int64, shape (seeds,)
        The largest load of a channel between switches under the hash of each seed.
    ratios : array of float64, shape (seeds,)
        The throughput ratio of each seed.
    fair_min, fair_mean : arrays of float64, shape (seeds,)
        The least and the mean of the flows' max-min fair rates, in Mbit/s; empty if there are more
        than :data:`FAIR_FLOWS` flows over all seeds.

    """

    lines: Lines
    flows: int
    loads: dict[str, Loads]
    capacity: Loads
    hashed: NDArray[np.int64]
    ratios: Loads
    fair_min: Loads
    fair_mean: Loads

    @property
    def default_loads(self) -> Loads:
        """The load of each channel in the case that files of loads have."""
        return self.loads[self.lines.plan.choice.default_loads]

    def metrics(self) -> dict[str, object]:
        """Return the metrics by name.

        For each case of equal splitting, the largest load of a channel between switches, and the
        rate at which the first channel is full if all flows send at one rate. Of seeds the median,
        the 99th percentile and the worst.
        """
        values: dict[str, object] = {"flows": self.flows}
        for name, loads in self.loads.items():
            between, used = loads[: self.lines.switch_lines], loads > 0
            rate_mbps = (self.capacity[used] / loads[used]).min() if used.any() else 0.0
            values[f"{name}_max_load"] = round(float(between.max(initial=0.0)), 6)
            values[f"{name}_fair_mbps"] = round(float(rate_mbps), 6)
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

    These count from 0. ``seed`` is that of the pattern. Where no hash chooses, flows are split
    only.

    Raises
    ------
    PlanError
        The plan has one path for each pair.

    """
    lines = Lines(plan)
    loads: dict[str, Loads] = {}
    for flows in pattern.phases(plan.fabric, seed):
        for name, split in split_loads(lines, flows).items():
            loads[name] = np.maximum(loads.get(name, 0.0), split)
    capacity = lines.rates_mbps()
    hashed, ratios, fair_min, fair_mean = [], [], [], []
    count = sum(len(flows) for flows in pattern.phases(plan.fabric, seed))
    tried = seeds if plan.choice.binding is Binding.HASH else 0
    for number in range(tried):
        of_seed = HashedLines(plan, number)
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
    return MultipathAnalysis(
        lines,
        count,
        loads,
        capacity,
        np.array(hashed, dtype=np.int64),
        np.array(ratios),
        np.array(fair_min),
        np.array(fair_mean),
    )


def _spread(name: str, values: NDArray[Any], *, low_is_worst: bool) -> dict[str, object]:
    """Return the median of values, their 99th percentile towards the worst, and the worst."""
    ordered = sorted(values.tolist(), reverse=low_is_worst)
    percentiles = {"p50": 50, "p99": 99, "worst": 100}
    return {
        f"{name}_{key}": round(ordered[math.ceil(percent * (len(ordered) - 1) / 100)], 6)
        for key, percent in percentiles.items()
    }
