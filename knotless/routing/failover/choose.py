"""The choice of backups: greedy, and only such as close no cycle during any single failure.

For each link and each switch that may fail there is a graph of virtual channels. It has the
dependencies of the intact plan, those of channels that the failure ends included, so that the proof
also holds while the part returns; and those of all backups that the failure puts in use. A backup
is taken if no cycle closes in the graphs of its link and of the switch at the end of it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from knotless.base.errors import PlanError
from knotless.base.flow_control import refuse_bubbles
from knotless.base.model_limits import PRIORITIES
from knotless.routing.failover.backups import FIRST_LABEL, MAX_LABELS, Backup, Backups
from knotless.routing.failover.reach import Reach
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import merged, waiting
from knotless.routing.plan import Plan, distinct_rows
from knotless.routing.repair import failed_channels
from knotless.routing.routes import dependencies

LONGER = 2
"""Channels by which a path in a label that is in use may exceed the shortest in a new one."""
_TRIES = 8
"""Searches for one backup, each without a dependency that closed a cycle with others of its path"""

_last: list[tuple[Plan, Backups]] = []
"""The backups of the last plan, which is compiled several times."""


def backup_priority(plan: Plan) -> int:
    """Return the priority of diverted packets: one that the plan does not use, if PFC has one."""
    links = plan.flow_control.switch_links
    return min(plan.vcs, PRIORITIES - 1) if links.by_priority else 0


def choose_backups(plan: Plan) -> Backups:
    """Return backups for a plan, with as few labels as a greedy choice needs.

    The (channel, destination) with the most pairs of hosts come first, then the lowest numbers.
    Each takes a shortest path, in the first label in which it is at most :data:`LONGER` channels
    longer than the shortest one.

    Raises
    ------
    PlanError
        The plan can deadlock, or uses too many VLANs.

    """
    refuse_bubbles(plan.flow_control, "backup paths")
    if int(plan.pair_vlans.max()) >= FIRST_LABEL:
        raise PlanError(
            f"{plan.fabric.name}: backup paths need VLANs from {FIRST_LABEL} on, which the plan"
            " uses; reduce --max-vlans, or omit --protection"
        )
    if not _last or _last[0][0] is not plan:
        _last[:] = [(plan, _Choice(plan).choose())]
    return _last[0][1]


class _Choice:
    def __init__(self, plan: Plan) -> None:
        self.plan, self.channels = plan, plan.channels
        self.priority = backup_priority(plan)
        self.links = plan.flow_control.switch_links
        every = np.arange(len(self.channels) * VCS_PER_CHANNEL)
        self.merged: list[int] = merged(every, self.links).tolist()
        classes = self.links.classes
        self.is_own = self.links.pauses and classes[self.priority] not in classes[: plan.vcs]
        self.head, self.tail = self.channels.head.tolist(), self.channels.tail.tolist()
        self.reverse = self.channels.reverse.tolist()
        dead = failed_channels(plan, plan.failures)
        self.leaving: list[list[int]] = [[] for _ in self.channels.names]
        for channel, switch in enumerate(self.tail):
            if not dead[channel]:
                self.leaving[switch].append(channel)
        self.edges = self._edges()
        self.number = {node: i for i, node in enumerate(sorted(self._nodes()))}
        self.intact = self._reach()
        self.graphs: dict[tuple[str, int], Reach] = {}
        self.next_hop: dict[tuple[int, int, int], int] = {}
        self.labels = 0
        self.distances: dict[int, list[int]] = {}

    def choose(self) -> Backups:
        chosen: dict[tuple[int, int], Backup] = {}
        returning: set[tuple[int, int]] = set()
        arrivals, pairs = self._uses()
        for channel, to in sorted(pairs, key=lambda use: (-pairs[use], use)):
            before = arrivals[channel, to]
            path = self._add(channel, to, before, whole=True)
            if path is None:  # if only the link fails, the switch at its end may be on the path
                path = self._add(channel, to, before, whole=False)
            if path is None:
                continue
            chosen[channel, to] = Backup(*path)
            if any(node // VCS_PER_CHANNEL == self.reverse[path[0]] for node in before):
                returning.add((channel, to))
        none = frozenset(pairs.keys() - chosen.keys())
        return Backups(self.priority, chosen, none, self.next_hop, frozenset(returning))

    def _uses(self) -> tuple[dict[tuple[int, int], list[int]], dict[tuple[int, int], int]]:
        """Return the nodes before each (channel, destination), and its pairs of hosts."""
        plan = self.plan
        paths = plan.routes.channels.astype(np.int64)
        nodes = np.where(paths >= 0, paths * VCS_PER_CHANNEL + plan.routes.priorities, -1)
        before = np.full_like(nodes, -1)
        before[:, :, 1:] = nodes[:, :, :-1]
        row, to, place = np.nonzero((paths >= 0) & (plan.receivers > 0)[None, :, None])
        used, previous = paths[row, to, place], before[row, to, place]
        arrivals: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for channel, end, node in distinct_rows(used, to, previous + 1):
            arrivals[channel, end] += [node - 1] if node else []
        weights: defaultdict[tuple[int, int], int] = defaultdict(int)
        share = plan.senders[row].astype(np.int64) * plan.receivers[to]
        for channel, end, count in zip(used.tolist(), to.tolist(), share.tolist(), strict=True):
            weights[channel, end] += count
        return arrivals, weights

    def _edges(self) -> list[tuple[int, int]]:
        """Return the dependencies of the intact plan under its flow control."""
        unicast, flood = dependencies(self.channels, self.plan.routes, self.plan.receivers)
        stacked = np.stack([unicast, flood], axis=1).astype(np.int64)
        return [(a, b) for a, b in waiting(stacked, self.plan.flow_control).tolist()]

    def _nodes(self) -> set[int]:
        nodes = {node for edge in self.edges for node in edge}
        return nodes | {self.merged[self._node(channel)] for channel in range(len(self.channels))}

    def _reach(self) -> Reach:
        number = self.number
        try:
            intact = Reach.from_edges(len(number), ((number[a], number[b]) for a, b in self.edges))
        except ValueError:
            raise PlanError(
                f"{self.plan.engine} on {self.plan.fabric.name} can deadlock, so no backup path"
                " can be proven; omit --protection, or choose another plan"
            ) from None
        return Reach.from_edges(len(number), ()) if self.is_own else intact

    def _node(self, channel: int) -> int:
        return channel * VCS_PER_CHANNEL + self.priority

    def _graphs(self, channel: int) -> list[Reach]:
        """Return the graphs of the failures that put backups of a channel in use."""
        link = min(channel, self.reverse[channel])
        keys = [("link", link), ("switch", self.head[channel])]
        for key in keys:
            if key not in self.graphs:
                self.graphs[key] = self.intact.copy()
        return [self.graphs[key] for key in keys]

    def _add(
        self, channel: int, to: int, before: list[int], *, whole: bool
    ) -> tuple[int, int] | None:
        """Take a backup, and return its first channel and its label; None: there is none.

        ``whole`` paths avoid the switch at the end of the channel, unless it is the destination.
        """
        graphs, avoided = self._graphs(channel), self.head[channel]
        if not whole or to == avoided:
            avoided = -1
        refused: set[tuple[int, int]] = set()
        for _ in range(_TRIES):
            new = self._search(channel, to, before, avoided, None, refused)
            if new is None:
                return None
            path, label = new, self.labels
            for shared_label in range(self.labels):
                shared = self._search(channel, to, before, avoided, shared_label, refused)
                if shared is not None and len(shared) <= len(new) + LONGER:
                    path, label = shared, shared_label
                    break
            if label == MAX_LABELS:
                return None
            closing = self._closing(graphs, path, before)
            if closing is None:
                self.labels = max(self.labels, label + 1)
                for hop in path[1:]:
                    self.next_hop[label, self.tail[hop], to] = hop
                return path[0], label
            refused.add(closing)
        return None

    def _search(
        self,
        channel: int,
        to: int,
        before: list[int],
        avoided: int,
        label: int | None,
        refused: set[tuple[int, int]],
    ) -> list[int] | None:
        """Return the channels of a shortest backup path in a label, None: a new one.

        Of equally long paths, one along the lowest channels is returned.
        """
        graphs, start = self._graphs(channel), self.tail[channel]
        unusable = {channel, self.reverse[channel]}
        remaining = self._distances(to)
        parent: dict[int, int] = {}
        passed: dict[int, int] = {}
        heap: list[tuple[int, int, int]] = []

        def reach(hop: int, last: int, hops: int) -> None:
            if hop in parent or hop in unusable or self.head[hop] == avoided:
                return
            mask = passed[last] if last >= 0 else 1 << start
            if mask >> self.head[hop] & 1:
                return
            held_nodes = [self._node(last)] if last >= 0 else before
            if not any(self._is_refused(graphs, (n, self._node(hop)), refused) for n in held_nodes):
                parent[hop], passed[hop] = last, mask | 1 << self.head[hop]
                heapq.heappush(heap, (hops + remaining[self.head[hop]], -hops, hop))

        for hop in self.leaving[start]:
            reach(hop, -1, 1)
        while heap:
            _, hops, last = heapq.heappop(heap)
            reached = self.head[last]
            if reached == to:
                return list(self._path(parent, last))[::-1]
            for hop in self._next(label, reached, to):
                reach(hop, last, 1 - hops)
        return None

    def _distances(self, to: int) -> list[int]:
        """Return the fewest channels from each switch to one, without failures of any part."""
        hops_to = self.distances.get(to)
        if hops_to is None:
            hops_to = self.distances[to] = [len(self.channels.names)] * len(self.channels.names)
            hops_to[to], ready = 0, [to]
            for switch in ready:
                for hop in self.leaving[switch]:
                    previous = self.head[hop]
                    if hops_to[previous] > hops_to[switch] + 1:
                        hops_to[previous] = hops_to[switch] + 1
                        ready.append(previous)
        return hops_to

    def _next(self, label: int | None, switch: int, to: int) -> list[int]:
        """Return the channels that packets of a label may take from a switch."""
        next_hop = None if label is None else self.next_hop.get((label, switch, to))
        return self.leaving[switch] if next_hop is None else [next_hop]

    @staticmethod
    def _path(parent: dict[int, int], last: int) -> Iterator[int]:
        while last >= 0:
            yield last
            last = parent[last]

    def _is_refused(
        self, graphs: list[Reach], step: tuple[int, int], refused: set[tuple[int, int]]
    ) -> bool:
        if step in refused:
            return True
        return any(graph.closes(*edge) for graph in graphs for edge in self._waits(step))

    def _waits(self, step: tuple[int, int]) -> list[tuple[int, int]]:
        """Return the dependency of a step under the flow control, if it can be in a cycle.

        No packet of the plan waits for diverted ones if these have a priority of their own.
        """
        is_of_plan = self.is_own and step[0] % VCS_PER_CHANNEL != self.priority
        if is_of_plan or not self.links.pauses:
            return []
        held, wanted = (self.number[self.merged[node]] for node in step)
        return [(held, wanted)]

    def _closing(
        self, graphs: list[Reach], path: list[int], before: list[int]
    ) -> tuple[int, int] | None:
        """Add the dependencies of a path; if one closes a cycle, add none and return it."""
        nodes = [self._node(channel) for channel in path]
        steps = [(node, nodes[0]) for node in before] + list(pairwise(nodes))
        copies = [graph.copy() for graph in graphs]
        for step in steps:
            for edge in self._waits(step):
                for graph in graphs:
                    if graph.closes(*edge):
                        for other, copy in zip(graphs, copies, strict=True):
                            other.after, other.before = copy.after, copy.before
                        return step
                    graph.add(*edge)
        return None
