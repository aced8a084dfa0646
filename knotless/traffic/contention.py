"""Contention: how simultaneous flows share the channels of a plan.

References
----------
Shimizu, Nakashima: all-to-all communication on Latin-square fat-trees, section 5 (the path-level
measure, there called throughput ratio).

"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.routing.graphs.channels import Ints
from knotless.routing.plan import Plan

_FLOWS_AT_ONCE = 1 << 16
"""Number of flows per batch; it limits memory, and larger batches are not faster."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Contention:
    """The contention of flows in phases. Channels are numbered as in :class:`Lines`.

    flows : the number of flows in all phases.
    throughput_ratio : the mean, over all flows, of 1 / (the largest number of flows in this phase
        on a channel of the flow's path), links to hosts included; 1.0 means no contention.
    max_channel_load : the largest number of flows on a channel between switches in one phase.
    max_host_load : the same for channels from or to hosts.
    peaks : (lines,) the largest number of flows on each channel in one phase.
    flows_by_load : entry k is the number of flows whose most loaded channel has k flows.
    """

    flows: int
    throughput_ratio: float
    max_channel_load: int
    max_host_load: int
    peaks: Counts
    flows_by_load: Counts


class Lines:
    """All channels of a plan, including those of hosts, and the channels of each flow.

    The channels between switches come first, in the plan's numbering, then those from hosts,
    then those to hosts, both in the order of the fabric's hosts.
    """

    def __init__(self, plan: Plan) -> None:
        fabric, routes = plan.fabric, plan.routes
        self.plan = plan
        self.switch_lines = len(plan.channels)
        self.count = self.switch_lines + 2 * len(fabric.hosts)
        self._switches = len(fabric.switches)
        switches = [fabric.switch_index[host.switch] for host in fabric.hosts]
        self._target = np.array(switches, dtype=np.int32)
        if plan.has_choices:
            return  # the channels of a flow are chosen by knotless.traffic.multipath
        self._row = routes.rows.astype(np.int64) * self._switches
        channels = np.where(routes.channels >= 0, routes.channels, self.count).astype(np.int32)
        self._hops = [channels[:, :, hop].reshape(-1) for hop in range(channels.shape[2])]

    def channels_of(self, flows: Ints) -> list[Ints]:
        """Return the channels of ``flows`` (flows, 2), one array for each hop.

        After the end of a path the entry is :attr:`count`, which is no channel's number.
        """
        if self.plan.has_choices:
            raise PlanError("with multipath, the channels of a flow depend on a seed")
        source, to = flows[:, 0], flows[:, 1]
        pair = self._row[source] + self._target[to]
        between = [hop[pair] for hop in self._hops]
        return [self.host_line(source), *between, self.host_line(to, receiving=True)]

    def switch_of(self, hosts: Ints) -> Ints:
        """Return the switch of each host."""
        return self._target[hosts]

    def host_line(self, hosts: Ints, *, receiving: bool = False) -> Ints:
        """Return the channel on which each host sends, or receives."""
        return self.switch_lines + hosts + (len(self._target) if receiving else 0)

    def names(self) -> list[str]:
        """Return ``SWITCH:PORT`` of the output port, or the name of the sending host."""
        channels, hosts = self.plan.channels, self.plan.fabric.hosts
        ends = zip(channels.tail.tolist(), channels.out_port.tolist(), strict=True)
        between = [f"{channels.names[tail]}:{port}" for tail, port in ends]
        to_hosts = [f"{host.switch}:{host.port}" for host in hosts]
        return [*between, *(host.name for host in hosts), *to_hosts]

    def rates_mbps(self) -> NDArray[np.float64]:
        """Return the line rate of each channel, in Mbit/s."""
        fabric, channels = self.plan.fabric, self.plan.channels
        rate: dict[tuple[str, int], float] = {}
        for link in fabric.links:
            rate[link.a, link.a_port] = rate[link.b, link.b_port] = link.rate_mbps
        ends = zip(channels.tail.tolist(), channels.out_port.tolist(), strict=True)
        between = [rate[channels.names[tail], port] for tail, port in ends]
        of_hosts = [host.rate_mbps for host in fabric.hosts]
        return np.array([*between, *of_hosts, *of_hosts])


def contention(lines: Lines, phases: Iterable[Ints]) -> Contention:
    """Count the flows on each channel in each phase; a phase is (flows, 2) hosts."""
    # Counted by load and summed as integers, so that 1.0 is exact.
    flows_by_load: Counts = np.zeros(1, dtype=np.int64)
    peaks: Counts = np.zeros(lines.count, dtype=np.int64)
    for flows, phase in _batches(phases):
        loads = np.zeros((int(phase[-1]) + 1, lines.count + 1), dtype=np.int64)
        for part in _parts(flows, phase):
            for numbered in _numbered(lines, *part):
                loads += np.bincount(numbered, minlength=loads.size).reshape(loads.shape)
        loads[:, lines.count] = 0
        peaks = np.maximum(peaks, loads[:, : lines.count].max(axis=0))
        flat = loads.reshape(-1).astype(np.int32)
        for part in _parts(flows, phase):
            first, *others = _numbered(lines, *part)
            largest = flat[first]
            for numbered in others:
                np.maximum(largest, flat[numbered], out=largest)
            flows_by_load = _sum(flows_by_load, np.bincount(largest))
    used = np.flatnonzero(flows_by_load)
    count = int(flows_by_load.sum())
    got = sum(int(flows_by_load[load]) / int(load) for load in used)
    return Contention(
        flows=count,
        throughput_ratio=got / count if count else 1.0,
        max_channel_load=int(peaks[: lines.switch_lines].max(initial=0)),
        max_host_load=int(peaks[lines.switch_lines :].max(initial=0)),
        peaks=peaks,
        flows_by_load=flows_by_load,
    )


def _sum(a: Counts, b: NDArray[np.intp]) -> Counts:
    """Add two arrays of counts, which may differ in length."""
    total: Counts = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


def _batches(phases: Iterable[Ints]) -> Iterator[tuple[Ints, Ints]]:
    """Yield the flows of several phases together, and the index of each flow's phase."""
    batch: list[Ints] = []
    size = 0
    for flows in phases:
        if batch and size + len(flows) > _FLOWS_AT_ONCE:
            yield _joined(batch)
            batch, size = [], 0
        if len(flows):
            batch.append(flows)
            size += len(flows)
    if batch:
        yield _joined(batch)


def _joined(batch: list[Ints]) -> tuple[Ints, Ints]:
    places = np.arange(len(batch), dtype=np.int32)
    return np.concatenate(batch), np.repeat(places, [len(flows) for flows in batch])


def _parts(flows: Ints, phase: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Split a batch: a single phase may be far larger than others."""
    for start in range(0, len(flows), 2 * _FLOWS_AT_ONCE):
        part = slice(start, start + 2 * _FLOWS_AT_ONCE)
        yield flows[part], phase[part]


def _numbered(lines: Lines, flows: Ints, phase: Ints) -> list[Ints]:
    """Return each hop's channels, with separate numbers for each phase."""
    first = phase * np.int32(lines.count + 1)
    return [channel + first for channel in lines.channels_of(flows)]
