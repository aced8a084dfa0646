"""Links between switches, and the frames on them: probes, and those of hosts.

A frame stays in a channel for a time that is drawn for it, and sometimes a long one; those of one
priority keep their order. Counters show only what was sent and what has arrived. What is on a link
that is cut is lost; what is sent on a silent channel as well.

Without an emulator, a frame that stays long is on a long line. With one, it waits at a paused port:
the switch has counted it as sent, and the emulator tells what has left the port, how long that was
paused, and what is under way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from knotless.base.model_limits import PRIORITIES
from knotless.topologies.fabric import Fabric
from tests.seeded.forwarding import Header, header_of, sent

if TYPE_CHECKING:
    from tests.seeded.switch import Switch
    from tests.seeded.world import World

End = tuple[str, int]
"""A switch, and a port of it."""
_FLIGHT_S = (0.00005, 0.0005)
_LONG_SHARE = 0.02
_LONG_S = (0.02, 0.3)
_PAUSED_S = (0.02, 1.0)
LONG_LINE_US = 300_000
"""The delay of links on which frames stay for :data:`_LONG_S`."""
MAX_HOPS = 64
_FRAME_BYTES = 64
_MAX_FRAMES = 1000
"""More are lost: rules of others can send copies round for ever."""


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


@dataclass
class ChannelState:
    """What is on a channel, by priority, and what the emulator has counted.

    Attributes
    ----------
    waiting, coming : frames at the sending port; those and the frames on the line.
    arrived : frames that have arrived, or were lost on the channel.
    is_uncertain : whether the channel has ever lost a frame, or counters of it have started again.
    left, dropped : frames that have left the port; those that a cut has dropped there.
    pause_ends_s, paused_s : the end of the last pause, and the time of all pauses until then.
    free_s, arrival_s : the times at which the last frame of a class leaves and arrives.

    """

    waiting: int = 0
    coming: Counter[int] = field(default_factory=Counter)
    arrived: Counter[int] = field(default_factory=Counter)
    is_uncertain: bool = False
    left: Counter[int] = field(default_factory=Counter)
    dropped: int = 0
    pause_ends_s: float = 0.0
    paused_s: float = 0.0
    free_s: dict[int, float] = field(default_factory=dict)
    arrival_s: dict[int, float] = field(default_factory=dict)

    def pause(self, now_s: float, until_s: float) -> None:
        """Pause the port until a time."""
        self.paused_s += max(0.0, until_s - max(now_s, self.pause_ends_s))
        self.pause_ends_s = max(self.pause_ends_s, until_s)

    def cut(self) -> None:
        """Lose all that is on the channel."""
        self.dropped, self.waiting = self.dropped + self.waiting, 0
        self.is_uncertain |= any(self.coming.values())
        self.arrived += self.coming
        self.coming.clear()


@dataclass(eq=False)
class Frame:
    """A frame of a host, with the number of the state in which it was sent."""

    source: str
    header: Header
    state: int
    hops: int = 0
    has_crossed_failed: bool = False
    """Whether it was sent to a link that counted as failed, and had a carrier."""


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
        self._channels = {end: ChannelState() for end in self.peers}
        self.frames: dict[Frame, Link] = {}
        """Frames of hosts that are in a channel, the oldest first, with its link."""
        self.delivered = self.lost = 0
        self.slow: Counter[str] = Counter()
        """Hosts whose frames stay long on every channel, and how often that has begun."""

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
            is_off = not all(self._world.switches[switch].is_on for switch, _ in link.ends)
            for end in link.ends:
                self._channels[end].cut()
                self._channels[end].is_uncertain |= is_off
        for switch, port in link.ends:
            self._world.switches[switch].set_carrier(port, up=up)

    def carries(self, link: Link) -> bool:
        """Return whether a link is not cut, and both its ends have power."""
        return link.is_up and all(self._world.switches[switch].is_on for switch, _ in link.ends)

    # --- frames ------------------------------------------------------------------------------

    def _transmit(
        self, end: End, priority: int, hold_s: float, arrive: Callable[[bool], None]
    ) -> None:
        """Put a frame on a channel; call ``arrive`` at its end, unless the link is cut before.

        It is told whether the frame was lost on a silent channel.
        """
        world, channel, link = self._world, self._channels[end], self.peers[end][0]
        now_s, cuts, is_silent = world.hub.now_s, link.cuts, end in link.silent
        group = 0 if world.shares_buffer else priority
        leave_s = max(channel.free_s.get(group, 0.0), now_s + hold_s)
        flight_s = world.draws.between(*_FLIGHT_S, "flight", *end, priority)
        arrival_s = max(channel.arrival_s.get(group, 0.0), leave_s + flight_s)
        channel.free_s[group], channel.arrival_s[group] = leave_s, arrival_s
        if hold_s:
            channel.pause(now_s, leave_s)
        channel.coming[priority] += 1
        channel.waiting += 1

        def leave() -> None:
            if link.cuts == cuts:
                channel.waiting -= 1
                channel.left[priority] += 1

        def end_of_channel() -> None:
            if link.cuts == cuts:
                channel.coming[priority] -= 1
                channel.arrived[priority] += 1
                channel.is_uncertain |= is_silent
                arrive(is_silent)

        if leave_s > now_s:
            world.hub.call_at(leave_s, world.hub.outside, leave)
        else:
            leave()
        world.hub.call_at(arrival_s, world.hub.outside, end_of_channel)

    def send_probe(self, switch: Switch, port: int, frame: bytes) -> None:
        """Send a frame that is kept as bytes."""
        end = (switch.name, port)
        if end not in self.peers or not switch.is_on or not switch.ports.get(port):
            return
        link, far = self.peers[end]
        switch.counters[port][1] += 1

        def arrive(is_lost: bool) -> None:
            receiver = self._world.switches[far[0]]
            if self.carries(link) and not is_lost:
                receiver.counters[far[1]][0] += 1
                receiver.receive_probe(far[1], frame)

        self._transmit(end, header_of(frame).pcp, 0, arrive)

    def inject(self, source: str, destination: str | None) -> None:
        """Have a host send a frame to another one, or to all, unless a reload takes one away."""
        if not all(map(self._world.is_served, {source, destination or source})):
            return
        hosts = {host.name: host for host in self.fabric.hosts}
        sender = hosts[source]
        receiver = None if destination is None else hosts[destination]
        header = sent(sender, receiver, self._world.tags)
        switch = self._world.switches[sender.switch]
        if switch.is_on:
            switch.counters[sender.port][0] += 1
            frame = Frame(source, header, self._world.judge.number)
            self._forward(frame, switch, sender.port)

    def _forward(self, frame: Frame, switch: Switch, in_port: int) -> None:
        if switch.is_deaf or frame.hops >= MAX_HOPS or len(self.frames) > _MAX_FRAMES:
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
                crosses = frame.has_crossed_failed or end in self._world.doubted_ends()
                going = Frame(frame.source, copy.header, frame.state, frame.hops + 1, crosses)
                self._send(going, end)

    def _send(self, frame: Frame, end: End) -> None:
        link, far = self.peers[end]
        draws = self._world.draws
        is_long = self.slow[frame.source] or draws.share("long", *end) < _LONG_SHARE
        is_long = is_long and not self._world.is_calm
        long_s = _PAUSED_S if self._world.setting.emulator else _LONG_S
        hold_s = draws.between(*long_s, "hold", *end) if is_long else 0.0
        self.frames[frame] = link

        def arrive(is_lost: bool) -> None:
            if self.frames.pop(frame, None) is None:
                return
            receiver = self._world.switches[far[0]]
            if is_lost:
                self.lost += 1
            else:
                receiver.counters[far[1]][0] += 1
                self._forward(frame, receiver, far[1])
            self._world.judge.left()

        self._transmit(end, frame.header.pcp, hold_s, arrive)

    def emulated(self, request: str) -> dict[str, Any]:
        """Return what the emulator answers to a request, see docs/emulator-protocol.md."""
        now_s = self._world.hub.now_s
        now_us = int(now_s * 1e6)
        names = {end: f"{end[0]}:{end[1]}" for end in self.peers}
        match request:
            case "counters":
                channels = [
                    {
                        "channel": names[end],
                        "tx_frames": channel.left.total(),
                        "drops": {"down": channel.dropped},
                        "priorities": [
                            {
                                "tx_frames": channel.left[priority],
                                "queue_bytes": _FRAME_BYTES * channel.coming[priority],
                                # All priorities together are with the first one.
                                "paused_us": 0
                                if priority
                                else int(1e6 * self._paused_s(channel, now_s)),
                            }
                            for priority in range(PRIORITIES)
                        ],
                    }
                    for end, channel in self._channels.items()
                ]
                return {"now_us": now_us, "channels": channels}
            case "under-way":
                under_way = {
                    names[end]: {
                        str(priority): [channel.arrived[priority], channel.coming[priority]]
                        for priority in sorted(channel.arrived | channel.coming)
                    }
                    for end, channel in self._channels.items()
                }
                return {"now_us": now_us, "channels": under_way}
            case "deadlock":
                return {"deadlock": None}
            case _:
                return {"stretch_now": 1.0, "pausing_hosts": []}

    @staticmethod
    def _paused_s(channel: ChannelState, now_s: float) -> float:
        return channel.paused_s - max(0.0, channel.pause_ends_s - now_s)

    def connected(self, fabric: Fabric) -> set[tuple[str, str]]:
        """Return the pairs of hosts of a part between which there is a way over its working links.

        Deaf switches forward none.
        """
        part = {name: name for name in self._world.switches}
        deaf = self._world.deaf()
        for name in (link.name for link in fabric.links):
            link = self.links[name]
            if self.carries(link) and not deaf & {name for name, _ in link.ends}:
                a, b = (part[switch] for switch, _ in link.ends)
                part = {name: a if each == b else each for name, each in part.items()}
        hosts = fabric.hosts
        return {
            (a.name, b.name)
            for a in hosts
            for b in hosts
            if a is not b and part[a.switch] == part[b.switch] and a.switch not in deaf
        }

    def uncertain(self) -> set[str]:
        """Return the channels whose counters may not tell what is on them, by the ports' names."""
        channels = self._channels.items()
        return {f"{name}:{port}" for (name, port), each in channels if each.is_uncertain}

    def cut_since(self, time_s: float) -> frozenset[End]:
        """Return the ends of links that were cut after a time."""
        links = self.links.values()
        return frozenset(end for link in links if link.cut_s > time_s for end in link.ends)

    @property
    def oldest(self) -> int | None:
        """The number of the state in which the oldest frame was sent; None: there is no frame."""
        return min((frame.state for frame in self.frames), default=None)
