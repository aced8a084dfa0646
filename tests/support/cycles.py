"""Cycles of dependencies, found without the project's own graph code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Node = TypeVar("Node")


def has_cycle(edges: Iterable[tuple[Node, Node]]) -> bool:
    """Tell whether edges are left when nodes without successors are removed repeatedly."""
    left = set(edges)
    while left:
        starts = {a for a, _ in left}
        kept = {(a, b) for a, b in left if b in starts}
        if kept == left:
            return True
        left = kept
    return False
