"""Tables of plans, as ``knotless plan --out`` lists them, for the reference interpreter.

Packets go between switches: each has a host of its own name on port 0.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tests.support.reference import Alternatives, Node, Place, Reference


class Packet(NamedTuple):
    """A packet to a switch; ``label`` is what else tables look at."""

    to: str
    priority: int = 0
    label: object = None
    tagged: bool = False


def node_called(name: str) -> Node:
    """Return the virtual channel ``SWITCH:PORT/PRIORITY``."""
    switch, _, rest = name.partition(":")
    port, _, priority = rest.partition("/")
    return switch, int(port), int(priority or 0)


def between_switches(fabric: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fabric with a host on port 0 of each switch, of the same name, and no others."""
    names = [switch["name"] for switch in fabric["switches"]]
    return {**fabric, "hosts": [{"name": name, "switch": name, "port": 0} for name in names]}


class NextHops(Reference[Packet]):
    """Follows packets by ``next_hops``: by switch and destination switch, ports or channels.

    Of an adaptive plan, these are virtual channels; packets to which ``stays`` applies keep away
    from priority 0 once they have left it.
    """

    def __init__(self, fabric: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        super().__init__(between_switches(fabric), self._by_sets)
        self.plan = plan

    def _by_sets(self, place: Place, packet: Packet) -> Alternatives[Packet]:
        if place[0] == packet.to:
            return [[(0, packet)]]
        listed = self.plan["next_hops"][place[0]][packet.to]
        nodes = [
            (place[0], name, packet.priority) if isinstance(name, int) else node_called(name)
            for name in listed
        ]
        if self.plan.get("stays") and packet.priority > 0:
            nodes = [node for node in nodes if node[2] > 0]
        return [[(port, packet._replace(priority=priority))] for _, port, priority in nodes]

    def freezes(self, pairs: Sequence[tuple[str, str]], seed: int, frames: int) -> bool:
        """Tell whether frames that are sent and move at random stop before all have arrived.

        Each virtual channel has room for one frame behind it. A frame waits for all its next hops
        at once. None moves only if it has arrived, or if all these are full.
        """
        rng = random.Random(seed)  # noqa: S311
        full: dict[Node, Packet] = {}
        left = frames
        while left or full:
            # Those on their way, and some that could be sent: where they are, and what they hold.
            waiting = [(self.peer[node[:2]], packet, node) for node, packet in full.items()]
            sent = rng.sample(pairs, min(len(pairs), 8)) if left else []
            offers = [((source, 0), Packet(to), None) for source, to in sent]
            moves: list[tuple[Node | None, Node | None, Packet]] = []
            for (switch, port), packet, held in (*waiting, *offers):
                assert port is not None
                for [(out, copy)] in self.alternatives((switch, port), packet):
                    onward = self.onward(switch, out, copy)
                    if onward is None or onward[0] not in full:
                        moves.append((held, onward and onward[0], copy))
            if not moves:
                if not left:
                    return True
                left = 0  # those that can still move do, and then none
                continue
            leaves, enters, packet = rng.choice(moves)
            if leaves is None:
                left -= 1
            else:
                del full[leaves]
            if enters is not None:
                full[enters] = packet
        return False


class SourceChoices(Reference[Packet]):
    """Follows packets of which the first switch takes a direct path or one over an intermediate.

    The label of a packet is the intermediate that it goes to; None: it goes directly.
    """

    def __init__(self, fabric: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        super().__init__(between_switches(fabric), self._by_tables)
        self.plan = plan
        self.rises = {tuple(pair) for pair in plan["rises"]}

    def _by_tables(self, place: Place, packet: Packet) -> Alternatives[Packet]:
        at, to, plan = place[0], packet.to, self.plan
        if plan["intermediate"][at] == packet.label:
            packet = packet._replace(label=None)
        if at == to and packet.label is None:
            return [[(0, packet)]]
        direct = packet.label is None
        output = plan["direct"][at][to] if direct else plan["towards"][at][str(packet.label)]
        if (held := self.held(place, packet)) is not None:
            kinds = plan["kind"][f"{held[0]}:{held[1]}"], plan["kind"][output]
            packet = packet._replace(priority=packet.priority + (kinds in self.rises))
        return [[(node_called(output)[1], packet)]]

    def paths(self, source: str, to: str) -> list[tuple[Node, ...]]:
        """Return the path of each choice, the direct one first. Asserts that none meets itself."""
        found = []
        for over in (None, *self.plan["over"][source][to]):
            [path] = self.walks((source, 0), Packet(to, label=over))
            passed = [node[0] for node in path]
            assert len({*passed, to}) == len(path) + 1, f"{source} to {to} over {over}: {path}"
            found.append(path)
        return found


def waits_of(paths: Iterable[tuple[Node, ...]]) -> set[tuple[Node, Node]]:
    """Return what is held while what is waited for, on any of the paths."""
    return {step for path in paths for step in pairwise(path)}
