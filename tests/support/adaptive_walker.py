"""A second, slow judge of adaptive plans, which shares no code with the project's own.

It knows the cables of a fabric and the virtual channels that ``knotless plan --out`` lists, follows
every choice, and finds the greatest set of virtual channels that can block each other by trying all
again and again. It also lets single frames move, with room for one frame behind each virtual
channel.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Vc = tuple[str, int, int]
"""A switch, its output port and a priority."""
Wait = tuple[Vc, frozenset[Vc]]
"""What is held, and those of which the first free one is taken."""


def vc_called(name: str) -> Vc:
    """Return the virtual channel ``SWITCH:PORT/PRIORITY``."""
    switch, _, rest = name.partition(":")
    port, _, priority = rest.partition("/")
    return switch, int(port), int(priority)


class AdaptiveWalker:
    """Follows the frames of a plan, given as JSON."""

    def __init__(self, fabric: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        self.stays = plan["stays"]
        self.next_hops: Mapping[str, Mapping[str, Sequence[str]]] = plan["next_hops"]
        self.peer: dict[tuple[str, int], str] = {}
        for link in fabric["links"]:
            self.peer[link["a"], link["a_port"]] = link["b"]
            self.peer[link["b"], link["b_port"]] = link["a"]

    def choices(self, switch: str, to: str, held: Vc | None) -> list[Vc]:
        """Return what a frame waits for that has come by ``held``; nothing where it arrives."""
        if switch == to:
            return []
        listed = [vc_called(name) for name in self.next_hops[switch][to]]
        has_left = self.stays and held is not None and held[2] > 0
        return [vc for vc in listed if vc[2] > 0 or not has_left]

    def waits(self, source: str, to: str) -> set[Wait]:
        """Return how frames between two switches wait. Asserts that every choice arrives."""
        found: set[Wait] = set()
        done: set[Vc | None] = set()
        path: list[Vc | None] = []

        def visit(switch: str, held: Vc | None) -> None:
            assert held not in path, f"{source} to {to} goes round at {switch}"
            if held in done:
                return
            done.add(held)
            path.append(held)
            choices = self.choices(switch, to, held)
            assert choices or switch == to, f"{source} to {to} is lost at {switch}"
            if held is not None and choices:
                found.add((held, frozenset(choices)))
            for vc in choices:
                visit(self.peer[vc[:2]], vc)
            path.pop()

        visit(source, None)
        return found

    def freezes(self, pairs: Sequence[tuple[str, str]], seed: int, frames: int) -> bool:
        """Tell whether frames that are sent and move at random stop before all have arrived.

        Each virtual channel has room for one frame behind it. A frame waits for all its next hops
        at once. None moves only if it has arrived, or if all these are full.
        """
        draw = random.Random(seed)  # noqa: S311
        full: dict[Vc, str] = {}
        left = frames
        while left or full:
            moves: list[tuple[Vc | None, Vc | None, str]] = []
            for held, to in full.items():
                switch = self.peer[held[:2]]
                if switch == to:
                    moves.append((held, None, to))
                choices = self.choices(switch, to, held)
                moves += [(held, vc, to) for vc in choices if vc not in full]
            if left:
                for source, to in draw.sample(pairs, min(len(pairs), 8)):
                    choices = self.choices(source, to, None)
                    moves += [(None, vc, to) for vc in choices if vc not in full]
            if not moves:
                if not left:
                    return True
                left = 0  # those that can still move do, and then none
                continue
            leaves, enters, to = draw.choice(moves)
            if leaves is None:
                left -= 1
            else:
                del full[leaves]
            if enters is not None:
                full[enters] = to
        return False


def greatest_blocking_set(waits: Iterable[Wait]) -> set[Vc]:
    """Return the largest set of which each member is held by a wait for nothing but members."""
    waits = list(waits)
    members = {held for held, _ in waits}
    while True:
        kept = {held for held, requested in waits if held in members and requested <= members}
        if kept == members:
            return members
        members = kept
