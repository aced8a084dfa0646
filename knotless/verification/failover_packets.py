"""The packets of a fabric, followed one by one through rules while a part has failed.

A packet is followed from the hosts once, by the rules of the intact fabric. A failure changes the
rules of the failed part's neighbours only, so just the packets that meet a changed rule are
followed again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from knotless._core import forwarding as core
from knotless.forwarding.openflow.reader import ARP, BROADCAST, IPV4
from knotless.forwarding.openflow.rules import FabricRules, Group, Output, Rule, SwitchRules
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, Channels
from knotless.routing.multicast import MulticastGroup
from knotless.routing.vlans.host_tags import HostTags, tag_table
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import mac_text, mac_value

_PRIORITY_SHIFT = 13


class Packet(NamedTuple):
    """A packet on a channel: the VLAN tags (outermost first), and the number of its kind.

    ``channel`` is one between switches, or their number plus that of the host at its end.
    """

    channel: int
    tags: tuple[int, ...]
    kind: int


class _Kind(NamedTuple):
    """Packets with the same addresses; ``host`` is the receiver, -1 for a broadcast."""

    eth_dst: int
    eth_src: int
    eth_type: int
    host: int


Edge = tuple[int, int]
Hops = tuple[Packet, ...]


class Variant:
    """The rules of one switch while some of its ports are down."""

    def __init__(self, switch: int, rules: SwitchRules, down: Collection[int]) -> None:
        self.switch = switch
        self.behaviour = rules.live(down).parsed
        self.hops: dict[Packet, Hops] = {}
        self.ports: set[int] = set()
        self.any_port = False
        for group in rules.groups:
            if group.live() != group.live(down):
                self._look_at(group.live())

    def _look_at(self, group: Group) -> None:
        """Note on which ports a group sends that does something else now."""
        ports = {
            action.port
            for bucket in group.buckets
            for action in bucket
            if isinstance(action, Output)
        }
        self.ports |= ports
        self.any_port |= not ports or max(ports) >= 1 << 31


class Packets:
    """All packets that hosts can send.

    ``reached`` are those that are on some channel of the intact fabric, ``edges`` the dependencies
    between virtual channels that they cause.
    """

    def __init__(
        self,
        fabric: Fabric,
        channels: Channels,
        rules: FabricRules,
        groups: Sequence[MulticastGroup],
        tags: HostTags | None,
    ) -> None:
        self.channels = len(channels)
        index = fabric.switch_index
        hosts = [(index[host.switch], host.port) for host in fabric.hosts]
        ends = zip(channels.tail.tolist(), channels.out_port.tolist(), strict=True)
        self._leaving = {end: channel for channel, end in enumerate([*ends, *hosts])}
        self._entered: list[tuple[int, int]] = [
            *zip(channels.head.tolist(), channels.in_port.tolist(), strict=True),
            *hosts,
        ]
        nothing = SwitchRules(())
        self._rules = [rules.get(name, nothing) for name in channels.names]
        self._switches = [rules.parsed for rules in self._rules]
        self._macs = [mac_value(host.mac) for host in fabric.hosts]
        self._kinds: list[_Kind] = []
        self._hops: dict[Packet, Hops] = {}
        self.reached: set[Packet] = set()
        self.edges: set[Edge] = set()
        self.starts: list[tuple[int, Packet]] = []
        """(source, what it sends to a host)."""
        self._by_output: defaultdict[int, list[Packet]] = defaultdict(list)
        self._by_switch: defaultdict[int, list[Packet]] = defaultdict(list)
        self._sent(fabric, groups, tags)
        self.sources = self._sources()

    def _sent(
        self, fabric: Fabric, groups: Sequence[MulticastGroup], tags: HostTags | None
    ) -> None:
        """Follow everything that hosts send."""
        to = [(mac, IPV4, number) for number, mac in enumerate(self._macs)]
        to += [(BROADCAST, ARP, -1), *((group.address, IPV4, -1) for group in groups)]
        vlans = None if tags is None else tag_table(fabric, tags, [mac_text(mac) for mac, *_ in to])
        by_source = self._tell_sources_apart()
        for place, (eth_dst, eth_type, host) in enumerate(to):
            for source, eth_src in enumerate(self._macs):
                if source == host:
                    continue
                if by_source or source == int(host == 0):
                    kind = _Kind(eth_dst, eth_src if by_source else 0, eth_type, host)
                    self._kinds.append(kind)
                vlan = 0 if vlans is None else int(vlans[source, place])
                packet = Packet(
                    self.channels + source, (vlan,) if vlan else (), len(self._kinds) - 1
                )
                self._reach(packet)
                if host >= 0:
                    self.starts.append((source, packet))

    def _tell_sources_apart(self) -> bool:
        """Tell whether a switch distinguishes the senders of packets of other switches."""

        def matches_source(switch: int, rule: Rule) -> bool:
            names = {field.name for field in rule.match}
            from_host = any(
                field.name == "in_port"
                and field.mask is None
                and self._leaving.get((switch, field.value), -1) >= self.channels
                for field in rule.match
            )
            return "eth_src" in names and not from_host

        every = ((switch, rule) for switch, rules in enumerate(self._rules) for rule in rules.rules)
        return any(matches_source(switch, rule) for switch, rule in every)

    def _reach(self, start: Packet) -> None:
        waiting = [start]
        while waiting:
            packet = waiting.pop()
            if packet in self.reached:
                continue
            self.reached.add(packet)
            self._by_switch[self.switch_of(packet)].append(packet)
            for hop in self.hops(packet):
                self._by_output[hop.channel].append(packet)
                self.edges.update(self.edge(packet, hop))
                if hop.channel < self.channels:
                    waiting.append(hop)

    def _sources(self) -> dict[Packet, int]:
        """Return the hosts that send each packet, or what becomes it on its way, as bits."""
        sources: dict[Packet, int] = {}
        for source, start in self.starts:
            waiting, seen = [start], {start}
            while waiting:
                packet = waiting.pop()
                sources[packet] = sources.get(packet, 0) | 1 << source
                for hop in self.hops(packet):
                    if hop.channel < self.channels and hop not in seen:
                        seen.add(hop)
                        waiting.append(hop)
        return sources

    def switch_of(self, packet: Packet) -> int:
        """Return the switch that a packet on a channel enters."""
        return self._entered[packet.channel][0]

    def hops(self, packet: Packet, variant: Variant | None = None) -> Hops:
        """Return where the switch that a packet enters sends it, by its rules or a variant's."""
        cache = self._hops if variant is None else variant.hops
        hops = cache.get(packet)
        if hops is None:
            switch, port = self._entered[packet.channel]
            behaviour: core.Switch = (
                self._switches[switch] if variant is None else variant.behaviour
            )
            kind = self._kinds[packet.kind]
            source = packet.channel - self.channels
            eth_src = self._macs[source] if source >= 0 else kind.eth_src
            copies, _ = behaviour.outputs(port, kind.eth_dst, eth_src, kind.eth_type, packet.tags)
            sent = ((self._leaving.get((switch, out)), tags) for out, tags in copies)
            hops = cache[packet] = tuple(
                Packet(out, tuple(tags), packet.kind) for out, tags in sent if out is not None
            )
        return hops

    def edge(self, packet: Packet, hop: Packet) -> Iterator[Edge]:
        """Yield the dependency of a packet on its hop, if both are between switches."""
        if packet.channel < self.channels and hop.channel < self.channels:
            yield _node(packet), _node(hop)

    def variant(self, switch: int, down: Collection[int]) -> Variant:
        """Return the rules of a switch while some of its ports are down."""
        return Variant(switch, self._rules[switch], down)

    def changed(self, variant: Variant) -> list[Packet]:
        """Return the packets of the intact fabric that the variant sends elsewhere."""
        possible: Iterable[Packet] = self._by_switch[variant.switch]
        if not variant.any_port:
            channels_out = (
                self._leaving.get((variant.switch, port), -1) for port in sorted(variant.ports)
            )
            possible = dict.fromkeys(
                packet for channel in channels_out for packet in self._by_output[channel]
            )
        return [p for p in possible if self.hops(p, variant) != self.hops(p)]

    def sent_on(self, channels: Iterable[int]) -> Iterator[Packet]:
        """Yield the packets of the intact fabric whose switch sends them on one of the channels."""
        for channel in channels:
            yield from self._by_output[channel]

    def receiver(self, packet: Packet) -> int:
        """Return the host to which a packet is sent; -1: to several."""
        return self._kinds[packet.kind].host

    def arrives(self, hop: Packet) -> bool:
        """Tell whether a packet on the channel to a host is for this host, and has no tag."""
        return hop.channel - self.channels == self.receiver(hop) and not hop.tags


def _node(packet: Packet) -> int:
    """Return the virtual channel that a packet is on."""
    priority = packet.tags[0] >> _PRIORITY_SHIFT if packet.tags else 0
    return packet.channel * VCS_PER_CHANNEL + priority
