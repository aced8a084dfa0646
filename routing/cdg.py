"""The channel dependency graph, and a cycle in it when there is one.

A node is a virtual channel: ``channel * 8 + priority``. There is an edge from one to another
where some frame holds the first while it waits for the second. Without a cycle no deadlock
can happen.

References
----------
Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks, 1987.

"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from routing.channels import PRIORITIES, Channels

FLOW_CONTROLS = ("pfc", "pause")
"""PFC stops one priority of a channel; 802.3x PAUSE stops all of them at once."""


def virtual_channel(channel: int, priority: int) -> int:
    """Return the node of the graph for ``channel`` and ``priority``."""
    return channel * PRIORITIES + priority


def merge_priorities(edges: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the graph as 802.3x sees it: all priorities of a channel wait together, as 0."""
    return {(a - a % PRIORITIES, b - b % PRIORITIES) for a, b in edges}


def find_cycle(edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return a shortest cycle, from its smallest member on, or an empty list.

    Of several shortest ones it is that with the smallest members, so equal graphs give equal
    cycles, whatever the order of ``edges``.
    """
    following: dict[int, list[int]] = {}
    for a, b in edges:
        following.setdefault(a, []).append(b)
        following.setdefault(b, [])
    for targets in following.values():
        targets.sort()
    best: list[int] = []
    for component in _cyclic_components(following):
        members = set(component)
        inside = {a: [b for b in following[a] if b in members] for a in component}
        for start in component:
            cycle = _shortest_through(start, inside, len(best))
            if cycle:
                best = cycle
    return best


def cycle_names(channels: Channels, cycle: list[int]) -> list[str]:
    """Return a cycle as ``SWITCH:PORT/PRIORITY`` texts."""
    return [channels.name(*divmod(node, PRIORITIES)) for node in cycle]


def _shortest_through(start: int, following: dict[int, list[int]], below: int) -> list[int]:
    """Return the shortest cycle through ``start`` if shorter than ``below`` (0: any length).

    ``start`` is the smallest member: smaller ones were tried before, and their
    cycles are no longer than these.
    """
    parent = {start: -1}
    length = {start: 1}
    queue = deque([start])
    while queue:
        a = queue.popleft()
        if below and length[a] >= below:
            return []
        for b in following[a]:
            if b == start:
                cycle = [a]
                while parent[cycle[-1]] != -1:
                    cycle.append(parent[cycle[-1]])
                return cycle[::-1]
            if b not in parent:
                parent[b] = a
                length[b] = length[a] + 1
                queue.append(b)
    return []


def _cyclic_components(following: dict[int, list[int]]) -> list[list[int]]:
    """Return the strongly connected components with a cycle, members sorted, smallest first.

    Tarjan's algorithm, without recursion.
    """
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in sorted(following):
        if root in order:
            continue
        work = [(root, iter(following[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    component = _pop_until(stack, on_stack, node)
                    if len(component) > 1 or node in following[node]:
                        found.append(sorted(component))
            elif target not in order:
                order[target] = low[target] = len(order)
                stack.append(target)
                on_stack.add(target)
                work.append((target, iter(following[target])))
            elif target in on_stack:
                low[node] = min(low[node], order[target])
    return sorted(found)


def _pop_until(stack: list[int], on_stack: set[int], node: int) -> list[int]:
    component = []
    while True:
        component.append(stack.pop())
        on_stack.discard(component[-1])
        if component[-1] == node:
            return component
