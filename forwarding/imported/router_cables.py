"""The ports of routers and the cables between them.

Cables are taken from LLDP; for switches without it from a list of all cables, from the intended
cabling (DEVICE_NEIGHBOR), or from the prefixes that two ports share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from forwarding.imported.findings import Findings
from forwarding.imported.prefixes import prefix_of
from forwarding.imported.router_files import Router, natural
from forwarding.readers.layer1_topology import NamedEnd
from forwarding.readers.lldp_json import Neighbour
from forwarding.route_dump import NextHop, distinct

Routes = Mapping[str, tuple[NextHop, ...]]
"""The next hops by prefix."""
_OWN_PREFIXES = (
    "lo",
    "Loopback",
    "docker",
    "eth0",
    "mgmt",
    "dummy",
    "Bridge",
    "tun",
    "sit",
    "ip6tnl",
)
"""Prefixes of the names of ports that do not belong to the fabric."""


def is_own(interface: str) -> bool:
    """Tell whether an interface leads to the router itself or to its management network."""
    return interface.startswith(_OWN_PREFIXES)


@dataclass
class Cabling:
    """``far`` is the far end of each port that is cabled to another router, by names.

    ``outside`` are ports whose neighbour is known not to be a router of the fabric. ``absent``
    are routers that neighbours name but of which there are no files.
    """

    far: dict[NamedEnd, NamedEnd] = field(default_factory=dict)
    outside: set[NamedEnd] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)

    def join(self, a: NamedEnd, b: NamedEnd, findings: Findings) -> None:
        """Add a cable; one that contradicts another is a gap."""
        for near, far in ((a, b), (b, a)):
            if self.far.setdefault(near, far) != far:
                findings.unclear(
                    f"what port {near[1]} of {near[0]} leads to: {far[0]} or {self.far[near][0]}"
                )


def cabling_of(
    routers: Sequence[Router],
    routes: Mapping[str, Routes],
    listed: Sequence[tuple[NamedEnd, NamedEnd]],
    findings: Findings,
) -> Cabling:
    """Return the cables between ``routers``; ``listed`` are those of a list of all cables."""
    known = {router.name: router for router in routers}
    found = Cabling()
    meant = [end for router in routers for end in _meant(router)]
    _by_lldp(routers, known, found, findings)
    without_lldp = {router.name for router in routers if router.heard is None}
    for a, b in listed:
        if a[0] in known and b[0] in known:
            if {a[0], b[0]} & without_lldp and a not in found.far and b not in found.far:
                found.join(a, b, findings)
        else:
            found.outside.update(end for end in (a, b) if end[0] in known)
    assumed = []
    for near, far in meant:
        if near in found.far or near in found.outside:
            continue
        if far[0] not in known:
            found.outside.add(near)
        elif near[0] in without_lldp:
            found.join(near, (far[0], _port_called(known[far[0]], far[1], "")), findings)
            assumed.append(near[0])
        else:
            findings.note(f"no neighbour is heard on {near[1]} of {near[0]}; meant is {far[0]}")
    if assumed:
        findings.note(f"the cables of {assumed[0]} are those that are meant, not seen by LLDP")
    inferred = list(_by_prefix(routers, routes, found))
    for a, b in inferred:
        found.join(a, b, findings)
    if inferred:
        findings.note(f"{len(inferred)} cables are inferred from prefixes that two ports share")
    return found


def _meant(router: Router) -> Iterator[tuple[NamedEnd, NamedEnd]]:
    for port, fields in router.table("DEVICE_NEIGHBOR").items():
        if fields.get("name"):
            yield (router.name, port), (fields["name"], fields.get("port", ""))


def _by_lldp(
    routers: Sequence[Router], known: Mapping[str, Router], found: Cabling, findings: Findings
) -> None:
    heard_by: dict[str, set[str]] = {}
    # Some systems call themselves by their name with its domain.
    short = {name.partition(".")[0]: name for name in known}
    for router in routers:
        for heard in router.heard or ():
            heard_by.setdefault(heard.system, set()).add(router.name)
    for router in routers:
        kinds = router.table("DEVICE_NEIGHBOR_METADATA")
        for heard in router.heard or ():
            near = (router.name, heard.interface)
            if is_own(heard.interface):
                continue
            if heard.system not in known:
                name = short.get(heard.system.partition(".")[0], heard.system)
                heard = replace(heard, system=name)
            if heard.system in known:
                found.join(near, (heard.system, _far_port(known, router.name, heard)), findings)
                continue
            kind = kinds.get(heard.system, {}).get("type", "")
            routes_too = (
                "Router" in kind or len(heard_by.get(heard.system, ())) > 1 or heard.forwards
            )
            if heard.system and routes_too:
                found.absent.add(heard.system)
                found.join(near, (heard.system, heard.port_id or heard.port_description), findings)
            else:
                found.outside.add(near)


def _far_port(known: Mapping[str, Router], name: str, heard: Neighbour) -> str:
    """Return the name of the far port: as announced, else the only one that hears ``name``."""
    far = known[heard.system]
    port = _port_called(far, heard.port_id, heard.port_description)
    back = {of.interface for of in far.heard or () if of.system == name}
    if port not in back and port not in far.table("PORT") and len(back) == 1:
        return back.pop()
    return port


def _port_called(router: Router, name: str, description: str) -> str:
    ports = router.table("PORT")
    used = {heard.interface for heard in router.heard or ()}
    for text in (name, description):
        if text in ports or text in used:
            return text
        alias = [port for port, fields in ports.items() if text and fields.get("alias") == text]
        if len(alias) == 1:
            return alias[0]
    return name or description


def _by_prefix(
    routers: Sequence[Router], routes: Mapping[str, Routes], found: Cabling
) -> Iterator[tuple[NamedEnd, NamedEnd]]:
    """Yield cables between two ports without a known neighbour that share a prefix."""
    sharing: dict[str, set[NamedEnd]] = {}
    for router in routers:
        for text, hops in routes.get(router.name, {}).items():
            for hop in hops[:1]:  # directly connected: there is no other
                end = (router.name, hop.interface or "")
                bare = hop.address is None and hop.interface and not is_own(hop.interface)
                if bare and not end[1].startswith("Vlan") and not text.startswith("fe80:"):
                    sharing.setdefault(prefix_of(text).text, set()).add(end)
    for ends in sharing.values():
        free = {end for end in ends if end not in found.far and end not in found.outside}
        if len(ends) == len(free) == 2:
            a, b = sorted(ends)
            if a[0] != b[0]:
                yield a, b


def ports_of(router: Router, routes: Routes, cabling: Cabling) -> list[str]:
    """Return the physical ports of a router by name, in natural order."""
    cabled = {end[1] for end in (*cabling.far, *cabling.outside) if end[0] == router.name}
    used = {
        hop.interface.partition(".")[0] for of in distinct(routes) for hop in of if hop.interface
    }
    named = {name for name in used if not name.startswith(("Vlan", "PortChannel"))}
    named = {name for name in named if not is_own(name)}
    return sorted(cabled | named | set(router.table("PORT")), key=natural)
