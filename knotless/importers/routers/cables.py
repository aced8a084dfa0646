"""The cables between routers.

Cables are taken from LLDP, those inside a device from its configuration; for switches without LLDP
from a list of all cables, from the intended cabling (DEVICE_NEIGHBOR), from the routers that own
the addresses of next hops, or from the prefixes that two ports share. What none of these tells is
not known: the name of a port says nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.cabling.lldp_json import Neighbour
from knotless.importers.findings import Findings
from knotless.importers.prefixes import prefix_of
from knotless.importers.route_dump import NextHop, distinct
from knotless.importers.routers.interfaces import Interfaces
from knotless.importers.routers.neighbours import UnreadNeighbours, unread_neighbours
from knotless.importers.routers.router import Router

Routes = Mapping[str, tuple[NextHop, ...]]
"""The next hops by prefix."""
_POINT_TO_POINT = {4: 30, 6: 126}
"""A prefix of this length, by version of IP, or a longer one has addresses for two routers only."""

_BY_NEXT_HOP = "the router that owns the address of a next hop"
_BY_PREFIX = "the prefix that two ports share"


@dataclass
class Cabling:
    """``peers`` is the far end of each port that is cabled to another router, by names.

    ``outside`` are ports whose neighbour is known not to be a router of the fabric. ``absent``
    are routers that neighbours name but of which there are no files. ``evidence`` is what says so.
    """

    peers: dict[NamedEnd, NamedEnd] = field(default_factory=dict)
    outside: set[NamedEnd] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    evidence: dict[NamedEnd, str] = field(default_factory=dict)

    @property
    def is_inferred(self) -> bool:
        """Whether some cable is known from routes or prefixes alone."""
        return not {*self.evidence.values()}.isdisjoint((_BY_NEXT_HOP, _BY_PREFIX))

    def join(self, a: NamedEnd, b: NamedEnd, evidence: str, findings: Findings) -> None:
        """Add a cable; one that contradicts another is a gap."""
        for port in (a, b):
            self.evidence.setdefault(port, evidence)
        for port, peer in ((a, b), (b, a)):
            if self.peers.setdefault(port, peer) != peer:
                other = self.peers[port][0]
                findings.unclear(
                    f"what port {port[1]} of {port[0]} leads to: {peer[0]} or {other}",
                    findings.cause(*port),
                    findings.cause(*peer),
                )


@dataclass(frozen=True)
class _Names:
    """The routers by name, and by what their device calls itself, also without its domain.

    ``folded`` are the latter without case, on which host names do not depend (RFC 4343).
    """

    routers: Mapping[str, Router]
    of_host: Mapping[str, Sequence[Router]]
    folded: Mapping[str, Sequence[Router]]

    @classmethod
    def from_routers(cls, routers: Sequence[Router]) -> _Names:
        of_host: dict[str, list[Router]] = {}
        for router in routers:
            for name in dict.fromkeys((router.host, router.host.partition(".")[0])):
                of_host.setdefault(name, []).append(router)
        folded: dict[str, list[Router]] = {}
        for name, called in of_host.items():
            folded.setdefault(name.lower(), []).extend(called)
        return cls({router.name: router for router in routers}, of_host, folded)

    def end(self, system: str, *ports: str) -> NamedEnd | None:
        """Return the port of a router that has one of these names; None if it has no files."""
        if system in self.routers and len(self.of_host.get(system, ())) < 2:
            return system, _port_called(self.routers[system], *ports)
        # Some systems call themselves by their name with its domain.
        short = system.partition(".")[0]
        candidates = self.of_host.get(system) or self.of_host.get(short) or ()
        candidates = candidates or self.folded.get(system.lower()) or ()
        candidates = candidates or self.folded.get(short.lower()) or ()
        for router in candidates:
            port = _port_called(router, *ports)
            if len(candidates) == 1 or port in _ports_known(router):
                return router.name, port
        return (candidates[0].name, ports[0]) if candidates else None


def cabling_of(
    routers: Sequence[Router],
    routes: Mapping[str, Routes],
    listed: Sequence[tuple[NamedEnd, NamedEnd]],
    interfaces: Interfaces,
    findings: Findings,
    hosts: Sequence[str] = (),
) -> Cabling:
    """Return the cables between ``routers``; ``listed`` are those of a list of all cables.

    ``hosts`` are patterns of the names of neighbours that are hosts. Of what says where a port
    leads, the first counts: the configuration of the device, LLDP, the list, the intended cabling,
    the routers that own next hops, and prefixes that two ports share.

    Raises
    ------
    RuleError
        A pattern of ``hosts`` fits no neighbour without files.

    """
    names = _Names.from_routers(routers)
    cabling = Cabling()
    unread = unread_neighbours(routers, routes, interfaces, hosts)
    _by_backplane(routers, cabling, findings)
    _by_lldp(routers, interfaces, names, (cabling, unread), findings)
    heard = {port for ends in unread.heard.values() for port, _ in ends}
    without_lldp = {router.name for router in routers if router.heard is None}
    for ends in listed:
        a, b = (names.end(*end) for end in ends)
        if a is None or b is None:
            for port, far in zip((a, b), reversed(ends), strict=True):
                if port is not None and port not in cabling.peers and port not in heard:
                    unread.add(port, Neighbour(port[1], *far))
        elif {a[0], b[0]} & without_lldp and a not in cabling.peers and b not in cabling.peers:
            cabling.join(a, b, "the list of cables", findings)
    heard = {port for ends in unread.heard.values() for port, _ in ends}
    assumed = []
    for port, meant in (end for router in routers for end in _meant(router)):
        if port in cabling.peers or port in heard:
            continue
        peer = names.end(*meant)
        if peer is None:
            unread.add(port, Neighbour(port[1], *meant))
        elif port[0] in without_lldp:
            cabling.join(port, peer, "DEVICE_NEIGHBOR", findings)
            assumed.append(port[0])
        else:
            findings.note(
                f"no neighbour is heard on {port[1]} of {port[0]}; meant is {meant[0]}",
                findings.cause(port[0], "DEVICE_NEIGHBOR", port[1]),
            )
    if assumed:
        findings.note(
            f"the cables of {assumed[0]} are those that are meant, not seen by LLDP",
            findings.cause(assumed[0], "DEVICE_NEIGHBOR"),
        )
    _outside(unread, cabling, findings)
    owned = list(_by_next_hop(routers, routes, interfaces, cabling))
    for a, b in owned:
        cabling.join(a, b, _BY_NEXT_HOP, findings)
    inferred = list(dict.fromkeys(_by_prefix(routers, routes, interfaces, cabling)))
    for a, b in inferred:
        cabling.join(a, b, _BY_PREFIX, findings)
    if owned:
        findings.note(
            f"{len(owned)} cables are inferred from the routers that own next hops",
            *(findings.cause(*port) for port in owned[0]),
        )
    if inferred:
        findings.note(
            f"{len(inferred)} cables are inferred from prefixes that two ports share",
            *(findings.cause(*port) for port in inferred[0]),
        )
    return cabling


def _meant(router: Router) -> Iterator[tuple[NamedEnd, NamedEnd]]:
    for port, fields in router.table("DEVICE_NEIGHBOR").items():
        if fields.get("name"):
            yield (router.name, port), (fields["name"], fields.get("port", ""))


def _by_backplane(routers: Sequence[Router], cabling: Cabling, findings: Findings) -> None:
    """Join the ASICs of a device: descriptions of internal ports say ``ASIC1:FAR-PORT``."""
    internal = {
        (router.host, asic.upper(), fields.get("asic_port_name", port)): (router.name, port)
        for router in routers
        for asic in (router.table("DEVICE_METADATA").get("localhost", {}).get("asic_name"),)
        for port, fields in router.table("PORT").items()
        if asic and _is_internal(router, port)
    }
    by_name = {router.name: router for router in routers}
    for (host, _, port_name), port in internal.items():
        described = by_name[port[0]].table("PORT")[port[1]].get("description", "")
        asic, _, far_name = described.partition(":")
        peer = internal.get((host, asic.upper(), far_name))
        if peer is not None:
            cabling.join(port, peer, "the description of the port of an ASIC", findings)
        else:
            findings.gap(
                f"what the internal port {port[1]} ({port_name}) of {port[0]} leads to",
                findings.cause(port[0], "PORT", port[1], "description"),
            )


def _is_internal(router: Router, port: str) -> bool:
    return router.table("PORT").get(port, {}).get("role") == "Int"


def _by_lldp(
    routers: Sequence[Router],
    interfaces: Interfaces,
    names: _Names,
    cabled: tuple[Cabling, UnreadNeighbours],
    findings: Findings,
) -> None:
    cabling, unread = cabled
    for router in routers:
        for heard in router.heard or ():
            port = (router.name, heard.interface)
            own = interfaces[router.name].own(heard.interface, routed=True)
            if own or _is_internal(router, heard.interface):
                continue
            peer = names.end(heard.system, heard.port_id, heard.port_description)
            if peer is None:
                unread.add(port, heard)
            else:
                peer = _confirmed(names.routers[peer[0]], router.host, peer)
                cabling.join(port, peer, "LLDP", findings)


def _outside(unread: UnreadNeighbours, cabling: Cabling, findings: Findings) -> None:
    """Add the ports to devices without files: hosts, or routers that are absent."""
    unread.note_hosts(findings)
    for system, ends in unread.heard.items():
        is_host, reason = unread.judge(system) if system else (True, "it has no name")
        for port, heard in ends:
            cabling.evidence[port] = f"{system or 'a device'} has no files; {reason}"
            if is_host:
                cabling.outside.add(port)
            else:
                cabling.absent.add(system)
                end = (system, heard.port_id or heard.port_description)
                if cabling.peers.get(end, port) != port:  # one address for all ports
                    end = (system, f"{end[1]} at {':'.join(port)}")
                cabling.join(port, end, reason, findings)


def _confirmed(peer: Router, host: str, end: NamedEnd) -> NamedEnd:
    """Return the end at ``peer``: as announced, else its only port that hears ``host``."""
    heard = (
        neighbour for neighbour in peer.heard or () if neighbour.system.lower() == host.lower()
    )
    back = {neighbour.interface for neighbour in heard}
    if end[1] not in back and end[1] not in peer.table("PORT") and len(back) == 1:
        return peer.name, back.pop()
    return end


def _ports_known(router: Router) -> set[str]:
    return {*router.table("PORT"), *(heard.interface for heard in router.heard or ())}


def _port_called(router: Router, *texts: str) -> str:
    """Return the port of a router that has one of these names or aliases, else the first name."""
    ports = router.table("PORT")
    used = _ports_known(router)
    for text in texts:
        if text in used:
            return text
        alias = [port for port, fields in ports.items() if text and fields.get("alias") == text]
        if len(alias) == 1:
            return alias[0]
    return next((text for text in texts if text), "")


def _by_next_hop(
    routers: Sequence[Router],
    routes: Mapping[str, Routes],
    interfaces: Interfaces,
    cabling: Cabling,
) -> Iterator[tuple[NamedEnd, NamedEnd]]:
    """Yield cables from ports without a known neighbour to the one port that owns a next hop."""
    port_of: dict[str, set[NamedEnd]] = {}
    for router in routers:
        for interface, address in interfaces[router.name].addresses():
            port_of.setdefault(str(address.ip), set()).update(_ends(router, interface, interfaces))
    connected = {*cabling.peers, *cabling.outside}
    for router in routers:
        for hop in (hop for hops in distinct(routes[router.name]) for hop in hops):
            far = port_of.get(hop.address or "", set())
            for port in _ends(router, hop.interface or "", interfaces) if len(far) == 1 else ():
                (end,) = far
                if end[0] != router.name and not {port, end} & connected:
                    connected |= {port, end}
                    yield port, end


def _ends(router: Router, interface: str, interfaces: Interfaces) -> list[NamedEnd]:
    """Return the port of an interface, or nothing: it is none, or has several."""
    of_router = interfaces[router.name]
    ports = of_router.ports(interface) if interface else ()
    if len(ports) != 1 or of_router.own(interface, routed=True):
        return []
    return [(router.name, ports[0])]


def _by_prefix(
    routers: Sequence[Router],
    routes: Mapping[str, Routes],
    interfaces: Interfaces,
    cabling: Cabling,
) -> Iterator[tuple[NamedEnd, NamedEnd]]:
    """Yield cables between two ports without a known neighbour that share a prefix.

    The prefix has two addresses only, or a route leads to a next hop by one of the ports: two
    networks of hosts may have the same prefix.
    """
    sharing: dict[str, set[NamedEnd]] = {}
    routed: set[NamedEnd] = set()
    for router in routers:
        of_router, of_routes = interfaces[router.name], routes.get(router.name, {})
        for hop in (hop for hops in distinct(of_routes) for hop in hops):
            if hop.address is not None:
                routed.update(_ends(router, hop.interface or "", interfaces))
        for text, hops in of_routes.items():
            for hop in hops[:1]:  # directly connected: there is no other
                interface = hop.interface or ""
                if hop.address is not None or "@" in text or text[:5] == "fe80:":
                    continue
                if interface and not of_router.own(interface, routed=False):
                    ends = _ends(router, interface, interfaces)
                    sharing.setdefault(prefix_of(text).text, set()).update(ends)
    connected = {*cabling.peers, *cabling.outside}
    for text, ends_of_text in sharing.items():
        network = ipaddress.ip_network(text)
        between_two = network.prefixlen >= _POINT_TO_POINT[network.version]
        if len(ends_of_text) == 2 and not ends_of_text & connected:
            a, b = sorted(ends_of_text)
            if a[0] != b[0] and (between_two or {a, b} & routed):
                yield a, b
