"""The fabric of routers: their ports, cables, the hosts behind them, and what leads out of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from knotless.base.errors import RuleError
from knotless.base.memory import Cost, refuse_beyond
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.prefixes import Prefix, prefix_of
from knotless.importers.route_dump import END, NextHop, distinct
from knotless.importers.routers.cables import Cabling, Routes
from knotless.importers.routers.interfaces import Interfaces
from knotless.importers.routers.router import Router, natural
from knotless.routing.graphs.channels import Channels, channels_of
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import host_ip, mac_text
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete
from knotless.topologies.validate import is_name

_SHOWN_UNREAD = 5
_FIRST_MAC = 0x06 << 40
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class Wiring:
    """The interfaces of routers, and what they lead to.

    With ``loopbacks``, the loopback addresses of routers count as networks of hosts.
    """

    interfaces: Interfaces
    cabling: Cabling
    loopbacks: bool = False

    def is_own(self, router: str, hop: NextHop) -> bool:
        """Tell whether a next hop's interface leads neither to other routers nor to hosts."""
        of_router = self.interfaces[router]
        interface = hop.interface or ""
        if self.loopbacks and of_router.is_loopback(interface):
            return False
        return bool(self._own(router, interface, routed=hop.address is not None))

    def _own(self, router: str, interface: str, *, routed: bool) -> str:
        """Return why an interface leads to the device itself, which none with a neighbour does."""
        of_router = self.interfaces[router]
        ports = [(router, port) for port in of_router.ports(interface)]
        is_cabled = any(
            port in self.cabling.peers or port in self.cabling.outside for port in ports
        )
        return of_router.own(interface, routed=routed or is_cabled)

    def ports(self, router: str, interface: str) -> tuple[str, ...]:
        """Return the physical ports of an interface: of a LAG its members, of a VLAN none."""
        return self.interfaces[router].ports(interface)

    def is_edge(self, router: str, hop: NextHop) -> bool | None:
        """Tell whether a next hop's interface leads to hosts; None if that is unknown.

        A next hop with an address is a router, of which something must be known.
        """
        of_router, interface = self.interfaces[router], hop.interface or ""
        if of_router.is_loopback(interface):
            return True
        if of_router.is_bridge(interface):
            read = self.interfaces.owners(hop.address) if hop.address else set()
            return None if read - {router} else True
        ports = [(router, port) for port in of_router.ports(interface)]
        if any(port in self.cabling.peers for port in ports):
            return False
        outside = any(port in self.cabling.outside for port in ports)
        return True if hop.address is None or outside else None

    def leaves(self, router: str, hop: NextHop, prefix: Prefix) -> bool:
        """Tell whether a route by an interface to hosts leads out of the fabric.

        Its next hop is a router, or the interface has addresses and none in the prefix.
        """
        networks = self.interfaces[router].networks.get(hop.interface or "")
        return hop.address is not None or (
            networks is not None
            and not any(prefix_of(str(network)).has(prefix) for network in networks)
        )

    def explain(self, router: str, interface: str) -> str:
        """Return what an interface leads to, and the evidence."""
        of_router = self.interfaces[router]
        if own := self._own(router, interface, routed=False):
            return f"it leads to the device itself or its management network: {own}"
        if of_router.is_bridge(interface):
            return "it is a bridge or VLAN, a network of hosts; its members are ports"
        lines = []
        for port in ((router, name) for name in of_router.ports(interface)):
            evidence = self.cabling.evidence.get(port, "")
            if port in self.cabling.peers:
                far = ":".join(self.cabling.peers[port])
                kind = "a router without files" if far.split(":")[0] in self.cabling.absent else ""
                lines.append(f"{port[1]} leads to {far}, {kind or 'a router'}: {evidence}")
            elif port in self.cabling.outside:
                lines.append(f"{port[1]} leads to hosts: {evidence}")
        return "; ".join(lines) or (
            "no file names what is there: a network of hosts, unless a route leads to a next hop"
        )

    def own_routes(self, router: Router) -> dict[str, tuple[NextHop, ...]]:
        """Return the routes to a router's own addresses: what is sent there ends at the router.

        A dump need not list them, as SONiC's ROUTE_TABLE does not. An address in a network of hosts
        is left to the route of the network, by which packets arrive at the router as well.
        """
        of_router = self.interfaces[router.name]
        closed = router.configuration.closed if router.configuration else ()
        routes: dict[str, tuple[NextHop, ...]] = {}
        for interface, address in of_router.addresses():
            here = NextHop(None, interface)
            if of_router.is_loopback(interface):
                routes[prefix_of(str(address.ip)).text] = (here,)
            elif interface not in closed and not self.is_edge(router.name, here):
                routes[prefix_of(str(address.ip)).text] = (END,)
        return routes


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
    wiring: Wiring


def router_fabric(
    name: str, routers: Sequence[Router], routes: Mapping[str, Routes], wiring: Wiring
) -> RouterFabric:
    """Return the fabric called ``name``. Raises FabricError if it is inconsistent."""
    cabling = wiring.cabling
    names = (*(router.name for router in routers), *sorted(cabling.absent, key=natural))
    index = {router: i for i, router in enumerate(names)}
    edges = [
        (router.name, interface)
        for router in routers
        for interface in _edges_of(router, routes[router.name], wiring)
    ]
    refuse_beyond("this fabric", Cost.ROUTER_PAIR.bytes_for(len(edges) ** 2), RuleError)
    port = _port_numbers(routers, routes, wiring, edges)
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
    return RouterFabric(fabric, channels, names, port, tuple(edges), wiring)


def _edges_of(router: Router, routes: Routes, wiring: Wiring) -> list[str]:
    """Return the interfaces of a router that lead to hosts or out of the fabric."""
    edges = {
        hop.interface
        for hops in distinct(routes)
        for hop in hops
        if hop.interface
        and not wiring.is_own(router.name, hop)
        and wiring.is_edge(router.name, hop)
    }
    return sorted(edges, key=natural)


def _port_numbers(
    routers: Sequence[Router],
    routes: Mapping[str, Routes],
    wiring: Wiring,
    edges: Iterable[NamedEnd],
) -> dict[NamedEnd, int]:
    """Number the ports of each router from 1, in natural order; then its other interfaces."""
    cabling = wiring.cabling
    ports = {router.name: _ports_of(router, routes[router.name], wiring) for router in routers}
    for router, port in sorted(cabling.peers, key=lambda end: natural(end[1])):
        if router in cabling.absent:
            ports.setdefault(router, []).append(port)
    for router, interface in edges:
        ports[router].append(interface)
    ports = {router: list(dict.fromkeys(names)) for router, names in ports.items()}
    return {(router, port): i for router, names in ports.items() for i, port in enumerate(names, 1)}


def _ports_of(router: Router, routes: Routes, wiring: Wiring) -> list[str]:
    """Return the physical ports of a router by name, in natural order."""
    cabling = wiring.cabling
    cabled = {end[1] for end in (*cabling.peers, *cabling.outside) if end[0] == router.name}
    of_router = wiring.interfaces[router.name]
    used = {
        of_router.base(hop.interface)
        for hops in distinct(routes)
        for hop in hops
        if hop.interface and not wiring.is_own(router.name, hop)
    }
    named = {name for name in used if of_router.ports(name) == (name,)}
    return sorted(cabled | named | set(router.table("PORT")), key=natural)


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


def unread_ports(
    routed: RouterFabric, routers: Sequence[Router], routes: Mapping[str, Routes]
) -> list[NamedEnd]:
    """Return the ports and interfaces of routers whose far end is a device without files.

    These are ports to a router of which there are no files, interfaces by which routes lead to a
    router outside of the fabric, and ports to any other device that are neither an interface of
    hosts nor a member of one. What is behind them can send to every address.
    """
    cabling, wiring = routed.wiring.cabling, routed.wiring
    unread = {port for port, (peer, _) in cabling.peers.items() if peer in cabling.absent}
    unread = {port for port in unread if port[0] not in cabling.absent}
    covered = {
        (name, port) for name, interface in routed.edges for port in wiring.ports(name, interface)
    }
    for router in routers:
        covered |= {(router.name, port) for port in _vlan_members(router)}
    unread |= cabling.outside - covered
    edges = {*routed.edges}
    for name, router_routes in routes.items():
        for hop in (hop for hops in distinct(router_routes) for hop in hops):
            if hop.address is not None and (name, hop.interface) in edges:
                unread.add((name, hop.interface or ""))
    names = {router.name for router in routers}
    return sorted(
        (port for port in unread if port[0] in names and port in routed.port),
        key=lambda port: (routed.names.index(port[0]), natural(port[1])),
    )


def _vlan_members(router: Router) -> Iterator[str]:
    """Yield the ports of a router that are members of a VLAN or bridge."""
    for key in (*router.table("VLAN_MEMBER"), *router.table("BRIDGE_MEMBER")):
        yield key.partition("|")[2]


def unread_text(unread: Sequence[NamedEnd]) -> str:
    """Return a sentence that names the ports, some of them if there are many."""
    shown = ", ".join(f"{router}:{port}" for router, port in unread[:_SHOWN_UNREAD])
    more = f" and {len(unread) - _SHOWN_UNREAD} more" if len(unread) > _SHOWN_UNREAD else ""
    lead = "1 port leads" if len(unread) == 1 else f"{len(unread)} ports lead"
    return f"{lead} to devices without files, which are taken to send to all: {shown}{more}"
