"""A small set of items without which the edges of the others have no cycle.

An item is a set of edges, such as the dependencies of the packets of a pair of hosts; it is in or
out as a whole. To find the least such set is NP-hard (with single edges as items it is the minimum
feedback arc set, Karp, Reducibility among combinatorial problems, 1972). Here a greedy choice is
improved by moving nodes in an order of all nodes: an item is in if all its edges lead forwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from knotless.routing.graphs.dependencies import find_cycle

Edge = tuple[int, int]
Item = TypeVar("Item", bound=Hashable)
Numbers = NDArray[np.int64]

MAX_ROUNDS = 100
"""Starts of the improvement, each from a random change of the best order so far."""
MAX_WORK = 500_000
"""Nodes times edges of all rounds together: for larger graphs there are fewer rounds, or none."""
_SHAKEN = 4
"""Nodes that are moved to random places before a round."""


def least_feedback(
    items: Mapping[Item, frozenset[Edge]],
    fixed: frozenset[Edge],
    weight: Callable[[Item], int] = lambda _item: 1,
) -> set[Item]:
    """Return items of little weight: ``fixed`` and the edges of all others have no cycle.

    The edges ``fixed`` must have none by themselves. The result is repeatable: it depends on the
    order of the items, and on nothing else.
    """
    inside = _on_cycles(fixed.union(*items.values()))
    if not inside:
        return set()
    alike: defaultdict[frozenset[Edge], list[Item]] = defaultdict(list)
    for item, edges in items.items():
        if used := edges & inside:
            alike[used].append(item)
    kinds = list(alike)
    weights = [sum(map(weight, alike[edges])) for edges in kinds]
    fixed &= inside
    left_out = _greedy(kinds, weights, fixed)
    left_out = _improved(kinds, weights, fixed, left_out)
    return {item for number in left_out for item in alike[kinds[number]]}


def _on_cycles(edges: frozenset[Edge]) -> frozenset[Edge]:
    """Return the edges without those that lie on no cycle because something ends beside them."""
    while True:
        tails, heads = {tail for tail, _ in edges}, {head for _, head in edges}
        left = frozenset(edge for edge in edges if edge[0] in heads and edge[1] in tails)
        if len(left) == len(edges):
            return left
        edges = left


def _greedy(kinds: list[frozenset[Edge]], weights: list[int], fixed: frozenset[Edge]) -> set[int]:
    """Leave out what uses the least used edge of a cycle, while there is one."""
    users: defaultdict[Edge, set[int]] = defaultdict(set)
    for number, edges in enumerate(kinds):
        for edge in edges:
            users[edge].add(number)
    left_out: set[int] = set()
    while cycle := find_cycle(
        sorted(fixed.union(edge for edge, numbers in users.items() if numbers))
    ):
        on_cycle = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        loose = [users[edge] for edge in on_cycle if edge not in fixed]
        least = set(min(loose, key=lambda numbers: sum(weights[i] for i in numbers)))
        left_out |= least
        for numbers in users.values():
            numbers -= least
    return _taken_back(kinds, fixed, left_out)


def _taken_back(
    kinds: list[frozenset[Edge]], fixed: frozenset[Edge], left_out: set[int]
) -> set[int]:
    """Return what is still out when all that closes no cycle was taken back, in order."""
    admitted = fixed.union(*(kinds[i] for i in range(len(kinds)) if i not in left_out))
    still_out = set()
    for number in sorted(left_out):
        if kinds[number] <= admitted or not find_cycle(sorted(admitted | kinds[number])):
            admitted |= kinds[number]
        else:
            still_out.add(number)
    return still_out


def _improved(
    kinds: list[frozenset[Edge]], weights: list[int], fixed: frozenset[Edge], left_out: set[int]
) -> set[int]:
    """Return the kinds that are out in the best order of nodes that the rounds find."""
    all_kinds = [*kinds, fixed]
    search = _Search.of_kinds(all_kinds, [*weights, sum(weights) + 1])
    rounds = min(MAX_ROUNDS, MAX_WORK // (len(search.kind) * len(search.nodes)))
    if not left_out or not rounds:
        return left_out
    admitted = TopologicalSorter[int](dict.fromkeys(search.nodes, ()))
    for number, edges in enumerate(all_kinds):
        if number not in left_out:
            for tail, head in sorted(edges):
                admitted.add(head, tail)
    index = {node: number for number, node in enumerate(search.nodes)}
    best = [index[node] for node in admitted.static_order()]
    least = search.weight_out(best)
    chance = np.random.default_rng(0)
    for number in range(rounds):
        order = list(best)
        for _ in range(_SHAKEN if number else 0):
            node = order.pop(int(chance.integers(len(order))))
            order.insert(int(chance.integers(len(order) + 1)), node)
        order = search.descend(order, chance)
        weight = search.weight_out(order)
        if weight <= least:
            best, least = order, weight
    return _taken_back(kinds, fixed, search.out(best))


@dataclass(frozen=True)
class _Beside:
    """The edges (rows) of a node: which it is the tail of, and the kinds of all, by their place."""

    rows: Numbers
    is_tail: NDArray[np.bool_]
    kinds: Numbers
    of_row: Numbers


@dataclass(frozen=True)
class _Search:
    """Edges (rows): the ``kind`` of each, the numbers of its ``tail`` and ``head`` in ``nodes``.

    ``weight`` is by kind, ``beside`` by node.
    """

    nodes: list[int]
    kind: Numbers
    tail: Numbers
    head: Numbers
    weight: Numbers
    beside: list[_Beside]

    @staticmethod
    def of_kinds(kinds: list[frozenset[Edge]], weights: list[int]) -> _Search:
        edges = [(number, *edge) for number, edges in enumerate(kinds) for edge in sorted(edges)]
        kind, tails, heads = np.array(edges, dtype=np.int64).reshape(-1, 3).T
        nodes, ends = np.unique(np.concatenate([tails, heads]), return_inverse=True)
        tail, head = ends[: len(edges)], ends[len(edges) :]
        beside = []
        for node in range(len(nodes)):
            rows = np.flatnonzero((tail == node) | (head == node))
            beside.append(
                _Beside(rows, tail[rows] == node, *np.unique(kind[rows], return_inverse=True))
            )
        return _Search(nodes.tolist(), kind, tail, head, np.array(weights), beside)

    def out(self, order: list[int]) -> set[int]:
        """Return the kinds with an edge that leads backwards in an order of nodes."""
        place = np.argsort(order)
        return set(self.kind[place[self.tail] >= place[self.head]].tolist())

    def weight_out(self, order: list[int]) -> int:
        return int(self.weight[list(self.out(order))].sum())

    def descend(self, order: list[int], chance: np.random.Generator) -> list[int]:
        """Move nodes to their best places until no move puts more weight in.

        Among equal places, a random one is taken.
        """
        order, place = list(order), np.argsort(order)
        backwards = place[self.tail] >= place[self.head]
        bad = np.bincount(self.kind[backwards], minlength=len(self.weight))
        gained = True
        while gained:
            gained = False
            for node in chance.permutation(len(order)).tolist():
                beside, now = self.beside[node], int(place[node])
                rows = beside.rows
                bad -= _count(self.kind[rows[backwards[rows]]], len(bad))
                gain = self._gain_by_place(beside, place - (place > now), bad)
                best = np.flatnonzero(gain == gain.max())
                target = int(best[chance.integers(len(best))])
                gained |= bool(gain[target] > gain[now])
                if target != now:
                    order.insert(target, order.pop(now))
                    place = np.argsort(order)
                    backwards[rows] = place[self.tail[rows]] >= place[self.head[rows]]
                bad += _count(self.kind[rows[backwards[rows]]], len(bad))
        return order

    def _gain_by_place(self, beside: _Beside, ranks: Numbers, bad: Numbers) -> Numbers:
        """Return the weight of the kinds of a node that are in, for each place of the node.

        ``ranks`` are those of the other nodes, without it; ``bad`` counts the edges of each kind
        that lead backwards whatever the place is.
        """
        rows, is_tail = beside.rows, beside.is_tail
        other = ranks[np.where(is_tail, self.head[rows], self.tail[rows])]
        low = np.zeros(len(beside.kinds), np.int64)
        high = np.full(len(beside.kinds), len(ranks) - 1)
        np.maximum.at(low, beside.of_row[~is_tail], other[~is_tail] + 1)
        np.minimum.at(high, beside.of_row[is_tail], other[is_tail])
        possible = (bad[beside.kinds] == 0) & (low <= high)
        weight, steps = self.weight[beside.kinds[possible]], np.zeros(len(ranks) + 1, np.int64)
        np.add.at(steps, low[possible], weight)
        np.add.at(steps, high[possible] + 1, -weight)
        return np.cumsum(steps)[:-1]


def _count(numbers: Numbers, size: int) -> Numbers:
    return np.bincount(numbers, minlength=size)


def united(sets: Iterable[frozenset[Edge]]) -> frozenset[Edge]:
    """Return the union of sets of edges."""
    return frozenset[Edge]().union(*sets)
