"""Turns, and the largest sets of them that close no cycle.

A turn is a pair of channels, the second of which leaves the switch that the first enters.
Paths that use only turns of a set without a cycle cannot deadlock on one virtual channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.channels import Channels, Ints
from routing.walks import StateGraph, graph_of

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Turns:
    """Turns, sorted by (before, after): the channels of each, as arrays of equal length."""

    before: Ints
    after: Ints

    def __len__(self) -> int:
        """Return the number of turns."""
        return len(self.before)

    def only(self, mask: Mask) -> Turns:
        """Return the turns where ``mask`` is true."""
        return Turns(self.before[mask], self.after[mask])


def all_turns(channels: Channels) -> Turns:
    """Return every turn that does not go back to the switch that it came from."""
    first = np.searchsorted(channels.tail, np.arange(len(channels.names) + 1))
    count = np.diff(first)[channels.head]
    before = np.repeat(np.arange(len(channels), dtype=np.int32), count)
    offset = np.arange(len(before)) - np.repeat(np.cumsum(count) - count, count)
    after = (first[channels.head[before]] + offset).astype(np.int32)
    onward = channels.head[after] != channels.tail[before]
    return Turns(before[onward], after[onward])


def turn_graph(channels: Channels, turns: Turns) -> StateGraph:
    """Return the legal walks of ``turns``: a state for each channel, then one for each start.

    The state of a channel is 'came by it'; a path may start with any channel.
    """
    count = len(channels)
    every = np.arange(count, dtype=np.int32)
    switches = np.arange(len(channels.names), dtype=np.int32)
    edges = [
        (turns.before, turns.after, turns.after),
        ((count + channels.tail).astype(np.int32), every, every),
    ]
    states = np.concatenate([channels.head, switches])
    return graph_of(channels, states, (count + switches).astype(np.int32), edges)


def along_tree(channels: Channels, parent: Ints, turns: Turns) -> Mask:
    """Return which turns paths take that go up the tree ``parent`` and then down it."""
    down = np.zeros(len(channels), dtype=bool)
    down[parent[parent >= 0]] = True
    up = np.zeros(len(channels), dtype=bool)
    up[channels.reverse[parent[parent >= 0]]] = True
    before, after = turns.before, turns.after
    mask: Mask = (up[before] & (up[after] | down[after])) | (down[before] & down[after])
    return mask


def is_acyclic(channels: int, turns: Turns) -> bool:
    """Tell whether ``turns`` close no cycle, by taking away channels that nothing turns into."""
    left = turns
    while len(left):
        entered = np.bincount(left.after, minlength=channels) > 0
        kept = entered[left.before]
        if kept.all():
            return False
        left = left.only(kept)
    return True


def grow_acyclic(channels: int, turns: Turns, order: Ints, given: Mask | None = None) -> Mask:
    """Return which turns are in the set that taking them in ``order`` gives.

    A turn is left out when with those taken before it would close a cycle; so the set is a
    largest one: no other turn can be added. ``given`` marks turns, without a cycle, that are
    in it from the start.
    """
    if is_acyclic(channels, turns):
        return np.ones(len(turns), dtype=bool)
    taken = np.zeros(len(turns), dtype=bool) if given is None else given.copy()
    growing = _Growing(channels, turns.only(taken))
    for turn in order.tolist():
        if not taken[turn]:
            taken[turn] = growing.add(int(turns.before[turn]), int(turns.after[turn]))
    return taken


class _Growing:
    """A graph without a cycle, kept in topological order while edges are added.

    References
    ----------
    Pearce and Kelly, A dynamic topological sort algorithm for directed acyclic graphs, 2007.

    """

    def __init__(self, nodes: int, turns: Turns) -> None:
        self._following: list[list[int]] = [[] for _ in range(nodes)]
        self._preceding: list[list[int]] = [[] for _ in range(nodes)]
        for a, b in zip(turns.before.tolist(), turns.after.tolist(), strict=True):
            self._following[a].append(b)
            self._preceding[b].append(a)
        self._place = self._sorted(nodes)

    def _sorted(self, nodes: int) -> list[int]:
        """Return the place of each node in a topological order."""
        entering = [len(preceding) for preceding in self._preceding]
        free = [node for node in range(nodes) if entering[node] == 0]
        place = [0] * nodes
        for number in range(nodes):
            node = free[number]
            place[node] = number
            for target in self._following[node]:
                entering[target] -= 1
                if entering[target] == 0:
                    free.append(target)
        return place

    def add(self, a: int, b: int) -> bool:
        """Add the edge from ``a`` to ``b``, or return False if it would close a cycle."""
        place = self._place
        low, high = place[b], place[a]
        if low < high:
            after = {b}
            stack = [b]
            while stack:
                for node in self._following[stack.pop()]:
                    if node == a:
                        return False
                    if node not in after and place[node] < high:
                        after.add(node)
                        stack.append(node)
            before = {a}
            stack = [a]
            while stack:
                for node in self._preceding[stack.pop()]:
                    if node not in before and place[node] > low:
                        before.add(node)
                        stack.append(node)
            moved = sorted(before, key=place.__getitem__) + sorted(after, key=place.__getitem__)
            for node, number in zip(moved, sorted(place[node] for node in moved), strict=True):
                place[node] = number
        elif a == b:
            return False
        self._following[a].append(b)
        self._preceding[b].append(a)
        return True
