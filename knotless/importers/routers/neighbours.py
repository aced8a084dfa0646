"""Neighbours by LLDP of which there are no files: hosts, or switches whose files are missing.

Servers may be heard by several switches, and those that run containers announce that they are
bridges or routers. A host forwards nothing from one of its ports to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from knotless.base.errors import RuleError
from knotless.base.printable import listed
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.cabling.lldp_json import Neighbour
from knotless.importers.findings import Findings
from knotless.importers.route_dump import NextHop, distinct
from knotless.importers.routers.interfaces import Interfaces
from knotless.importers.routers.router import Router

_SERVER = "Server"
"""The type in DEVICE_NEIGHBOR_METADATA of a host."""
_SHOWN = 5


@dataclass
class UnreadNeighbours:
    """Neighbours without files: what names each, and its types.

    ``heard`` are the ports that lead to each, by LLDP or by a list of cables.

    ``patterns`` are those of names that the user calls hosts. ``access`` are ports of networks of
    hosts by which no route leads to another router, ``routed`` those by which some route does.
    """

    patterns: Sequence[str]
    types: Mapping[str, frozenset[str]]
    access: frozenset[NamedEnd]
    routed: frozenset[NamedEnd]
    heard: dict[str, list[tuple[NamedEnd, Neighbour]]] = field(default_factory=dict)

    def add(self, port: NamedEnd, neighbour: Neighbour) -> None:
        """Add what a port hears."""
        self.heard.setdefault(neighbour.system, []).append((port, neighbour))

    def is_host(self, system: str) -> bool:
        """Tell whether a neighbour is a host; see :meth:`judge`."""
        return self.judge(system)[0]

    def judge(self, system: str) -> tuple[bool, str]:
        """Tell whether a neighbour is a host, and why: the user, its type, or itself says so.

        Otherwise it is one if a single router names it, to which no route leads, and it does not
        say that it forwards, or has no ports but those of networks of hosts.
        """
        if self._is_named(system):
            return True, "--hosts names it"
        types = self.types.get(system) or self.types.get(_short(system)) or frozenset()
        if types == {_SERVER}:
            return True, f"DEVICE_NEIGHBOR_METADATA says {_SERVER}"
        for kind in sorted(kind for kind in types if "Router" in kind):
            return False, f"DEVICE_NEIGHBOR_METADATA says {kind}"
        forwards = {neighbour.forwards for _, neighbour in self.heard[system]}
        if forwards == {False}:
            return True, "by LLDP it is neither bridge nor router"
        ports = [port for port, _ in self.heard[system]]
        if len({router for router, _ in ports}) > 1:
            return False, "ports of several routers lead to it"
        if any(port in self.routed for port in ports):
            return False, "a route leads to a next hop there"
        if all(port in self.access for port in ports):
            return True, "its ports are untagged members of networks of hosts"
        if True in forwards:
            return False, "by LLDP it is a bridge or router"
        return (
            True,
            "one router names it, no route leads there, and it does not say that it forwards",
        )

    def _is_named(self, system: str) -> bool:
        names = (system, _short(system))
        return any(fnmatchcase(name, pattern) for pattern in self.patterns for name in names)

    def note_hosts(self, findings: Findings) -> None:
        """Add which hosts have ports at several switches. Raises RuleError: a pattern is unused."""
        for pattern in self.patterns:
            if not any(
                fnmatchcase(name, pattern) for name in (*self.heard, *map(_short, self.heard))
            ):
                raise RuleError(
                    f"--hosts {pattern!r}: no neighbour without files has such a name; there are "
                    + (listed(sorted(filter(None, self.heard)), _SHOWN) or "none")
                )
        several = [
            f"{system} at {' and '.join(f'{router}:{port}' for (router, port), _ in heard)}"
            for system, heard in sorted(self.heard.items())
            if system and len({port[0] for port, _ in heard}) > 1 and self.is_host(system)
        ]
        if several:
            findings.note(f"hosts with ports at several switches: {listed(several, _SHOWN)}")


def unread_neighbours(
    routers: Sequence[Router],
    routes: Mapping[str, Mapping[str, tuple[NextHop, ...]]],
    interfaces: Interfaces,
    patterns: Sequence[str],
) -> UnreadNeighbours:
    """Return what the tables of ``routers`` say about neighbours; none is heard yet."""
    types: dict[str, set[str]] = {}
    for router in routers:
        for system, fields in router.table("DEVICE_NEIGHBOR_METADATA").items():
            types.setdefault(system, set()).add(fields.get("type", ""))
    return UnreadNeighbours(
        patterns,
        {system: frozenset(kinds) for system, kinds in types.items()},
        frozenset(port for router in routers for port in _access_ports(router, routes)),
        frozenset(
            (router.name, port)
            for router in routers
            for hop in (hop for hops in distinct(routes[router.name]) for hop in hops)
            if hop.address is not None and hop.interface
            for port in interfaces[router.name].ports(hop.interface)
        ),
    )


def _access_ports(
    router: Router, routes: Mapping[str, Mapping[str, tuple[NextHop, ...]]]
) -> Iterator[NamedEnd]:
    """Yield untagged ports of VLANs, and ports of bridges, whose network has no other router."""
    hops = [hop for hops in distinct(routes[router.name]) for hop in hops]
    networks = {hop.interface for hop in hops if hop.address is None}
    networks -= {hop.interface for hop in hops if hop.address is not None}
    members: dict[str, list[str]] = {}
    for table, mark in (("PORTCHANNEL_MEMBER", "|"), ("LAG_MEMBER_TABLE", ":")):
        for key in router.table(table):
            lag, _, port = key.partition(mark)
            members.setdefault(lag, []).append(port)
    untagged = (
        key
        for key, fields in router.table("VLAN_MEMBER").items()
        if fields.get("tagging_mode") == "untagged"
    )
    for key in (*untagged, *router.table("BRIDGE_MEMBER")):
        network, _, interface = key.partition("|")
        if network in networks:
            for port in members.get(interface, [interface]):
                yield router.name, port


def _short(system: str) -> str:
    """Return the name without its domain."""
    return system.partition(".")[0]
