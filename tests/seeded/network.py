"""Links between switches, and the frames on them: probes, and those of hosts.

A frame stays in a channel for a time that is drawn for it, sometimes for seconds, as behind a
paused port; those of one priority keep their order. Counters show only what was sent and what has
arrived. What is on a link that is cut is lost; what is sent on a silent channel as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import mac_value
from tests.seeded.forwarding import Header, header_of

if TYPE_CHECKING:
    from tests.seeded.switch import Switch
    from tests.seeded.world import World

End = tuple[str, int]
"""A switch, and a port of it."""
_BROADCAST = 0xFFFFFFFFFFFF
_IPV4, _ARP = 0x0800, 0x0806
_FLIGHT_S = (0.00005, 0.0005)
_LONG_SHARE = 0.02
_LONG_S = (0.02, 0.3)
MAX_HOPS = 64


@dataclass
class Link:
    """A link; ``cuts`` counts how often it has lost its carrier."""

    name: str
    ends: tuple[End, End]
    is_up: bool = True
    cuts: int = 0
    cut_s: float = 0.0
    silent: set[End] = field(default_factory=set)
    """Sending ports from which nothing arrives although there is a carrier."""


@dataclass(eq=False)
class Frame:
    """A frame of a host, with the number of the state in which it was sent."""

    source: str
    header: Header
    state: int
    hops: int = 0


class Network:
    """All links of a fabric."""

    def __init__(self, world: World, fabric: Fabric) -> None:
        self._world, self.fabric = world, fabric
        self.links = {
            link.name: Link(link.name, ((link.a, link.a_port), (link.b, link.b_port)))
            for link in fabric.links
        }
        self.peers: dict[End, tuple[Link, End]] = {}
        for link in self.links.values():
            a, b = link.ends
            self.peers[a], self.peers[b] = (link, b), (link, a)
        self.hosts = {(host.switch, host.port): host.name for host in fabric.hosts}
        self._last_s: dict[tuple[End, int], float] = {}
        self.frames: dict[Frame, Link] = {}
        """Frames of hosts that are in a channel, the oldest first, with its link."""
        self.delivered = self.lost = 0

    # --- links -------------------------------------------------------------------------------

    def set_link(self, name: str, *, up: bool) -> None:
        """Cut a link, or mend it; a switch without power keeps its ports down."""
        link = self.links[name]
        link.is_up = up
        self.refresh(link)

    def refresh(self, link: Link) -> None:
        """Give the ports of a link the carrier that they have now; a cut loses what is on it."""
        up = self.carries(link)
        if not up:
            link.cuts, link.cut_s = link.cuts + 1, self._world.hub.now_s
            gone = [frame for frame, on in self.frames.items() if on is link]
            for frame in gone:
                del self.frames[frame]
            self.lost += len(gone)
        for switch, port in link.ends:
            self._world.switches[switch].set_carrier(port, up=up)

    def carries(self, link: Link) -> bool:
        """Return whether a link is not cut, and both its ends have power."""
        return link.is_up and all(self._world.switches[switch].is_on for switch, _ in link.ends)

    # --- frames ------------------------------------------------------------------------------

    def _arrival_s(self, end: End, priority: int, hold_s: float) -> float:
        now_s = self._world.hub.now_s
        key = (end, 0 if self._world.shares_buffer else priority)
        flight_s = self._world.draws.between(*_FLIGHT_S, "flight", *end, priority)
        self._last_s[key] = max(self._last_s.get(key, 0.0), now_s + flight_s + hold_s)
        return self._last_s[key]

    def send_probe(self, switch: Switch, port: int, frame: bytes) -> None:
        """Send a frame that is kept as bytes."""
        end = (switch.name, port)
        if end not in self.peers or not switch.is_on or not switch.ports.get(port):
            return
        link, far = self.peers[end]
        switch.counters[port][1] += 1
        cuts = link.cuts
        if end in link.silent:
            return

        def arrive() -> None:
            receiver = self._world.switches[far[0]]
            if link.cuts == cuts and self.carries(link):
                receiver.counters[far[1]][0] += 1
                receiver.receive_probe(far[1], frame)

        hub = self._world.hub
        hub.call_at(self._arrival_s(end, header_of(frame).pcp, 0), hub.outside, arrive)

    def inject(self, source: str, destination: str | None) -> None:
        """Have a host send a frame to another one, or to all."""
        hosts = {host.name: host for host in self.fabric.hosts}
        sender = hosts[source]
        if destination is None:
            header = Header(_BROADCAST, mac_value(sender.mac), _ARP)
        else:
            header = Header(mac_value(hosts[destination].mac), mac_value(sender.mac), _IPV4)
        switch = self._world.switches[sender.switch]
        if switch.is_on:
            switch.counters[sender.port][0] += 1
            frame = Frame(source, header, self._world.judge.number)
            self._forward(frame, switch, sender.port)

    def _forward(self, frame: Frame, switch: Switch, in_port: int) -> None:
        if frame.hops >= MAX_HOPS:
            self.lost += 1
            return
        for copy in switch.forwarding.copies(in_port, frame.header):
            end = (switch.name, copy.port)
            if not switch.ports.get(copy.port):
                self.lost += end in self.peers
                continue
            switch.counters[copy.port][1] += 1
            if end in self.hosts:
                self.delivered += 1
            elif end in self.peers:
                going = Frame(frame.source, copy.header, frame.state, frame.hops + 1)
                self._send(going, end)

    def _send(self, frame: Frame, end: End) -> None:
        link, far = self.peers[end]
        is_silent = end in link.silent
        draws = self._world.draws
        is_long = draws.share("long", *end) < _LONG_SHARE and not self._world.is_calm
        hold_s = draws.between(*_LONG_S, "hold", *end) if is_long else 0.0
        self.frames[frame] = link

        def arrive() -> None:
            if self.frames.pop(frame, None) is None:
                return
            receiver = self._world.switches[far[0]]
            if is_silent:
                self.lost += 1
            else:
                receiver.counters[far[1]][0] += 1
                self._forward(frame, receiver, far[1])
            self._world.judge.left()

        hub = self._world.hub
        hub.call_at(self._arrival_s(end, frame.header.pcp, hold_s), hub.outside, arrive)

    def connected(self) -> set[tuple[str, str]]:
        """Return the pairs of hosts between which there is a way over links that carry frames."""
        part = {name: name for name in self._world.switches}
        for link in self.links.values():
            if self.carries(link):
                a, b = (part[switch] for switch, _ in link.ends)
                part = {name: a if each == b else each for name, each in part.items()}
        hosts = self.fabric.hosts
        return {
            (a.name, b.name)
            for a in hosts
            for b in hosts
            if a is not b and part[a.switch] == part[b.switch]
        }

    def cut_since(self, time_s: float) -> frozenset[End]:
        """Return the ends of links that were cut after a time."""
        links = self.links.values()
        return frozenset(end for link in links if link.cut_s > time_s for end in link.ends)

    @property
    def oldest(self) -> int | None:
        """The number of the state in which the oldest frame was sent; None: there is no frame."""
        return min((frame.state for frame in self.frames), default=None)
