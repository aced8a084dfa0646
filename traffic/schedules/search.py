"""All-to-all schedules for any hosts of any fabric: good beginnings, made better by search.

The search keeps what a schedule is: each phase a permutation, each pair in one phase. The flows
of two or three phases are dealt out among them anew; what comes out is kept when it shares no
more channels than before. It is bounded by a number of steps, and repeats exactly by its seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.graphs.channels import Ints
from topologies.fabric import Fabric
from traffic.contention import Contention, Lines, contention
from traffic.schedules.schedule import Schedule

MOST_HOSTS = 256
"""Schedules of more hosts are chosen among the beginnings, but not searched."""
_STEPS = 20_000
_WORK = 40_000
"""Steps times hosts: some ten seconds."""

Square = NDArray[np.int32]
"""(phases, hosts): the destination of each host in each phase, all places among the hosts."""


@dataclass(frozen=True)
class Found:
    """A schedule, what it gets, and the ratio that none can exceed on these paths."""

    schedule: Schedule
    contention: Contention
    ratio_bound: float


def find_schedule(lines: Lines, hosts: Ints, known: list[Schedule], seed: int = 1) -> Found:
    """Return the best schedule found for ``hosts`` (places in the fabric's hosts, any order).

    The beginnings are ``known`` schedules, of the same hosts in the same order, and those
    of :func:`beginnings`. A beginning without contention is taken at once.
    """
    bound = ratio_bound(lines, hosts)
    best: tuple[Contention, Schedule] | None = None
    for schedule in (*known, *beginnings(lines, hosts)):
        found = contention(lines, schedule.flows())
        if best is None or found.throughput_ratio > best[0].throughput_ratio:
            best = found, schedule
        if found.throughput_ratio == 1.0:
            break
    assert best is not None  # noqa: S101 - there is always the shift
    if best[0].throughput_ratio < min(1.0, bound) and len(hosts) <= MOST_HOSTS:
        square = _Search(lines, hosts, np.stack(list(best[1].phases())), seed).run()
        better = Schedule(f"{best[1].kind}, searched", hosts, lambda: iter(square))
        found = contention(lines, better.flows())
        if found.throughput_ratio > best[0].throughput_ratio:
            best = found, better
    return Found(best[1], best[0], bound)


def beginnings(lines: Lines, hosts: Ints) -> Iterator[Schedule]:
    """Yield the shift over the hosts in their order, and with neighbours on different switches.

    For a power of two, also the exchanges with the host whose number differs by some bits.
    """
    count = len(hosts)
    fabric = lines.plan.fabric
    places = _over_switches(fabric)
    spread = np.argsort(places[hosts], kind="stable").astype(np.int32)
    every = np.arange(count, dtype=np.int32)

    def ordered(kind: str, order: Ints, step: Square) -> Schedule:
        def phases() -> Iterator[Ints]:
            for to in step:
                destinations = np.empty(count, dtype=np.int32)
                destinations[order] = order[to]
                yield destinations

        return Schedule(kind, hosts, phases)

    shifts = (every[:, None] + every[None, :]) % count
    yield ordered("shift", every, shifts)
    yield ordered("shift over switches", spread, shifts)
    if count & (count - 1) == 0:
        exchanges = every[:, None] ^ every[None, :]
        yield ordered("exchange", every, exchanges)
        yield ordered("exchange over switches", spread, exchanges)


def some_hosts(fabric: Fabric, count: int) -> Ints:
    """Return ``count`` hosts, in the fabric's order, as evenly over the switches as can be."""
    return np.flatnonzero(_over_switches(fabric) < count).astype(np.int32)


def _over_switches(fabric: Fabric) -> Ints:
    """Return each host's place in an order that takes one host of each switch, then a second .."""
    rank = {host.name: r for at in fabric.hosts_at.values() for r, host in enumerate(at.values())}
    hosts, index = fabric.hosts, fabric.switch_index
    order = sorted(range(len(hosts)), key=lambda h: (rank[hosts[h].name], index[hosts[h].switch]))
    return np.argsort(order).astype(np.int32)


def ratio_bound(lines: Lines, hosts: Ints) -> float:
    """Return a throughput ratio that no schedule of ``hosts`` exceeds on these paths.

    In a phase the flows of one channel together get no more than 1. So of all flows that are
    counted for one channel, each for the channel of its path that most flows take, N phases give
    no more than N.
    """
    count = len(hosts)
    loads = np.zeros(lines.count + 1, dtype=np.int64)
    for source in hosts:
        for channel in lines.of(_from(source, hosts)):
            loads += np.bincount(channel, minlength=lines.count + 1)
    loads[lines.count] = 0
    counted = np.zeros(lines.count + 1, dtype=np.int64)
    for source in hosts:
        paths = np.stack(lines.of(_from(source, hosts)))
        fullest = paths[loads[paths].argmax(axis=0), np.arange(count)]
        counted += np.bincount(fullest, minlength=lines.count + 1)
    return float(np.minimum(counted, count).sum()) / count**2


def _from(source: np.int32, hosts: Ints) -> Ints:
    return np.stack([np.full_like(hosts, source), hosts], axis=1)


class _Search:
    """The square, and how often each phase uses each channel that can be contended for."""

    def __init__(self, lines: Lines, hosts: Ints, square: Square, seed: int) -> None:
        self.square = square
        self.count = len(hosts)
        self.random = np.random.default_rng(seed)
        # Links of hosts carry one flow in every phase: only those between switches matter.
        paths = [np.stack(lines.of(_from(source, hosts))[1:-1], axis=1) for source in hosts]
        self.paths = np.array(paths)
        self.none = lines.count
        used = np.unique(self.paths[self.paths < self.none])
        place = np.full(self.none + 1, len(used), dtype=np.int32)
        place[used] = np.arange(len(used))
        self.paths, self.none = place[self.paths], len(used)
        self.costs = np.array([self._cost(every) for every in square])

    def _cost(self, destinations: Ints) -> int:
        """Return how many pairs of flows share a channel, for each channel that they share."""
        taken = self.paths[np.arange(self.count), destinations].reshape(-1)
        loads = np.bincount(taken, minlength=self.none + 1)[: self.none]
        return int((loads * (loads - 1)).sum()) // 2

    def run(self) -> Square:
        """Deal phases out anew until none has contention or no step is left."""
        for _ in range(min(_STEPS, _WORK // self.count)):
            contended = np.flatnonzero(self.costs)
            if not len(contended):
                break
            first = int(self.random.choice(contended))
            others = self.random.choice(self.count, size=2, replace=False).tolist()
            phases = list(dict.fromkeys([first, *others]))
            dealt = self._deal(self.square[phases])
            costs = [self._cost(every) for every in dealt]
            if sum(costs) <= self.costs[phases].sum():
                self.square[phases], self.costs[phases] = dealt, costs
        return self.square

    def _deal(self, flows: Square) -> Square:
        """Return the flows of two or three phases in as many others: matchings, then cycles."""
        dealt = []
        if len(flows) == 3:
            dealt = [self._matching(flows)]
            pair = _without(flows, dealt[0])
            second = self._matching(pair)
            flows = np.stack([second, _without(pair, second)[0]])
        return np.stack([*dealt, *self._cycles(flows)]).astype(np.int32)

    def _matching(self, flows: Square) -> Ints:
        """Return a permutation drawn from the flows, each source by its emptiest path if it can.

        There is one: as many flows leave each host as enter it (Konig).
        """
        loads = np.zeros(self.none + 1, dtype=np.int64)
        sender = np.full(self.count, -1)
        for source in self.random.permutation(self.count).tolist():
            options = self.random.permutation(flows[:, source])
            paths = self.paths[source, options]
            crowd = np.where(paths < self.none, loads[paths], 0).sum(axis=1)
            to = options[int(np.argmin(crowd + self.count**2 * (sender[options] >= 0)))]
            if sender[to] < 0:
                sender[to] = source
                loads[self.paths[source, to]] += 1
            else:
                self._augment(flows, source, sender, set())
        matched = np.empty(self.count, dtype=np.int32)
        matched[sender] = np.arange(self.count)
        return matched

    def _augment(
        self, flows: Square, source: int, sender: NDArray[np.int64], seen: set[int]
    ) -> bool:
        """Give ``source`` a destination, others giving theirs up for another (Kuhn)."""
        for to in flows[:, source].tolist():
            if to not in seen:
                seen.add(to)
                if sender[to] < 0 or self._augment(flows, int(sender[to]), sender, seen):
                    sender[to] = source
                    return True
        return False

    def _cycles(self, flows: Square) -> list[Ints]:
        """Return two phases: each cycle of hosts takes the two flows round as shares less."""
        first, second = flows[0].copy(), flows[1].copy()
        by_first = np.empty(self.count, dtype=np.int64)
        by_first[first] = np.arange(self.count)
        onward = by_first[second]
        seen = np.zeros(self.count, dtype=bool)
        cost = self._cost(first) + self._cost(second)
        for start in self.random.permutation(self.count).tolist():
            if seen[start]:
                continue
            cycle = [start]
            while onward[cycle[-1]] != start:
                cycle.append(int(onward[cycle[-1]]))
            seen[cycle] = True
            if len(cycle) == self.count:
                break
            first[cycle], second[cycle] = second[cycle], first[cycle]
            swapped = self._cost(first) + self._cost(second)
            if swapped > cost or (swapped == cost and self.random.random() < 0.5):
                first[cycle], second[cycle] = second[cycle], first[cycle]
            else:
                cost = swapped
        return [first, second]


def _without(flows: Square, taken: Ints) -> Square:
    """Return the flows without one of each source."""
    left: Square = flows.T[taken[:, None] != flows.T].reshape(len(taken), -1).T
    return left
