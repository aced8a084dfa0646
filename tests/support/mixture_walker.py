"""A second, slow tracer of frames while rules are changed, which shares no code with the project's.

It follows every frame through every order of rule sets that it can meet. Time has phases: in phase
q each switch holds rule set q - 1 or q, and a frame may stay anywhere for any number of phases.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from tests.support.cycles import has_cycle
from tests.support.independent import Packet, RuleTracer, _num

BROADCAST = "ff:ff:ff:ff:ff:ff"
Node = tuple[str, int, int]
"""A switch, the port on which it sends, and the priority."""
Outcome = tuple[str, ...]
"""The hosts that get a copy, sorted, or one of these for a copy: it comes back as it was, arrives
tagged, or leaves on a port behind which nothing is."""
LOOP = "(loop)"
TAGGED = "(tagged)"
CUT = "(cut)"


def _tags(folder: Path | Mapping[str, str]) -> Any:
    if not isinstance(folder, Path):
        text = folder.get("tags.json")
    else:
        text = file.read_text() if (file := folder / "tags.json").exists() else None
    return None if text is None else json.loads(text)


class MixtureWalker:
    """Frames through the rule files of several folders, which are installed one after the other.

    In place of a folder, its files can be given as texts by name.
    """

    def __init__(self, folders: Sequence[Path | Mapping[str, str]]) -> None:
        self.rules = [RuleTracer(folder) for folder in folders]
        self.fabric, self.peer = self.rules[0].fabric, self.rules[0].peer
        self.tags = [_tags(folder) for folder in folders]
        self.edges: set[tuple[Node, Node]] = set()
        self._known: dict[tuple[object, ...], list[list[tuple[int, Packet]]]] = {}

    def outcomes(self, source: str, destination: str) -> set[Outcome]:
        """Return all possible fates of a frame from one host to another, or to all (``all``)."""
        hosts = {host["name"]: host for host in self.fabric["hosts"]}
        sender = hosts[source]
        mac = BROADCAST if destination == "all" else hosts[destination]["mac"]
        outcomes: set[Outcome] = set()
        for phase in range(1, max(2, len(self.rules))):
            for tags in {
                id(table): table for table in self.tags[max(0, phase - 1) : phase + 1]
            }.values():
                vlan = None
                if tags is not None:
                    vlan = tags[source].get(mac, tags[source]["default"])
                packet = {
                    "eth_dst": _num(mac),
                    "eth_src": _num(sender["mac"]),
                    "eth_type": 0x0806 if destination == "all" else 0x0800,
                    "vlan": vlan,
                    "pcp": 0,
                }
                place = (sender["switch"], sender["port"])
                outcomes |= self._from(place, packet, phase, None, frozenset())
        return outcomes

    def _from(
        self,
        place: tuple[str, int],
        packet: Packet,
        phase: int,
        held: Node | None,
        before: frozenset[object],
    ) -> set[Outcome]:
        here = (*place, packet["vlan"], packet["pcp"], phase)
        if here in before:
            return {(LOOP,)}
        outcomes: set[Outcome] = set()
        for now in range(phase, max(2, len(self.rules))):
            for rules in {max(0, now - 1), min(now, len(self.rules) - 1)}:
                for copies in self._choices(rules, place, packet):
                    fates = [
                        self._copy(place[0], port, copy, now, held, before | {here})
                        for port, copy in copies
                    ]
                    outcomes |= {tuple(sorted(sum(parts, ()))) for parts in product(*fates)}
        return outcomes

    def _choices(
        self, rules: int, place: tuple[str, int], packet: Packet
    ) -> list[list[tuple[int, Packet]]]:
        key = (rules, place, *packet.values())
        if key not in self._known:
            self._known[key] = self.rules[rules].choices(*place, packet)
        return self._known[key]

    def _copy(
        self,
        switch: str,
        port: int,
        packet: Packet,
        phase: int,
        held: Node | None,
        before: frozenset[object],
    ) -> set[Outcome]:
        there, there_port = self.peer.get((switch, port), (CUT, None))
        if there == CUT:
            return {(CUT,)}
        if there_port is None:
            return {(there if packet["vlan"] is None else TAGGED,)}
        node = (switch, port, packet["pcp"])
        if held is not None:
            self.edges.add((held, node))
        headers = {name: packet[name] for name in ("eth_dst", "eth_src", "eth_type", "vlan", "pcp")}
        return self._from((there, there_port), headers, phase, node, before)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield all pairs of different hosts."""
        names = [host["name"] for host in self.fabric["hosts"]]
        yield from ((a, b) for a in names for b in names if a != b)

    def failed_pairs(self) -> set[tuple[str, str]]:
        """Return the pairs for which some fate is not one untagged copy at the destination."""
        return {(a, b) for a, b in self.pairs() if self.outcomes(a, b) != {(b,)}}

    def wrong_receivers(self) -> tuple[set[tuple[str, str]], bool]:
        """Return (source, receiver) of wrong numbers of broadcast copies, and whether any loops."""
        names = [host["name"] for host in self.fabric["hosts"]]
        wrong, loops = set[tuple[str, str]](), False
        for source in names:
            fates = [Counter(outcome) for outcome in self.outcomes(source, "all")]
            wrong |= {
                (source, name)
                for name in names
                if any(fate[name] != (name != source) for fate in fates)
            }
            loops |= any(fate[LOOP] or fate[TAGGED] for fate in fates)
        return wrong, loops

    def has_cycle(self, flow_control: str = "pfc") -> bool:
        """Return True if channels of the frames followed so far can wait in a circle."""
        waits = self.edges
        if flow_control == "pause":
            waits = {(a[:2] + (0,), b[:2] + (0,)) for a, b in waits}
        return has_cycle(waits)
