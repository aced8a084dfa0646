"""The fabric of routers: their ports, cables, and the networks of hosts behind them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from knotless.base.errors import RuleError
from knotless.base.memory import refuse_beyond
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.route_dump import distinct
from knotless.importers.routers.cables import Cabling, Routes, is_own, ports_of
from knotless.importers.routers.router import Router, natural
from knotless.routing.graphs.channels import Channels, channels_of
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import host_ip, mac_text
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete
from knotless.topologies.validate import is_name

MEMORY_PER_PAIR = 8
"""Bytes for a source and a destination."""
_FIRST_MAC = 0x06 << 40
_LOOPBACKS = ("lo", "Loopback")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class Interfaces:
    """The interfaces of routers: members of LAGs, bridges, and cables.

    With ``loopbacks``, the loopback addresses of routers count as networks of hosts.
    """

    members: Mapping[NamedEnd, tuple[str, ...]]
    cabling: Cabling
    bridges: frozenset[NamedEnd] = frozenset()
    loopbacks: bool = False

    def is_own(self, interface: str) -> bool:
        """Tell whether an interface leads neither to other routers nor to hosts."""
        return is_own(interface) and not (self.loopbacks and interface.startswith(_LOOPBACKS))

    def ports(self, router: str, interface: str) -> tuple[str, ...]:
        """Return the physical ports of an interface: of a LAG its members, of a VLAN none."""
        base = interface.partition(".")[0]
        bridged = base.startswith("Vlan") or (router, base) in self.bridges
        return self.members.get((router, base), () if bridged else (base,))

    def is_edge(self, router: str, interface: str, routed: bool) -> bool | None:
        """Tell whether an interface leads to hosts; None if that is unknown.

        A next hop on the interface is a router (``routed``), of which something must be known.
        """
        if interface.startswith(("Vlan", *_LOOPBACKS)) or (router, interface) in self.bridges:
            return True
        ports = [(router, port) for port in self.ports(router, interface)]
        if any(port in self.cabling.peers for port in ports):
            return False
        return True if not routed or any(port in self.cabling.outside for port in ports) else None


@dataclass(frozen=True)
class RouterFabric:
    """Routers as switches, in the order of ``names``; routers without files come last.

    ``port`` is the number of each port by (router, name). Hosts are the networks behind an
    interface; ``edges`` are their (router, interface), in the order of the hosts.
    """

    fabric: Fabric
    channels: Channels
    names: tuple[str, ...]
    port: Mapping[NamedEnd, int]
    edges: tuple[NamedEnd, ...]
    interfaces: Interfaces


def interfaces_of(routers: Sequence[Router], cabling: Cabling) -> Interfaces:
    """Return the interfaces of all routers."""
    members: dict[NamedEnd, set[str]] = {}
    for router in routers:
        for table, mark in (("PORTCHANNEL_MEMBER", "|"), ("LAG_MEMBER_TABLE", ":")):
            for key in router.table(table):
                lag, _, port = key.partition(mark)
                members.setdefault((router.name, lag), set()).add(port)
    listed = {lag: tuple(sorted(ports, key=natural)) for lag, ports in members.items()}
    bridges = {(router.name, bridge) for router in routers for bridge in router.table("BRIDGE")}
    return Interfaces(listed, cabling, frozenset(bridges))


def router_fabric(
    name: str, routers: Sequence[Router], routes: Mapping[str, Routes], interfaces: Interfaces
) -> RouterFabric:
    """Return the fabric called ``name``. Raises FabricError if it is inconsistent."""
    cabling = interfaces.cabling
    names = (*(router.name for router in routers), *sorted(cabling.absent, key=natural))
    index = {router: i for i, router in enumerate(names)}
    edges = [
        (router.name, interface)
        for router in routers
        for interface in _edges_of(router, routes[router.name], interfaces)
    ]
    refuse_beyond("this fabric", MEMORY_PER_PAIR * len(edges) ** 2, RuleError)
    port = _port_numbers(routers, routes, cabling, edges)
    switches = as_names(names, ())
    hosts = as_names(
        [f"{switches[index[router]]}-{interface}" for router, interface in edges], switches
    )
    links = [
        PartialLink(index[a[0]], index[b[0]], port[a], port[b])
        for a, b in sorted(cabling.peers.items(), key=lambda ends: (index[ends[0][0]], ends))
        if cabling.peers.get(b) == a and (index[a[0]], a[1]) < (index[b[0]], b[1])
    ]
    fabric = complete(
        name,
        [PartialSwitch(switch) for switch in switches],
        [
            PartialHost(
                host,
                index[edge[0]],
                port[edge],
                mac_text(_FIRST_MAC + i),
                host_ip(1 + i // 254, 1 + i % 254),
                ip_invented=True,
            )
            for i, (host, edge) in enumerate(zip(hosts, edges, strict=True))
        ],
        links,
        whole=False,
    )
    port_names = {(index[router], number): text for (router, text), number in port.items()}
    channels = replace(channels_of(fabric), port_names=port_names)
    return RouterFabric(fabric, channels, names, port, tuple(edges), interfaces)


def _edges_of(router: Router, routes: Routes, interfaces: Interfaces) -> list[str]:
    """Return the interfaces of a router that lead to hosts or out of the fabric."""
    edges = {
        hop.interface
        for hops in distinct(routes)
        for hop in hops
        if hop.interface
        and not interfaces.is_own(hop.interface)
        and interfaces.is_edge(router.name, hop.interface, hop.address is not None)
    }
    return sorted(edges, key=natural)


def _port_numbers(
    routers: Sequence[Router],
    routes: Mapping[str, Routes],
    cabling: Cabling,
    edges: Iterable[NamedEnd],
) -> dict[NamedEnd, int]:
    """Number the ports of each router from 1, in natural order; then its other interfaces."""
    ports = {router.name: ports_of(router, routes[router.name], cabling) for router in routers}
    for router, port in sorted(cabling.peers, key=lambda end: natural(end[1])):
        if router in cabling.absent:
            ports.setdefault(router, []).append(port)
    for router, interface in edges:
        ports[router].append(interface)
    ports = {router: list(dict.fromkeys(names)) for router, names in ports.items()}
    return {(router, port): i for router, names in ports.items() for i, port in enumerate(names, 1)}


def as_names(texts: Sequence[str], reserved: Sequence[str]) -> list[str]:
    """Return a valid name for each text: distinct, and none of those that are taken."""
    shown = [_NOT_IN_NAMES.sub("-", text)[:50] for text in texts]
    times = Counter([*shown, *reserved])
    return [
        text if times[text] == 1 and is_name(text) else f"x{number}-{text}"
        for number, text in enumerate(shown, 1)
    ]


def channel_ends(routed: RouterFabric) -> Iterator[tuple[NamedEnd, NamedEnd]]:
    """Yield the ends of each channel by the names of routers and ports."""
    channels = routed.channels
    for tail, out, head, into in zip(
        channels.tail.tolist(),
        channels.out_port.tolist(),
        channels.head.tolist(),
        channels.in_port.tolist(),
        strict=True,
    ):
        yield (
            (routed.names[tail], channels.port_name(tail, out)),
            (routed.names[head], channels.port_name(head, into)),
        )
