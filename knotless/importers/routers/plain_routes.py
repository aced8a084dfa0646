"""The routes of the routers of a fabric in the form of :mod:`knotless.importers.route_tables`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence

from knotless.base.errors import ProofError
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.findings import Findings
from knotless.importers.prefixes import Prefix, prefix_of
from knotless.importers.route_tables import PacketSource, PlainRoute, RouteTables
from knotless.importers.routers.cables import Routes
from knotless.importers.routers.fabric import RouterFabric, as_names, channel_ends
from knotless.importers.routers.onward import Onward, onward_of
from knotless.importers.routers.router import natural
from knotless.importers.routers.routes import Destinations

_PORT = re.compile(r"[!-~]+")
_LARGEST_SEARCHED = 64


def plain_routes(
    routed: RouterFabric, routes: Mapping[str, Routes | None], destinations: Destinations
) -> RouteTables:
    """Return the routes of all routers, for IPv4.

    ``routes`` are those of each router, None: they are not known.

    Raises
    ------
    ProofError
        A router forwards something else than IPv4, or it is not known what it does.

    """
    switch = dict(zip(routed.names, (s.name for s in routed.fabric.switches), strict=True))
    onward = {name: dict(_onward(routed, name, routes.get(name))) for name in routed.names}
    for name, port in routed.port:
        if not _PORT.fullmatch(port):
            raise ProofError(f"proofs do not cover ports such as {port[:40]!r} of {name}")
    return RouteTables(
        links=[
            ((switch[a[0]], a[1]), (switch[b[0]], b[1])) for a, b in channel_ends(routed) if a < b
        ],
        sources=dict(_sources(routed, switch, onward, destinations)),
        routes={
            switch[name]: {prefix.text: _plain(way) for prefix, way in of_router.items()}
            for name, of_router in onward.items()
        },
        prefixes_of=destinations.addresses.prefixes,
    )


def _onward(
    routed: RouterFabric, name: str, routes: Routes | None
) -> Iterator[tuple[Prefix, Onward]]:
    """Yield where each route of a router for IPv4 leads."""
    if routes is None:
        raise ProofError(
            f"proofs need the routes of all routers, and those of {name} are not known"
        )
    for text, hops in routes.items():
        if "@" in text:
            raise ProofError(f"proofs do not cover bridges, which go by Ethernet addresses: {name}")
        prefix = prefix_of(text)
        onward = onward_of(name, routed.wiring, hops, prefix, Findings())
        if onward is None:
            raise ProofError(f"proofs need all routes, and that of {name} to {text} is not known")
        if ":" not in text:
            yield prefix, onward
        elif onward.links or onward.hosts or onward.exits:
            raise ProofError(f"proofs do not cover IPv6, and {name} has a route to {text}")


def _plain(onward: Onward) -> PlainRoute:
    ports = tuple(sorted(onward.links | onward.hosts | onward.exits, key=natural))
    if onward.ends:
        return PlainRoute("local")
    if not ports:
        return PlainRoute("drop")
    return PlainRoute("link" if onward.of_link else "via", ports)


def _sources(
    routed: RouterFabric,
    switch: Mapping[str, str],
    onward: Mapping[str, Mapping[Prefix, Onward]],
    destinations: Destinations,
) -> Iterator[tuple[int, PacketSource]]:
    """Yield what sends, by number: the hosts, and the ports whose far end is not known."""
    shared = _shared_edges(routed.edges, onward)
    by_end: dict[NamedEnd, PacketSource] = {}
    for number, edge in enumerate(routed.edges):
        address = None if edge in shared else _address(routed, destinations, number)
        name = routed.fabric.hosts[number].name
        by_end[edge] = PacketSource(name, (switch[edge[0]], edge[1]), address)
        yield number, by_end[edge]
    taken = [*switch.values(), *(host.name for host in routed.fabric.hosts)]
    others = [port for _, port in destinations.unread if port not in by_end]
    names = as_names([f"{switch[router]}-{port}" for router, port in others], taken)
    for name, (router, port) in zip(names, others, strict=True):
        by_end[router, port] = PacketSource(name, (switch[router], port), None)
    for number, end in destinations.unread:
        yield number, by_end[end]


def _shared_edges(
    edges: Sequence[NamedEnd], onward: Mapping[str, Mapping[Prefix, Onward]]
) -> set[NamedEnd]:
    """Return the interfaces to hosts of which no address is known to be theirs alone.

    Packets also leave the fabric there, or another interface has some of the same addresses.
    """
    shared: set[NamedEnd] = set()
    behind: list[tuple[Prefix, NamedEnd]] = []
    for router, of_router in onward.items():
        for prefix, way in of_router.items():
            shared |= {(router, port) for port in way.exits}
            behind += [(prefix, (router, port)) for port in way.hosts]
            if len(way.hosts) > 1 or (way.hosts and (way.links or way.exits)):
                shared |= {(router, port) for port in way.hosts}
    around: list[tuple[Prefix, NamedEnd]] = []
    for prefix, edge in sorted(behind, key=lambda each: (each[0].first, -each[0].end)):
        around = [other for other in around if other[0].has(prefix)]
        for _, other in around:
            if other != edge:
                shared |= {other, edge}
        around.append((prefix, edge))
    return shared & {*edges}


def _address(routed: RouterFabric, destinations: Destinations, host: int) -> str | None:
    """Return an address behind the interface of a host, none of a router if there is one."""
    prefixes = destinations.addresses.prefixes(host)
    candidates: list[str] = []
    for prefix in (text for text in prefixes if ":" not in text):
        for number, address in enumerate(ipaddress.IPv4Network(prefix).hosts()):
            if number == _LARGEST_SEARCHED:
                break
            candidates.append(str(address))
            if not routed.wiring.interfaces.owners(str(address)):
                return str(address)
    return candidates[0] if candidates else None
