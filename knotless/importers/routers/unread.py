"""Ports that lead out of what was read: what is behind them can send to every address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.route_dump import distinct
from knotless.importers.routers.cables import Routes
from knotless.importers.routers.fabric import RouterFabric
from knotless.importers.routers.router import Router, natural

_SHOWN = 5


def unread_ports(
    routed: RouterFabric, routers: Sequence[Router], routes: Mapping[str, Routes]
) -> list[NamedEnd]:
    """Return the ports and interfaces of routers whose far end is a device without files.

    These are ports to a router of which there are no files, interfaces by which routes lead to a
    router outside of the fabric, and ports to any other device that are neither an interface of
    hosts nor a member of one.
    """
    cabling, wiring = routed.wiring.cabling, routed.wiring
    unread = {port for port, (peer, _) in cabling.peers.items() if peer in cabling.absent}
    unread = {port for port in unread if port[0] not in cabling.absent}
    covered = {
        (name, port) for name, interface in routed.edges for port in wiring.ports(name, interface)
    }
    for router in routers:
        covered |= {(router.name, port) for port in _members(router)}
    unread |= cabling.outside - covered
    edges = {*routed.edges}
    for name, router_routes in routes.items():
        for hop in (hop for hops in distinct(router_routes) for hop in hops):
            if hop.address is not None and (name, hop.interface) in edges:
                unread.add((name, hop.interface or ""))
    known = {router.name for router in routers}
    return sorted(
        (port for port in unread if port[0] in known and port in routed.port),
        key=lambda port: (routed.names.index(port[0]), natural(port[1])),
    )


def _members(router: Router) -> Iterator[str]:
    """Yield the ports of a router that are members of a VLAN or bridge."""
    for key in (*router.table("VLAN_MEMBER"), *router.table("BRIDGE_MEMBER")):
        yield key.partition("|")[2]


def described(unread: Sequence[NamedEnd]) -> str:
    """Return a sentence that names the ports, some of them if there are many."""
    shown = ", ".join(f"{router}:{port}" for router, port in unread[:_SHOWN])
    more = f" and {len(unread) - _SHOWN} more" if len(unread) > _SHOWN else ""
    lead = "1 port leads" if len(unread) == 1 else f"{len(unread)} ports lead"
    return f"{lead} to devices without files, which are taken to send to all: {shown}{more}"
