"""Forwards single frames by the rules of one switch, or of all switches of a fabric."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from knotless._core.forwarding import Switch
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.routing.graphs.channels import channels_of
from knotless.routing.graphs.dependencies import virtual_channel
from knotless.routing.multicast import MulticastGroup
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import mac_value

BROADCAST = 0xFFFFFFFFFFFF


class Frame(NamedTuple):
    """The headers of a frame. ``tags`` are its 802.1Q tags, outermost first, 16 bits each."""

    eth_dst: int
    eth_src: int
    eth_type: int
    tags: tuple[int, ...] = ()

    @property
    def priority(self) -> int:
        """The priority that flow control sees: that of the outer tag, or 0."""
        return self.tags[0] >> 13 if self.tags else 0


class Pipeline:
    """The rules of one switch. ``problems`` collects the problems that frames encounter."""

    def __init__(self, name: str, rules: SwitchRules) -> None:
        self.name = name
        self.problems: dict[str, None] = {}
        self._switch = Switch(rules)

    def outputs(self, in_port: int, frame: Frame) -> tuple[tuple[int, Frame], ...]:
        """Return the copies that leave when ``frame`` comes in by ``in_port``."""
        copies, problems = self._switch.outputs(in_port, *frame[:3], list(frame.tags))
        self.problems |= dict.fromkeys(f"{self.name}: {text}" for text in problems)
        return tuple((port, frame._replace(tags=tuple(tags))) for port, tags in copies)


class OneByOne:
    """Follow every frame separately: slow and simple. Hosts send with ``tags``."""

    def __init__(self, fabric: Fabric, rules: FabricRules, tags: tuple[int, ...] = ()) -> None:
        self.fabric, self.channels, self._tags = fabric, channels_of(fabric), tags
        self.edges: set[tuple[int, int]] = set()
        self.loads = [0] * len(self.channels)
        self.undelivered = self.floods_undelivered = self.switches_passed = 0
        self.max_switches = 1
        nothing = SwitchRules(())
        self._switches = [Pipeline(s.name, rules.get(s.name, nothing)) for s in fabric.switches]
        index = fabric.switch_index
        self._at = [(index[host.switch], host.port) for host in fabric.hosts]
        self._host = {end: host for host, end in enumerate(self._at)}
        self._macs = [mac_value(host.mac) for host in fabric.hosts]

    def pairs(self) -> None:
        """Send between all pairs of hosts."""
        for source in range(len(self._at)):
            for target in range(len(self._at)):
                if source != target:
                    self._unicast(source, target)

    def _unicast(self, source: int, target: int) -> None:
        frame = Frame(self._macs[target], self._macs[source], 0x0800, self._tags)
        delivered, passed, looped = self._send(source, frame)
        if delivered != [(target, frame)] or looped:
            self.undelivered += 1
            return
        self.switches_passed += len(passed) + 1
        self.max_switches = max(self.max_switches, len(passed) + 1)
        for channel in passed:
            self.loads[channel] += 1

    def floods(self, groups: Iterable[MulticastGroup | None]) -> None:
        """Send from every host to all (None) or to groups."""
        for group in groups:
            hosts = self.fabric.host_index
            to = {hosts[name] for name in group.members} if group else set(hosts.values())
            address, eth_type = (group.address, 0x0800) if group else (BROADCAST, 0x0806)
            for source, mac in enumerate(self._macs):
                frame = Frame(address, mac, eth_type, self._tags)
                delivered, _, looped = self._send(source, frame)
                copies: dict[int, int] = {}
                for host, arrived in delivered:
                    copies[host] = copies.get(host, 0) + (1 if arrived == frame else 2)
                due = to - {source}
                wrong = [h for h in due | set(copies) if copies.get(h, 0) != (h in due)]
                self.floods_undelivered += len(wrong) or int(looped)

    def _send(self, source: int, frame: Frame) -> tuple[list[tuple[int, Frame]], list[int], bool]:
        """Follow all copies; return deliveries, channels used, and whether there is a loop."""
        delivered: list[tuple[int, Frame]] = []
        passed: list[int] = []
        looped = False
        going = [(*self._at[source], -1, frame)]
        been: set[tuple[int, int, Frame]] = set()
        while going:
            switch, port, held, frame = going.pop()
            if (switch, port, frame) in been:
                looped = True
                continue
            been.add((switch, port, frame))
            for out_port, copy in self._switches[switch].outputs(port, frame):
                onward = self.channels.leaving.get((switch, out_port))
                if onward is not None:
                    passed.append(onward)
                    head = int(self.channels.head[onward])
                    going.append((head, int(self.channels.in_port[onward]), onward, copy))
                    if held >= 0:
                        before = virtual_channel(held, frame.priority)
                        self.edges.add((before, virtual_channel(onward, copy.priority)))
                elif (switch, out_port) in self._host:
                    delivered.append((self._host[switch, out_port], copy))
        return delivered, passed, looped
