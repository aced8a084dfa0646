"""The priorities of messages on the links of hosts behind routers.

A host sends messages of priority P with a DSCP (or PCP) that the port at which they enter puts into
a priority group that pauses P, and pauses P for those that it does not take. A switch obeys that
for one queue of the port.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from knotless.base.model_limits import PRIORITIES
from knotless.base.printable import listed
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.fabric import TableTraffic
from knotless.importers.host_links import HostLinks, HostTraffic
from knotless.importers.routers.fabric import RouterFabric
from knotless.importers.routers.pfc import Priorities, Qos, ports_of_hosts
from knotless.importers.routers.qos import PortQos, port_qos


@dataclass(frozen=True)
class HostPorts:
    """The ports of hosts, with their settings; ``members`` are those of VLANs.

    Packets of ``traffics[i]`` are sent with ``priorities.marks[i]``.
    """

    routed: RouterFabric
    qos: Qos
    members: Mapping[NamedEnd, Sequence[str]]
    priorities: Priorities
    traffics: Sequence[TableTraffic]
    tunnels: bool

    @property
    def links(self) -> HostLinks:
        """The links of hosts."""
        used = {p for edge in self.routed.edges for p in self._lossless(edge)}
        return HostLinks(
            traffics=[
                HostTraffic(traffic.state.core, partial(self._enters, i), partial(self._arrives, i))
                for i, traffic in enumerate(self.traffics)
            ],
            turns=self._turns,
            priorities=sorted(used),
            together="",
            gaps=self._gaps,
            doubts=self._doubts,
        )

    @cached_property
    def _ports(self) -> list[list[PortQos]]:
        return [
            ports_of_hosts(self.routed, self.qos, self.members, edge) for edge in self.routed.edges
        ]

    def _lossless(self, edge: NamedEnd) -> set[int]:
        """Return the priorities that pause where hosts of an interface send."""
        ports = self._ports[self.routed.edges.index(edge)]
        return {p for port in ports for paused in port.pauses for p in paused}

    def _enters(self, traffic: int, end: int) -> set[int]:
        mark = self.priorities.marks[traffic]
        groups = (
            (port, port.groups[port.classes[mark]])
            for port in (self._ports[end] if end < len(self._ports) else ())
        )
        return {group for port, group in groups if port.pauses[group]}

    def _arrives(self, traffic: int, end: int, channel: int, vc: int) -> set[int]:
        if end >= len(self._ports):
            return set()
        return {
            priority
            for port in self._ports[end]
            for priority in port.obeys
            if port.stopped[priority] in self._queues(traffic, port, channel, vc)
        }

    def _queues(self, traffic: int, out: PortQos, channel: int, vc: int) -> set[int]:
        """Return the queues at a port of hosts of packets that come by a channel."""
        if self.tunnels:
            return {*out.queues}
        channels, repeated = self.routed.channels, self.priorities.repetitions > 1
        marks = self.priorities.marks if repeated else self.priorities.marks[traffic : traffic + 1]
        if channel >= len(channels):
            end = channel - len(channels)
            entered = self._ports[end] if end < len(self._ports) else []
            marks = self.priorities.marks[traffic : traffic + 1]
            return {out.queues[port.classes[mark]] for port in entered for mark in marks}
        head = int(channels.head[channel])
        name = channels.port_name(head, int(channels.in_port[channel]))
        into = port_qos(self.qos[self.routed.names[head]], name)
        kinds = (into.classes[mark] for mark in marks)
        return {out.queues[kind] for kind in kinds if into.groups[kind] == vc % PRIORITIES}

    def _turns(self, end: int, taken: int, sent: int) -> set[tuple[int, int]]:
        ports = self._ports[end] if end < len(self._ports) else []
        groups = {g for port in ports for g, paused in enumerate(port.pauses) if sent in paused}
        return {(taken, group) for group in groups}

    def _gaps(self, priorities: Collection[int]) -> Iterator[str]:
        edges = [f"{router}:{interface}" for router, interface in self.routed.edges]
        without = [edge for edge, ports in zip(edges, self._ports, strict=True) if not ports]
        if without:
            yield f"PORT_QOS_MAP of the ports of hosts behind {listed(without, 3)}"
        for priority in sorted(priorities):
            other = [
                edge
                for edge, name in zip(edges, self.routed.edges, strict=True)
                if edge not in without and priority not in self._lossless(name)
            ]
            if other:
                yield (
                    f"how hosts behind {listed(other, 3)} send messages of priority {priority}:"
                    " it does not pause there"
                )

    def _doubts(self, _: Collection[int]) -> Iterator[str]:
        if self.tunnels:
            yield "the queues of packets that leave tunnels for hosts"
        if self.priorities.repetitions > 1:
            yield "the DSCPs with which packets arrive at hosts: switches change them"
        mixed = [
            f"{router}:{interface}"
            for (router, interface), ports in zip(self.routed.edges, self._ports, strict=True)
            if len({*ports}) > 1
        ]
        if mixed:
            yield f"which port of {listed(mixed, 3)} leads to which hosts: they pause differently"
