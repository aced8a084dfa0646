"""Local search for all-to-all schedules of any hosts of any fabric.

Each phase stays a permutation, and each pair stays in one phase. A step redistributes the flows
of two or three phases among these phases, and the result is kept if it shares no more channels
than before. The number of steps is bounded, and a seed gives the same result each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless.routing.graphs.channels import Ints
from knotless.topologies.fabric import Fabric, hosts_across_switches
from knotless.traffic.contention import Contention, Lines, contention
from knotless.traffic.schedules.schedule import Schedule

MAX_HOSTS = 256
"""Largest number of hosts to search for; with more, the best initial schedule is used."""
_STEPS = 20_000
_WORK = 40_000
"""Limit of steps times hosts: about ten seconds."""

Square = NDArray[np.int32]
"""(phases, hosts): the destination of each host in each phase, as indices of the hosts."""


@dataclass(frozen=True)
class SearchResult:
    """A schedule, its contention, and an upper bound of the throughput ratio on these paths."""

    schedule: Schedule
    contention: Contention
    ratio_bound: float


def find_schedule(
    lines: Lines, hosts: Ints, candidates: list[Schedule], seed: int = 1
) -> SearchResult:
    """Return the best schedule found for ``hosts`` (indices in the fabric, in any order).

    The search starts from ``candidates`` schedules, of the same hosts in the same order, and those
    of :func:`initial_schedules`. One without contention is returned at once.
    """
    bound = ratio_bound(lines, hosts)
    best: tuple[Contention, Schedule] | None = None
    for schedule in (*candidates, *initial_schedules(lines, hosts)):
        contended = contention(lines, schedule.flows())
        if best is None or contended.throughput_ratio > best[0].throughput_ratio:
            best = contended, schedule
        if contended.throughput_ratio == 1.0:
            break
    assert best is not None  # noqa: S101 - shift is always one of them
    if best[0].throughput_ratio < min(1.0, bound) and len(hosts) <= MAX_HOSTS:
        square = _Search(lines, hosts, np.stack(list(best[1].phases())), seed).run()
        better = Schedule(f"{best[1].kind}, searched", hosts, lambda: iter(square))
        contended = contention(lines, better.flows())
        if contended.throughput_ratio > best[0].throughput_ratio:
            best = contended, better
    return SearchResult(best[1], best[0], bound)


def initial_schedules(lines: Lines, hosts: Ints) -> Iterator[Schedule]:
    """Yield shift over the hosts in order, and over an order that alternates switches.

    For a power of two, also exchanges: the numbers of the two hosts differ in some bits.
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
    """Return ``count`` hosts, in the fabric's order, distributed evenly over the switches."""
    return np.flatnonzero(_over_switches(fabric) < count).astype(np.int32)


def _over_switches(fabric: Fabric) -> Ints:
    """Return each host's rank in an order with one host of each switch, then a second, .."""
    return np.argsort(hosts_across_switches(fabric)).astype(np.int32)


def ratio_bound(lines: Lines, hosts: Ints) -> float:
    """Return an upper bound of the throughput ratio of any schedule of ``hosts``.

    The flows on one channel in a phase get at most 1 together. Count each flow on the channel of
    its path that most flows take: then the flows counted on a channel get at most N in N phases.
    """
    count = len(hosts)
    loads = np.zeros(lines.count + 1, dtype=np.int64)
    for source in hosts:
        for channel in lines.channels_of(_from(source, hosts)):
            loads += np.bincount(channel, minlength=lines.count + 1)
    loads[lines.count] = 0
    counted = np.zeros(lines.count + 1, dtype=np.int64)
    for source in hosts:
        paths = np.stack(lines.channels_of(_from(source, hosts)))
        fullest = paths[loads[paths].argmax(axis=0), np.arange(count)]
        counted += np.bincount(fullest, minlength=lines.count + 1)
    return float(np.minimum(counted, count).sum()) / count**2


def _from(source: np.int32, hosts: Ints) -> Ints:
    return np.stack([np.full_like(hosts, source), hosts], axis=1)


class _Search:
    """The square, and the number of flows on each contended channel in each phase."""

    def __init__(self, lines: Lines, hosts: Ints, square: Square, seed: int) -> None:
        self.square = square
        self.count = len(hosts)
        self.rng = np.random.default_rng(seed)
        # Links of hosts carry one flow in every phase, so only channels between switches matter.
        paths = [
            np.stack(lines.channels_of(_from(source, hosts))[1:-1], axis=1) for source in hosts
        ]
        self.paths = np.array(paths)
        self.none = lines.count
        used = np.unique(self.paths[self.paths < self.none])
        place = np.full(self.none + 1, len(used), dtype=np.int32)
        place[used] = np.arange(len(used))
        self.paths, self.none = place[self.paths], len(used)
        self.costs = np.array([self._cost(every) for every in square])

    def _cost(self, destinations: Ints) -> int:
        """Return the number of pairs of flows that share a channel, summed over channels."""
        channels = self.paths[np.arange(self.count), destinations].reshape(-1)
        loads = np.bincount(channels, minlength=self.none + 1)[: self.none]
        return int((loads * (loads - 1)).sum()) // 2

    def run(self) -> Square:
        """Redistribute phases until none has contention or no steps remain."""
        for _ in range(min(_STEPS, _WORK // self.count)):
            contended = np.flatnonzero(self.costs)
            if not len(contended):
                break
            first = int(self.rng.choice(contended))
            others = self.rng.choice(self.count, size=2, replace=False).tolist()
            phases = list(dict.fromkeys([first, *others]))
            dealt = self._redistribute(self.square[phases])
            costs = [self._cost(every) for every in dealt]
            if sum(costs) <= self.costs[phases].sum():
                self.square[phases], self.costs[phases] = dealt, costs
        return self.square

    def _redistribute(self, flows: Square) -> Square:
        """Return the flows of two or three phases as the same number of new permutations."""
        dealt = []
        if len(flows) == 3:
            dealt = [self._matching(flows)]
            pair = _without(flows, dealt[0])
            second = self._matching(pair)
            flows = np.stack([second, _without(pair, second)[0]])
        return np.stack([*dealt, *self._cycles(flows)]).astype(np.int32)

    def _matching(self, flows: Square) -> Ints:
        """Return a permutation of the flows that prefers, for each source, the emptiest path.

        One exists, because the same number of flows leave and enter each host (Konig).
        """
        loads = np.zeros(self.none + 1, dtype=np.int64)
        sender = np.full(self.count, -1)
        for source in self.rng.permutation(self.count).tolist():
            options = self.rng.permutation(flows[:, source])
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
        """Find a destination for ``source``, reassigning other sources if needed (Kuhn)."""
        for to in flows[:, source].tolist():
            if to not in seen:
                seen.add(to)
                if sender[to] < 0 or self._augment(flows, int(sender[to]), sender, seen):
                    sender[to] = source
                    return True
        return False

    def _cycles(self, flows: Square) -> list[Ints]:
        """Return two phases: each cycle of hosts takes the two flows in the better order."""
        first, second = flows[0].copy(), flows[1].copy()
        by_first = np.empty(self.count, dtype=np.int64)
        by_first[first] = np.arange(self.count)
        onward = by_first[second]
        seen = np.zeros(self.count, dtype=bool)
        cost = self._cost(first) + self._cost(second)
        for start in self.rng.permutation(self.count).tolist():
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
            if swapped > cost or (swapped == cost and self.rng.random() < 0.5):
                first[cycle], second[cycle] = second[cycle], first[cycle]
            else:
                cost = swapped
        return [first, second]


def _without(flows: Square, removed: Ints) -> Square:
    """Return the flows without one of each source."""
    remaining: Square = flows.T[removed[:, None] != flows.T].reshape(len(removed), -1).T
    return remaining
