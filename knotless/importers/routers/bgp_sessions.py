"""BGP speakers and the sessions between them, by their configurations."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from knotless.base.errors import RuleError
from knotless.importers.findings import Findings
from knotless.importers.frr.configuration import (
    FAMILIES,
    FrrConfiguration,
    NeighbourSettings,
    family_of,
    number_of,
)
from knotless.importers.prefixes import prefix_of
from knotless.importers.route_dump import NextHop
from knotless.importers.routers.cables import Cabling
from knotless.importers.routers.interfaces import DeviceInterfaces
from knotless.importers.routers.router import INTERFACE_TABLES, Router

UNNUMBERED = "fe80::"
"""The address of a neighbour that is known by its interface only."""
_OF_SONIC = ("LOOPBACK_INTERFACE", "VLAN_INTERFACE")
"""What SONiC's own template announces."""


@dataclass(frozen=True, eq=False)
class Session:
    """What a speaker sends to another: both are places in the list of speakers.

    ``hop`` is the next hop of what the receiver learns.
    """

    sender: int
    receiver: int
    hop: NextHop
    sends: NeighbourSettings
    takes: NeighbourSettings


@dataclass
class Speaker:
    """A router with its configuration, the addresses of its interfaces, and its sessions.

    ``connected`` are the networks of its interfaces, ``sessions`` those by which it announces.
    """

    router: Router
    configuration: FrrConfiguration
    interfaces: dict[str, list[ipaddress.IPv4Interface | ipaddress.IPv6Interface]]
    connected: dict[str, NextHop] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)

    def is_link(self, interface: str) -> bool:
        """Tell whether an interface leads out of the router."""
        return not DeviceInterfaces(self.router).own(interface, routed=True)

    def interface_towards(self, address: str) -> str | None:
        """Return the interface whose network has an address; None if no link has."""
        wanted = ipaddress.ip_address(address)
        return next(
            (
                name
                for name, addresses in self.interfaces.items()
                for own in addresses
                if self.is_link(name) and own.version == wanted.version and wanted in own.network
            ),
            None,
        )


def speaker_of(router: Router, findings: Findings) -> Speaker:
    """Return the speaker of a router; without ``frr.conf``, by its CONFIG_DB.

    Raises
    ------
    RuleError
        An address of an interface is not one.

    """
    addresses = [
        (interface, address)
        for table in (*INTERFACE_TABLES, "LOOPBACK_INTERFACE")
        for interface, bar, address in (key.partition("|") for key in router.table(table))
        if bar and "/" in address
    ]
    configuration = router.configuration or _of_sonic(router, findings)
    interfaces: dict[str, list[ipaddress.IPv4Interface | ipaddress.IPv6Interface]] = {}
    connected: dict[str, NextHop] = {}
    for interface, text in dict.fromkeys([*addresses, *configuration.addresses]):
        if interface in configuration.closed:
            continue
        try:
            interfaces.setdefault(interface, []).append(ipaddress.ip_interface(text))
        except ValueError:
            raise RuleError(f"{router.name}: {text[:60]!r} is not an address") from None
        connected[prefix_of(text).text] = NextHop(None, interface)
    return Speaker(router, configuration, interfaces, connected)


def _of_sonic(router: Router, findings: Findings) -> FrrConfiguration:
    """Return the configuration that SONiC's own template makes of CONFIG_DB."""
    metadata = router.table("DEVICE_METADATA").get("localhost", {})
    configuration = FrrConfiguration(relaxed=True)
    _add_static(router, configuration)
    if metadata.get("bgp_asn", "None") == "None":
        return configuration
    configuration.asn = number_of(metadata["bgp_asn"])
    findings.note(
        f"BGP of {router.name}: as SONiC's template, it announces loopback and VLAN networks"
    )
    allowed = 1 if metadata.get("type") == "ToRRouter" else 0
    for key, fields in router.table("BGP_NEIGHBOR").items():
        vrf, _, address = key.rpartition("|")
        if vrf not in ("", "default") or "asn" not in fields:
            continue
        family = family_of(address)
        configuration.neighbours[address] = NeighbourSettings(
            remote_as=number_of(fields["asn"]),
            shutdown=fields.get("admin_status", "up") == "down",
            active={family: True},
            own_as_allowed=dict.fromkeys(FAMILIES, allowed),
        )
    for table in ("BGP_PEER_RANGE", "BGP_INTERNAL_NEIGHBOR", "BGP_VOQ_CHASSIS_NEIGHBOR"):
        if router.table(table):
            configuration.unclear.append(table)
    keys = (key.partition("|") for table in _OF_SONIC for key in router.table(table))
    for address in (address for _, bar, address in keys if bar and "/" in address):
        prefix = prefix_of(address).text
        configuration.networks[prefix] = None
    return configuration


def _add_static(router: Router, configuration: FrrConfiguration) -> None:
    """Add the rows of STATIC_ROUTE: lists of next hops, interfaces and distances of equal length.

    See sonic-static-route.yang in sonic-net/sonic-buildimage.
    """
    for key, fields in router.table("STATIC_ROUTE").items():
        vrf, _, text = key.rpartition("|")
        columns = [fields.get(name, "").split(",") for name in ("nexthop", "ifname", "blackhole")]
        count = max(map(len, columns))
        hops = [
            tuple(column[place] if place < len(column) else "" for column in columns)
            for place in range(count)
        ]
        distances = {*fields.get("distance", "0").split(",")} - {"0", ""}
        others = {*fields.get("nexthop-vrf", "default").split(",")} - {"default", ""}
        if vrf not in ("", "default") or distances or others:
            configuration.unclear.append(f"STATIC_ROUTE|{key}"[:100])
            continue
        prefix = prefix_of(text).text
        for address, interface, blackhole in hops:
            hop = "blackhole" if blackhole == "true" else interface or address
            configuration.static.append((prefix, hop))


def connect(speakers: Sequence[Speaker], cabling: Cabling, findings: Findings) -> None:
    """Add the sessions that come up: both ends are configured for each other."""
    place = {speaker.router.name: number for number, speaker in enumerate(speakers)}
    owner = {
        str(own.ip): number
        for number, speaker in enumerate(speakers)
        for name, addresses in speaker.interfaces.items()
        if speaker.is_link(name)
        for own in addresses
    }
    configured = [neighbours(speaker.configuration) for speaker in speakers]
    for number, speaker in enumerate(speakers):
        name = speaker.router.name
        for neighbour, settings in configured[number].items():
            if settings.shutdown:
                continue
            end = (
                _by_interface(speakers, place, cabling, number, neighbour)
                if settings.interface
                else _by_address(speakers, owner, number, neighbour)
            )
            if end is None:
                findings.gap(f"the routes that BGP neighbour {neighbour} announces to {name}")
                continue
            peer, back, hop = end
            theirs = configured[peer].get(back)
            reason = _refusal(speakers, (number, settings), (peer, theirs))
            if reason:
                findings.note(f"the BGP session of {name} with {neighbour} stays down: {reason}")
            elif (
                theirs is not None and speaker.configuration.asn == speakers[peer].configuration.asn
            ):
                findings.gap(f"the routes of the internal BGP session of {name} with {neighbour}")
            elif theirs is not None:
                speakers[peer].sessions.append(Session(peer, number, hop, theirs, settings))


def _by_address(
    speakers: Sequence[Speaker], owner: Mapping[str, int], number: int, address: str
) -> tuple[int, str, NextHop] | None:
    """Return the peer, what it calls this speaker, and the next hop towards it."""
    try:
        interface = speakers[number].interface_towards(address)
    except ValueError:
        return None
    peer = owner.get(address)
    if interface is None or peer is None:
        return None
    wanted = ipaddress.ip_address(address)
    own = next(
        own.ip
        for own in speakers[number].interfaces[interface]
        if own.version == wanted.version and wanted in own.network
    )
    return peer, str(own), NextHop(address, interface)


def _by_interface(
    speakers: Sequence[Speaker],
    place: Mapping[str, int],
    cabling: Cabling,
    number: int,
    interface: str,
) -> tuple[int, str, NextHop] | None:
    far = cabling.peers.get((speakers[number].router.name, interface))
    if far is None or far[0] not in place:
        return None
    ends = ((number, interface), (place[far[0]], far[1]))
    if any(port in speakers[end].configuration.closed for end, port in ends):
        return None
    return place[far[0]], far[1], NextHop(UNNUMBERED, interface)


def _refusal(
    speakers: Sequence[Speaker],
    one: tuple[int, NeighbourSettings],
    other: tuple[int, NeighbourSettings | None],
) -> str:
    """Return why a session stays down; empty if it comes up."""
    (number, settings), (peer, theirs) = one, other
    names = speakers[number].router.name, speakers[peer].router.name
    if theirs is None or theirs.shutdown:
        return f"{names[1]} is not configured for it"
    for mine, name, far in ((settings, names[0], peer), (theirs, names[1], number)):
        near = number if far == peer else peer
        asn, own = speakers[far].configuration.asn, speakers[near].configuration.asn
        expected = {"external": asn if asn != own else None, "internal": own}.get(
            str(mine.remote_as), mine.remote_as
        )
        if asn is None or expected != asn:
            return f"{name} expects AS {mine.remote_as}, not {asn}"
    return ""


def neighbours(configuration: FrrConfiguration) -> dict[str, NeighbourSettings]:
    """Return each neighbour that is no peer group, with what it inherits from its group.

    Addresses have their canonical form (RFC 5952).
    """
    merged_by_name = {}
    groups = {s.group for s in configuration.neighbours.values() if s.group}
    for name, own in configuration.neighbours.items():
        if own.is_group or name in groups:
            continue
        group = configuration.neighbours.get(own.group or "", NeighbourSettings())
        merged = replace(
            own,
            remote_as=own.remote_as if own.remote_as is not None else group.remote_as,
            shutdown=own.shutdown or group.shutdown,
            active={**group.active, **own.active},
            own_as_allowed={**group.own_as_allowed, **own.own_as_allowed},
            default_route=group.default_route | own.default_route,
            maps={**group.maps, **own.maps},
            lists={**group.lists, **own.lists},
        )
        if merged.remote_as is not None:
            merged_by_name[_canonical(name)] = merged
    return merged_by_name


def _canonical(name: str) -> str:
    """Return an address as it is written in full, and the name of an interface as it is."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name
