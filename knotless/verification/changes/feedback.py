"""A small set of items without which the edges of the others have no cycle.

An item is a set of edges, such as the dependencies of the packets of a pair of hosts; it is in or
out as a whole. To find the least such set is NP-hard (with single edges as items it is the minimum
feedback arc set, Karp, Reducibility among combinatorial problems, 1972). Here the choice is greedy,
and what it need not have left out is taken back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from knotless.routing.graphs.dependencies import find_cycle

Edge = tuple[int, int]
Item = TypeVar("Item", bound=Hashable)


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
    left_out = _greedy(kinds, weights, fixed & inside)
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


def united(sets: Iterable[frozenset[Edge]]) -> frozenset[Edge]:
    """Return the union of sets of edges."""
    return frozenset[Edge]().union(*sets)
