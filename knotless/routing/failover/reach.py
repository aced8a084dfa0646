"""An acyclic graph that grows, and refuses edges that would close a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Reach:
    """The transitive closure of an acyclic graph.

    ``after`` and ``before`` have for each node the sets of nodes that it reaches and that reach it,
    as bits of an integer, so that a check takes one step. Copies share these integers.
    """

    def __init__(self, after: list[int], before: list[int]) -> None:
        self.after, self.before = after, before

    @classmethod
    def from_edges(cls, nodes: int, edges: Iterable[tuple[int, int]]) -> Reach:
        """Return the closure of ``edges`` between nodes numbered from 0.

        Raises
        ------
        ValueError
            They have a cycle.

        """
        closure = cls([0] * nodes, [0] * nodes)
        for first, second in edges:
            if closure.closes(first, second):
                raise ValueError("the edges have a cycle")
            closure.add(first, second)
        return closure

    def copy(self) -> Reach:
        """Return a copy."""
        return Reach(self.after.copy(), self.before.copy())

    def closes(self, first: int, second: int) -> bool:
        """Tell whether this edge would close a cycle."""
        return first == second or bool(self.after[second] >> first & 1)

    def add(self, first: int, second: int) -> None:
        """Add an edge that closes no cycle."""
        if self.after[first] >> second & 1:
            return
        later = self.after[second] | 1 << second
        earlier = self.before[first] | 1 << first
        for node in _bits(earlier):
            self.after[node] |= later
        for node in _bits(later):
            self.before[node] |= earlier


def _bits(numbers: int) -> Iterator[int]:
    while numbers:
        low = numbers & -numbers
        yield low.bit_length() - 1
        numbers ^= low
