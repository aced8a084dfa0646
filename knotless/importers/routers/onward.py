"""The ports to which a route leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from knotless.importers.causes import Source
from knotless.importers.findings import Findings
from knotless.importers.prefixes import Prefix
from knotless.importers.route_dump import END, NextHop
from knotless.importers.routers.fabric import Wiring


@dataclass(frozen=True)
class Onward:
    """The ports of which a router takes any one for the packets of a route; none: it drops them.

    ``links`` are ports to other routers, ``hosts`` interfaces to hosts, and ``exits`` interfaces by
    which packets leave the fabric. If the route ``ends``, they have arrived at the router itself.
    If it is ``of_link``, its addresses are those of the links: what comes from these has arrived.
    """

    links: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    exits: frozenset[str] = frozenset()
    ends: bool = False
    of_link: bool = False


def onward_of(
    router: str, wiring: Wiring, hops: Sequence[NextHop], prefix: Prefix, findings: Findings
) -> Onward | None:
    """Return where a route leads; None if that is unknown, which is added to the findings."""
    if any(_ends(router, wiring, hop) for hop in hops):
        return Onward(ends=True)
    links: set[str] = set()
    hosts: set[str] = set()
    exits: set[str] = set()
    routes_on = False
    for hop in hops:
        interface = hop.interface
        if interface is None or wiring.is_own(router, hop):
            continue
        edge = wiring.is_edge(router, hop)
        if edge is None:
            findings.gap(
                f"what port {interface} of {router} leads to",
                findings.sources.get(router, Source()).route(prefix.text),
            )
            return None
        ports = wiring.ports(router, interface)
        linked = [port for port in ports if (router, port) in wiring.cabling.peers]
        if edge:
            (exits if wiring.leaves(router, hop, prefix) else hosts).add(interface)
        elif linked:
            links.update(linked)
        else:
            findings.gap(
                f"the next hop of {router} to {prefix.text} by {interface}",
                findings.sources.get(router, Source()).route(prefix.text),
            )
            return None
        routes_on |= edge or hop.address is not None
    of_link = bool(links) and not routes_on
    return Onward(frozenset(links), frozenset(hosts), frozenset(exits), of_link=of_link)


def _ends(router: str, wiring: Wiring, hop: NextHop) -> bool:
    """Tell whether a route is to an address of the router itself."""
    of_router = wiring.interfaces[router]
    return hop == END or (
        not wiring.loopbacks and hop.address is None and of_router.is_loopback(hop.interface or "")
    )
