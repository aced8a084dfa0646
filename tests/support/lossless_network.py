"""A small lossless network of its own: switches by their rules, links that stop at full buffers.

Each input of a switch has room for a few packets. A packet keeps its place there until all of its
copies have left; a copy leaves if there is room at the other end of its link (PAUSE: all packets
of a link wait together). Hosts take everything. Of rules of equal priority that match and differ, a
random one counts. Nothing of the project is used but what the rules of a single switch do with a
frame.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knotless.forwarding.openflow.rules import FabricRules
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import mac_value

End = tuple[str, int]
Tags = tuple[int, ...]
Sent = tuple[int, int]
"""A destination address and an EtherType."""


@dataclass
class _Packet:
    """A packet in the buffer of an input; ``copies`` are those that have not left."""

    place: End
    source: int
    sent: Sent
    copies: int


class LosslessNetwork:
    """A fabric with its rules, and packets on their way."""

    def __init__(
        self, fabric: Fabric, rules: FabricRules, rng: random.Random, room: int = 2
    ) -> None:
        self._switches = {name: of_switch.parsed for name, of_switch in rules.items()}
        self._peers: dict[End, End] = {
            (name, port): peer
            for name, ports in fabric.neighbours.items()
            for port, peer in ports.items()
        }
        self._hosts = {host.name: host for host in fabric.hosts}
        self._pick, self._room = rng, room
        self._used: dict[End, int] = {}
        self._queues: dict[End, deque[tuple[_Packet, Tags]]] = {}
        self._known: dict[tuple[End, int, Sent, Tags], list[tuple[int, Tags]]] = {}

    def _copies(self, place: End, source: int, sent: Sent, tags: Tags) -> list[tuple[int, Tags]]:
        key = (place, source, sent, tags)
        if key not in self._known:
            sets, _ = self._switches[place[0]].choices(place[1], sent[0], source, sent[1], tags)
            out = self._pick.choice(sets)
            self._known[key] = [(port, tuple(of_copy)) for port, of_copy in out]
        return self._known[key]

    def _arrive(self, place: End, source: int, sent: Sent, tags: Tags) -> None:
        copies = self._copies(place, source, sent, tags)
        if not copies:
            return  # dropped
        self._used[place] = self._used.get(place, 0) + 1
        packet = _Packet(place, source, sent, len(copies))
        for port, of_copy in copies:
            self._queues.setdefault((place[0], port), deque()).append((packet, of_copy))

    def _move(self) -> bool:
        """Let every link carry a packet, if there is room; tell whether one did."""
        outputs = [end for end, queue in self._queues.items() if queue]
        self._pick.shuffle(outputs)
        moved: list[tuple[End, _Packet, Tags]] = []
        left: list[_Packet] = []
        for end in outputs:
            peer = self._peers.get(end)
            if peer is not None and self._used.get(peer, 0) >= self._room:
                continue
            packet, tags = self._queues[end].popleft()
            left.append(packet)
            if peer is not None:
                moved.append((peer, packet, tags))
        for peer, packet, tags in moved:
            self._arrive(peer, packet.source, packet.sent, tags)
        for packet in left:
            packet.copies -= 1
            if packet.copies == 0:
                self._used[packet.place] -= 1
        return bool(left)

    def freezes(self, sends: Mapping[str, Sequence[Sent]], steps: int = 2000) -> bool:
        """Tell whether packets stay for ever, after hosts have sent as fast as they could.

        ``sends`` are the packets of which each host sends one after the other, at random.
        """
        for step in range(2 * steps):
            for name, packets in sends.items() if step < steps else ():
                host = self._hosts[name]
                place = (host.switch, host.port)
                if packets and self._used.get(place, 0) < self._room:
                    self._arrive(place, mac_value(host.mac), self._pick.choice(packets), ())
            if not self._move() and step >= steps:
                break
        return any(self._queues.values()) and not self._move()
