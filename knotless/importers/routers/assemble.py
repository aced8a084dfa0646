"""Fabrics of IP routers: SONiC switches, FRR on Linux.

Routers forward by the longest matching prefix, out of any one of its next hops. Hosts are the
networks behind a port or VLAN that leads to no other router; all of them send to all others.

Files go through stages, each of which makes a value of the one before: they are *read* as routers
(:mod:`.files`), whose ports are *connected* (:mod:`.cables`); their routes are followed
(:mod:`.routes`); and what packets wait for is *settled* by their priorities (:mod:`.settle`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache, partial

from knotless.base.errors import ProofError, RuleError
from knotless.base.flow_control import FlowControl
from knotless.base.printable import listed
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.causes import Cause
from knotless.importers.fabric import TableFabric
from knotless.importers.file_kinds import FoundFile
from knotless.importers.findings import Findings
from knotless.importers.route_dump import distinct
from knotless.importers.route_tables import RouteTables
from knotless.importers.routers.bgp import computed_routes, static_routes
from knotless.importers.routers.cables import Cabling, Routes, cabling_of
from knotless.importers.routers.fabric import (
    RouterFabric,
    Wiring,
    router_fabric,
    unread_ports,
    unread_text,
)
from knotless.importers.routers.files import (
    chosen_routes,
    connected_routes,
    missing_routes,
    routers_of,
)
from knotless.importers.routers.interfaces import Interfaces
from knotless.importers.routers.plain_routes import plain_routes
from knotless.importers.routers.resident_routes import ResidentRoutes
from knotless.importers.routers.route_state import RouteState
from knotless.importers.routers.router import Router, natural
from knotless.importers.routers.routes import Destinations, destinations_of
from knotless.importers.routers.settle import has_flow_control, settle, vlan_members
from knotless.importers.routers.static_routes import RoutesRead
from knotless.importers.routers.switch_settings import settings_of
from knotless.importers.routers.tables import judge_tables
from knotless.importers.routers.tunnels import Server, Tunnel, servers_of, tunnels_of
from knotless.importers.switch_settings import ReadSettings


def assemble(
    name: str,
    files: Sequence[FoundFile],
    hosts: Sequence[str] = (),
    *,
    routes_by: str | None = None,
) -> TableFabric:
    """Return the fabric called ``name`` that ``files`` describe.

    ``hosts`` are patterns of the names of neighbours that are hosts. ``routes_by`` is ``bgp`` if
    routes are to be computed from configurations, ``static`` if they are those of interfaces and
    static ones in configurations, or None: they are those that files list.

    Raises
    ------
    RuleError
        A file says something impossible, there are no files of a router, or a pattern of
        ``hosts`` fits no neighbour.
    FabricError
        The cables contradict each other.

    """
    findings = Findings()
    routers, cables = routers_of(files, findings)
    if not routers:
        raise RuleError(
            "there are cables, but no routes or tables of a router (those in frr.conf are read with"
            " --routes)"
        )
    judge_tables(routers, findings)
    connected = _connected(routers, cables, hosts, routes_by, findings)
    tunnels = tunnels_of(connected.routers, findings)
    servers = servers_of(connected.routers, findings)
    routed, reached = _routed(name, connected, tunnels, servers, findings)
    settled = settle(connected.routers, routed, reached, tunnels, connected.bridges, findings)
    destinations = settled.destinations
    cabling = connected.wiring.cabling
    ordinary = not (tunnels or servers or connected.bridges or routes_by)
    state = RouteState(
        routed.names,
        routed.port,
        cabling.peers,
        destinations.addresses,
        destinations.hops,
    )
    read = RoutesRead(
        connected.routers,
        [switch.name for switch in routed.fabric.switches],
        connected.routes,
        connected.wiring.interfaces,
        destinations.addresses,
    )
    resident = partial(
        ResidentRoutes,
        connected.routers,
        routed,
        connected.routes,
        destinations,
        cabling.is_inferred,
    )
    pauses = has_flow_control(connected.routers)
    return TableFabric(
        fabric=routed.fabric,
        channels=routed.channels,
        flow_control=FlowControl.PFC if pauses else FlowControl.PAUSE,
        traffics=settled.traffics,
        pairs=destinations.pairs,
        label=settled.label,
        hops=destinations.hops,
        findings=findings,
        pausing=settled.pausing,
        configs=tuple(router.tables for router in connected.routers),
        routes_without=read.without,
        switch_settings=cache(partial(_settings, connected.routers, routed)),
        unread=tuple(port for _, port in destinations.unread),
        number_of=destinations.addresses.number_of,
        ends_at=destinations.hops.ends_at,
        causes_at=resident().causes_at,
        resident_routes=resident if ordinary else None,
        explain=partial(_explained, connected),
        assumed_routes=routes_by is not None,
        # Cables that are known from routes may go with these.
        sections=state.sections if ordinary and not cabling.is_inferred else dict,
        first_groups=settled.first_groups,
        host_links=settled.host_links,
        route_tables=partial(
            _route_tables,
            connected,
            routed,
            destinations,
            _beyond_routes(tunnels, servers, routes_by),
        ),
    )


def _beyond_routes(
    tunnels: Sequence[Tunnel], servers: Sequence[Server], routes_by: str | None
) -> str:
    """Return what routers have that tables of routes do not say; empty: nothing."""
    if tunnels or servers:
        return "tunnels between routers, as of dual-ToR (PEER_SWITCH, MUX_CABLE)"
    if routes_by is not None:
        return f"routes that are computed (--routes {routes_by}): only those that routers list"
    return ""


def _route_tables(
    connected: _Connected, routed: RouterFabric, destinations: Destinations, beyond: str
) -> RouteTables:
    if beyond:
        raise ProofError(f"proofs do not cover {beyond}")
    return plain_routes(routed, connected.known_routes, destinations)


@dataclass(frozen=True)
class _Connected:
    """Routers, their routes, and where their interfaces lead.

    ``routes`` are those of all routers, so far as any are known, with those to their own addresses;
    ``with_routes`` are the routers whose routes are known.
    """

    routers: Sequence[Router]
    routes: Mapping[str, Routes]
    with_routes: frozenset[str]
    wiring: Wiring

    @property
    def known_routes(self) -> dict[str, Routes | None]:
        """The routes of each router, None: they are not known."""
        return {
            name: of_router if name in self.with_routes else None
            for name, of_router in self.routes.items()
        }

    @property
    def bridges(self) -> frozenset[str]:
        """The routers that are none: all their routes are to Ethernet addresses."""
        return frozenset(
            name
            for name, of_router in self.routes.items()
            if of_router and all("@" in text for text in of_router)
        )


def _connected(
    routers: Sequence[Router],
    cables: Sequence[tuple[NamedEnd, NamedEnd]],
    hosts: Sequence[str],
    routes_by: str | None,
    findings: Findings,
) -> _Connected:
    """Find what the ports of routers lead to, and take their routes as ``routes_by`` says."""
    dumped = {
        router.name: chosen_routes(router, findings) if routes_by is None else None
        for router in routers
    }
    routes: dict[str, Routes] = {
        router.name: {**connected_routes(router), **(dumped[router.name] or {})}
        for router in routers
    }
    interfaces = Interfaces(routers)
    cabling = cabling_of(routers, routes, cables, interfaces, findings, hosts)
    if routes_by is None:
        for router in routers:
            for text in missing_routes(router, dumped[router.name]):
                findings.gap(text, router.source.cause())
        with_routes = frozenset(name for name, of_router in dumped.items() if of_router is not None)
    else:
        compute = static_routes if routes_by == "static" else computed_routes
        routes = dict(compute(routers, cabling, findings))
        with_routes = frozenset(routes)
    for absent in sorted(cabling.absent):
        findings.gap(f"the files of {absent}", *_leading_to(absent, cabling, findings))
    if cabling.absent:
        findings.note(f"if {listed(sorted(cabling.absent), 3)} are hosts, name them by --hosts")
    kept = _of_the_fabric(routers, routes, cabling, findings)
    wiring = Wiring(interfaces, cabling)
    routes = {router.name: {**routes[router.name], **wiring.own_routes(router)} for router in kept}
    for router in kept:
        for text, key in _switched(router, wiring):
            findings.gap(text, router.source.cause(key))
    return _Connected(kept, routes, with_routes, wiring)


def _routed(
    name: str,
    connected: _Connected,
    tunnels: Sequence[Tunnel],
    servers: Sequence[Server],
    findings: Findings,
) -> tuple[RouterFabric, Destinations]:
    """Follow the routes of all routers to every address that one of them tells apart."""
    routers, routes = connected.routers, connected.routes

    def reached(routed: RouterFabric) -> Destinations:
        unread = unread_ports(routed, routers, routes)
        return destinations_of(routed, connected.known_routes, tunnels, servers, unread, findings)

    routed = router_fabric(name, routers, routes, connected.wiring)
    destinations = reached(routed)
    if not destinations.pairs:
        routed = router_fabric(name, routers, routes, replace(connected.wiring, loopbacks=True))
        destinations = reached(routed)
        findings.note("no two networks of hosts are known: loopback addresses are taken instead")
    if destinations.unread:
        ports = [port for _, port in destinations.unread]
        findings.note(unread_text(ports), *(findings.cause(*port) for port in ports))
    if not destinations.pairs:
        findings.gap(f"networks of hosts with routes between them: {len(routed.edges)} are known")
    for bridge in _in_a_loop(connected.bridges, connected.wiring):
        findings.gap(
            f"which ports spanning tree blocks at {bridge}: it floods what is for unknown"
            " addresses, and its cables to other bridges close a loop",
            findings.cause(bridge),
        )
    return routed, destinations


def _explained(connected: _Connected, port: str) -> str:
    """Return what a port leads to; raises RuleError if there is no such router."""
    router, colon, interface = port.partition(":")
    names = [router.name for router in connected.routers]
    if router not in names or not colon:
        raise RuleError(
            f"{port[:60]!r}: give a router and its port, such as {names[0]}:Ethernet0; there are"
            f" {listed(names, 5)}"
        )
    return f"{port}: {connected.wiring.explain(router, interface)}"


def _of_the_fabric(
    routers: Sequence[Router],
    routes: Mapping[str, Routes],
    cabling: Cabling,
    findings: Findings,
) -> list[Router]:
    """Return the routers without those VRFs that lead to no other router."""
    cabled = {name for name, _ in cabling.peers}
    kept = []
    for router in routers:
        hops = (hop for hops in distinct(routes[router.name]) for hop in hops)
        if router.name == router.host or router.name in cabled or any(hop.address for hop in hops):
            kept.append(router)
        else:
            findings.note(
                f"{router.name} is left out: it leads to no other router", router.source.cause()
            )
    return kept


def _settings(routers: Sequence[Router], routed: RouterFabric) -> dict[str, ReadSettings]:
    """Return the settings of all switches, by name; a VLAN has those of its member ports."""
    members = vlan_members(routers)
    ports: dict[str, dict[int, list[str]]] = {router.name: {} for router in routers}
    for (name, interface), place in routed.port.items():
        of_vlan = members.get((name, interface), [])
        listed_ports = of_vlan or routed.wiring.ports(name, interface)
        ports.setdefault(name, {})[place] = sorted(listed_ports, key=natural)
    names = [switch.name for switch in routed.fabric.switches]
    return {
        name: settings_of(router, ports[router.name])
        for name, router in zip(names, routers, strict=False)
    }


def _leading_to(absent: str, cabling: Cabling, findings: Findings) -> list[Cause]:
    """Return the sources of the ports that lead to a device without files."""
    ports = sorted(port for port, peer in cabling.peers.items() if peer[0] == absent)
    return [findings.cause(*port) for port in ports if port[0] in findings.sources]


def _switched(router: Router, wiring: Wiring) -> Iterable[tuple[str, str]]:
    """Yield VLANs and bridges with ports to other routers: addresses behind them are not known.

    The key in ``VLAN_MEMBER`` or ``BRIDGE_MEMBER`` follows each.
    """
    for key in (*router.table("VLAN_MEMBER"), *router.table("BRIDGE_MEMBER")):
        bridge, _, port = key.partition("|")
        for member in wiring.ports(router.name, port):
            peer = wiring.cabling.peers.get((router.name, member))
            if peer is not None:
                sends = f"what {bridge} of {router.name} sends to {peer[0]} by {member}"
                yield f"{sends}: it is switched", key


def _in_a_loop(bridges: AbstractSet[str], wiring: Wiring) -> Iterator[str]:
    """Yield a bridge of each loop that cables, or LAGs, between bridges close."""
    part = {name: name for name in bridges}

    def first(name: str) -> str:
        while part[name] != name:
            name = part[name]
        return name

    lag_of = {
        (name, port): lag
        for name in bridges
        for lag, ports in wiring.interfaces[name].lags.items()
        for port in ports
    }
    ends = {
        frozenset((end[0], lag_of.get(end, end[1])) for end in cable)
        for cable in wiring.cabling.peers.items()
        if all(name in bridges for name, _ in cable)
    }
    for a, *b in sorted(sorted(cable) for cable in ends):
        one, other = first(a[0]), first(b[0][0] if b else a[0])
        if one == other:
            yield a[0]
        part[one] = other
