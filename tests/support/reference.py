"""A reference interpreter: packets through tables with choices, by the plainest code there is.

It knows the cables of a fabric as JSON, and a table: a function from a place (a switch and an input
port) and a packet to the alternatives of which any one is taken, each a list of the copies that
leave. It shares no code with the project. Tables of rules are in ``reference_rules``, those of
plans as ``knotless plan --out`` lists them in ``reference_plans``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, Generic, Protocol, TypeVar

from tests.support.cycles import has_cycle

Place = tuple[str, int]
"""A switch and one of its ports."""
Node = tuple[str, int, int]
"""A switch, the port on which it sends, and the priority: a virtual channel."""
Wait = tuple[Node, frozenset[Node]]
"""What is held, and all that the packet could take next."""
Outcome = tuple[str, ...]
"""The hosts that get a copy, sorted, or one of these for a copy: it comes back as it was, arrives
tagged, or leaves on a port behind which nothing is."""
LOOP = "(loop)"
TAGGED = "(tagged)"
CUT = "(cut)"


class Packet(Hashable, Protocol):
    """What the interpreter reads of a packet; all else is between packet and table."""

    @property
    def priority(self) -> int:
        """The priority with which it was sent."""

    @property
    def tagged(self) -> bool:
        """Whether a host would not take it as it is."""


P = TypeVar("P", bound=Packet)
Alternatives = Sequence[Sequence[tuple[int, P]]]
Table = Callable[[Place, P], Alternatives[P]]


class Reference(Generic[P]):
    """Follows packets; ``edges`` and ``waits`` are those of all that it has followed.

    ``peer`` has the other end of each cable; that of a host is its name and None. Ports that are
    removed from it lead nowhere.
    """

    def __init__(self, fabric: Mapping[str, Any], table: Table[P]) -> None:
        self.fabric, self.table = fabric, table
        self.peer: dict[Place, tuple[str, int | None]] = {}
        for link in fabric["links"]:
            a, b = (link["a"], link["a_port"]), (link["b"], link["b_port"])
            self.peer[a], self.peer[b] = b, a
        for host in fabric["hosts"]:
            self.peer[host["switch"], host["port"]] = (host["name"], None)
        self.edges: set[tuple[Node, Node]] = set()
        self.waits: set[Wait] = set()
        self._alternatives: dict[tuple[Place, P], Alternatives[P]] = {}
        self._followed: set[tuple[Place, P]] = set()
        self._outcomes: dict[tuple[Place, P], set[Outcome]] = {}

    def alternatives(self, place: Place, packet: P) -> Alternatives[P]:
        """Return what the table says; it is asked once."""
        key = (place, packet)
        if key not in self._alternatives:
            self._alternatives[key] = self.table(*key)
        return self._alternatives[key]

    def held(self, place: Place, packet: P) -> Node | None:
        """Return the virtual channel on which a packet has come; None: a host sent it."""
        there, port = self.peer[place]
        return None if port is None else (there, port, packet.priority)

    def onward(self, switch: str, port: int, copy: P) -> tuple[Node, Place] | None:
        """Return the channel that a copy takes and where it comes; None: to a host or nowhere."""
        there, there_port = self.peer.get((switch, port), (CUT, None))
        return None if there_port is None else ((switch, port, copy.priority), (there, there_port))

    def follow(self, place: Place, packet: P) -> None:
        """Note all that packets hold and wait for which come from this one."""
        going = [(place, packet)]
        while going:
            place, packet = going.pop()
            if (place, packet) in self._followed:
                continue
            self._followed.add((place, packet))
            held, next_nodes = self.held(place, packet), set[Node]()
            for copies in self.alternatives(place, packet):
                for port, copy in copies:
                    if (onward := self.onward(place[0], port, copy)) is not None:
                        next_nodes.add(onward[0])
                        going.append((onward[1], copy))
            if held is not None and next_nodes:
                self.edges |= {(held, node) for node in next_nodes}
                self.waits.add((held, frozenset(next_nodes)))

    def passes(self) -> Iterator[tuple[Place, P, Sequence[tuple[int, P]]]]:
        """Yield each packet followed so far, in each switch, with the copies of each choice."""
        for place, packet in self._followed:
            for copies in self.alternatives(place, packet):
                yield place, packet, copies

    @property
    def taken(self) -> set[Node]:
        """The virtual channels that the packets followed so far have been on."""
        return {node for key in self._followed if (node := self.held(*key)) is not None}

    def outcomes(self, place: Place, packet: P) -> set[Outcome]:
        """Return all possible fates of a packet, and follow it."""
        self.follow(place, packet)
        return self._fates(place, packet, frozenset())

    def _fates(self, place: Place, packet: P, before: frozenset[object]) -> set[Outcome]:
        here = (place, packet)
        if here in before:
            return {(LOOP,)}
        if here in self._outcomes:
            return self._outcomes[here]
        found: set[Outcome] = set()
        for copies in self.alternatives(place, packet):
            fates = [self._fate(place[0], port, copy, before | {here}) for port, copy in copies]
            found |= {tuple(sorted(sum(parts, ()))) for parts in product(*fates)}
        if not any(LOOP in outcome for outcome in found):
            # What meets nothing that was before it does not depend on that.
            self._outcomes[here] = found
        return found

    def _fate(self, switch: str, port: int, copy: P, before: frozenset[object]) -> set[Outcome]:
        onward = self.onward(switch, port, copy)
        if onward is not None:
            return self._fates(onward[1], copy, before)
        there, _ = self.peer.get((switch, port), (CUT, None))
        return {(TAGGED if copy.tagged and there != CUT else there,)}

    def walks(self, place: Place, packet: P) -> dict[tuple[Node, ...], Fraction]:
        """Return all channels that a packet takes to a host, and how likely, if all choices are.

        Asserts that each choice leads to the same host and that none goes round; follows the
        packet, which no switch copies.
        """
        [arrived] = self.outcomes(place, packet)
        assert len(arrived) == 1, f"{packet} from {place}: {arrived}"
        assert arrived[0] not in (LOOP, TAGGED, CUT), f"{packet} from {place}: {arrived[0]}"
        shares: dict[tuple[Node, ...], Fraction] = {}
        for walk, share in self._walks(place, packet):
            shares[walk] = shares.get(walk, Fraction(0)) + share
        return shares

    def _walks(self, place: Place, packet: P) -> Iterable[tuple[tuple[Node, ...], Fraction]]:
        alternatives = self.alternatives(place, packet)
        for [(port, copy)] in alternatives:
            onward = self.onward(place[0], port, copy)
            rest = [((), Fraction(1))] if onward is None else self._walks(onward[1], copy)
            for walk, share in rest:
                yield (
                    (*(() if onward is None else (onward[0],)), *walk),
                    share / len(alternatives),
                )

    def has_cycle(self, flow_control: str = "pfc") -> bool:
        """Return True if channels of the packets followed so far can wait in a circle."""
        edges = self.edges
        if flow_control == "pause":
            edges = {(a[:2] + (0,), b[:2] + (0,)) for a, b in edges}
        return has_cycle(edges)


def greatest_blocking_set(waits: Iterable[Wait]) -> set[Node]:
    """Return the largest set of which each member is held by a wait for nothing but members."""
    waits = list(waits)
    members = {held for held, _ in waits}
    while True:
        kept = {held for held, requested in waits if held in members and requested <= members}
        if kept == members:
            return members
        members = kept
