"""A second, slow judge of plans whose first switches choose, which shares no code with the project.

It knows the cables of a fabric and the tables that ``knotless plan --out`` lists, and follows every
choice on its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

Vc = tuple[str, int]
"""An output (``s1:2``) and a virtual channel."""


class SourceWalker:
    """Follows the frames of a plan, given as JSON."""

    def __init__(self, fabric: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        self.plan = plan
        self.rises = {tuple(pair) for pair in plan["rises"]}
        self.peer: dict[str, str] = {}
        for link in fabric["links"]:
            self.peer[f"{link['a']}:{link['a_port']}"] = link["b"]
            self.peer[f"{link['b']}:{link['b_port']}"] = link["a"]

    def choices(self, source: str, to: str) -> list[int | None]:
        """Return the intermediates of a pair of switches; None is the direct path."""
        return [None, *self.plan["over"][source][to]]

    def path(self, source: str, to: str, over: int | None) -> list[Vc]:
        """Return the virtual channels of a path. Asserts that it arrives and meets itself not."""
        at, passed = source, [source]
        path: list[Vc] = []
        while at != to:
            if over is not None and self.plan["intermediate"][at] == over:
                over = None
            table, goal = ("direct", to) if over is None else ("towards", str(over))
            output = self.plan[table][at][goal]
            vc = path[-1][1] if path else 0
            if path and (self.plan["kind"][path[-1][0]], self.plan["kind"][output]) in self.rises:
                vc += 1
            path.append((output, vc))
            at = self.peer[output]
            assert at not in passed, f"{source} to {to} over {over} comes to {at} twice"
            passed.append(at)
        assert over is None, f"{source} to {to} never comes to {over}"
        return path

    def paths(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[list[Vc]]]:
        """Return all paths of each pair of switches, the direct one first."""
        return {
            (source, to): [self.path(source, to, over) for over in self.choices(source, to)]
            for source, to in pairs
        }


def waits_of(paths: Iterable[list[Vc]]) -> set[tuple[Vc, Vc]]:
    """Return what is held while what is waited for, on any of the paths."""
    return {step for path in paths for step in pairwise(path)}


def has_cycle(waits: Iterable[tuple[Vc, Vc]]) -> bool:
    """Tell whether waits go round, by removing what waits for nothing again and again."""
    following: dict[Vc, set[Vc]] = defaultdict(set)
    for held, wanted in waits:
        following[held].add(wanted)
    while following:
        over = [vc for vc, wanted in following.items() if not wanted & following.keys()]
        if not over:
            return True
        for vc in over:
            del following[vc]
    return False
