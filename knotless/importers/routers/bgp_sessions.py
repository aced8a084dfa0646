"""BGP speakers and the sessions between them, by their configurations."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from knotless.base.errors import RuleError
from knotless.base.printable import listed
from knotless.importers.findings import Findings
from knotless.importers.frr.configuration import FrrConfiguration, NeighbourSettings
from knotless.importers.prefixes import prefix_of
from knotless.importers.route_dump import NextHop
from knotless.importers.routers.cables import Cabling
from knotless.importers.routers.interfaces import DeviceInterfaces, addresses_of
from knotless.importers.routers.links import Links
from knotless.importers.routers.router import Router
from knotless.importers.routers.sonic_bgp import of_sonic

_End = tuple[int, str, NextHop, str]
"""A peer, what it calls the speaker, the next hop towards it, and its interface."""
UNNUMBERED = "fe80::"
"""The address of a neighbour that is known by its interface only."""


@dataclass(frozen=True, eq=False)
class Session:
    """A session from one speaker to another: both are places in the list of speakers.

    ``hop`` is the next hop of what the receiver learns, ``receiver_address`` that of the receiver
    on the link, None if it has none.
    """

    sender: int
    receiver: int
    hop: NextHop
    receiver_address: str | None
    sends: NeighbourSettings
    takes: NeighbourSettings


@dataclass
class Speaker:
    """A router with its configuration, the addresses of its interfaces, and its sessions.

    ``connected`` are the networks of its interfaces that are up, ``down`` the interfaces that are
    not; ``sessions`` are those by which it announces.
    """

    router: Router
    configuration: FrrConfiguration
    of_device: DeviceInterfaces
    interfaces: dict[str, list[ipaddress.IPv4Interface | ipaddress.IPv6Interface]]
    connected: dict[str, NextHop] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    sessions: list[Session] = field(default_factory=list)

    def is_link(self, interface: str) -> bool:
        """Tell whether an interface leads out of the router."""
        return not self.of_device.own(interface, routed=True)

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

    def is_on_link(self, address: str, interface: str) -> bool:
        """Tell whether an address is in a network of an interface."""
        wanted = ipaddress.ip_address(address)
        return any(
            own.version == wanted.version and wanted in own.network
            for own in self.interfaces.get(interface, ())
        )


def speakers_of(routers: Sequence[Router], cabling: Cabling, findings: Findings) -> list[Speaker]:
    """Return the speaker of each router; without ``frr.conf``, by its CONFIG_DB.

    Raises
    ------
    RuleError
        An address of an interface is not one.

    """
    links = Links(routers, cabling)
    return [_speaker_of(router, links, findings) for router in routers]


def _speaker_of(router: Router, links: Links, findings: Findings) -> Speaker:
    if router.configuration is None:
        configuration = of_sonic(router, findings)
    else:
        configuration = router.configuration
        _compare(router, configuration, findings)
    speaker = Speaker(router, configuration, links.interfaces[router.name], {})
    for interface, text in dict.fromkeys([*addresses_of(router), *configuration.addresses]):
        try:
            speaker.interfaces.setdefault(interface, []).append(ipaddress.ip_interface(text))
        except ValueError:
            raise RuleError(f"{router.name}: {text[:60]!r} is not an address") from None
    by_interface = {far for name, far in links_by_interface(configuration)}
    for interface in dict.fromkeys([*speaker.interfaces, *sorted(by_interface)]):
        is_up = links.link_is_up(router.name, interface)
        if is_up is None:
            findings.gap(
                f"whether {interface} of {router.name} is up (admin_status, min_links)",
                router.source.cause(interface),
            )
        elif not is_up:
            speaker.down.add(interface)
    for interface, addresses in speaker.interfaces.items():
        if interface not in speaker.down:
            for own in addresses:
                speaker.connected[prefix_of(str(own)).text] = NextHop(None, interface)
    if speaker.down:
        down = listed(sorted(speaker.down), 3)
        findings.note(
            f"{down} of {router.name} is down, by the configurations of its ends",
            *(router.source.cause(interface) for interface in sorted(speaker.down)[:3]),
        )
    return speaker


def links_by_interface(configuration: FrrConfiguration) -> Iterator[tuple[str, str]]:
    """Yield the neighbours that are known by an interface, with the interface."""
    for name, settings in configuration.neighbours.items():
        if settings.interface:
            yield name, name


def _compare(router: Router, configuration: FrrConfiguration, findings: Findings) -> None:
    """Add where FRR's own files and CONFIG_DB contradict each other."""
    asn = router.table("DEVICE_METADATA").get("localhost", {}).get("bgp_asn", "None")
    if asn.isdecimal() and configuration.asn not in (None, int(asn)):
        findings.gap(
            f"which AS {router.name} has: {configuration.asn} (FRR) or {asn} (CONFIG_DB)",
            router.source.cause(f"router bgp {configuration.asn}"),
            router.source.cause("DEVICE_METADATA", "localhost", "bgp_asn"),
        )
    static = {route.prefix for route in configuration.static}
    for key in router.table("STATIC_ROUTE"):
        vrf, _, text = key.rpartition("|")
        if vrf in ("", "default") and prefix_of(text).text not in static:
            findings.gap(
                f"whether {router.name} has the static route to {text}, which is in CONFIG_DB and"
                " not in FRR's file",
                router.source.cause("STATIC_ROUTE", key),
            )


def connect(speakers: Sequence[Speaker], cabling: Cabling, findings: Findings) -> None:
    """Add the sessions that come up: both ends are configured for each other, over a link."""
    ends = _Ends(speakers, cabling)
    configured = [neighbours(speaker.configuration) for speaker in speakers]
    for number, speaker in enumerate(speakers):
        name = speaker.router.name
        for group in _missing_groups(speaker.configuration):
            findings.gap(
                f"peer-group {group} of {name}", findings.cause(name, f"peer-group {group}")
            )
        for neighbour, settings in configured[number].items():
            if settings.shutdown:
                continue
            end = (
                ends.by_interface(number, neighbour)
                if settings.interface
                else ends.by_address(number, neighbour)
            )
            if end is None:
                findings.gap(
                    f"the routes that BGP neighbour {neighbour} announces to {name}",
                    findings.cause(name, neighbour),
                )
                continue
            peer, back, hop, far = end
            theirs = configured[peer].get(back)
            reason = _refusal(speakers, (number, settings, hop.interface), (peer, theirs, far))
            if reason:
                findings.note(
                    f"the BGP session of {name} with {neighbour} stays down: {reason}",
                    findings.cause(name, neighbour),
                )
            elif theirs is not None:
                same = speaker.configuration.asn == speakers[peer].configuration.asn
                if same:
                    findings.gap(
                        f"the routes of the internal BGP session of {name} with {neighbour}",
                        findings.cause(name, neighbour),
                    )
                    continue
                own = None if settings.interface else back
                if settings.source not in (None, own, hop.interface):
                    findings.gap(
                        f"what update-source {settings.source} of {name} does to its session with"
                        f" {neighbour}",
                        findings.cause(name, neighbour),
                    )
                session = Session(peer, number, hop, own, theirs, settings)
                speakers[peer].sessions.append(session)
    _find_shared(speakers, findings)


def _find_shared(speakers: Sequence[Speaker], findings: Findings) -> None:
    """Add networks of more than two speakers, where next hops can be those of a third one."""
    senders: dict[tuple[str, str], set[int]] = {}
    for session in (session for speaker in speakers for session in speaker.sessions):
        if session.hop.interface is not None:
            receiver = speakers[session.receiver].router.name
            senders.setdefault((receiver, session.hop.interface), set()).add(session.sender)
    for (router, interface), others in senders.items():
        if len(others) > 1:
            findings.gap(
                f"which next hops are announced to {router} on {interface}, where it has"
                f" {len(others)} neighbours",
                findings.cause(router, interface),
            )


class _Ends:
    """The other ends of sessions, by cables and by addresses."""

    def __init__(self, speakers: Sequence[Speaker], cabling: Cabling) -> None:
        self._speakers, self._cabling = speakers, cabling
        self._place = {speaker.router.name: n for n, speaker in enumerate(speakers)}
        self._owners: dict[str, list[tuple[int, str]]] = {}
        for number, speaker in enumerate(speakers):
            for name, addresses in speaker.interfaces.items():
                for own in addresses if speaker.is_link(name) else ():
                    self._owners.setdefault(str(own.ip), []).append((number, name))

    def by_address(self, number: int, address: str) -> _End | None:
        """Return the end of a neighbour that is known by an address.

        None if no router, or more than one, has the address, or cables say otherwise.
        """
        speaker = self._speakers[number]
        try:
            interface = speaker.interface_towards(address)
        except ValueError:
            return None
        owners = [own for own in self._owners.get(address, ()) if own[0] != number]
        if interface is None or len(owners) != 1:
            return None
        peer, far_interface = owners[0]
        names = speaker.router.name, self._speakers[peer].router.name
        peers = self._cabling.peers
        led_to = {peers[end][0] for end in ((names[0], interface),) if end in peers}
        led_back = {peers[end][0] for end in ((names[1], far_interface),) if end in peers}
        if led_to - {names[1]} or led_back - {names[0]}:
            return None
        wanted = ipaddress.ip_address(address)
        own = next(
            own.ip
            for own in speaker.interfaces[interface]
            if own.version == wanted.version and wanted in own.network
        )
        return peer, str(own), NextHop(address, interface), far_interface

    def by_interface(self, number: int, interface: str) -> _End | None:
        """Return the end of a neighbour that is known by an interface; None if it is not known."""
        far = self._cabling.peers.get((self._speakers[number].router.name, interface))
        if far is None or far[0] not in self._place:
            return None
        return self._place[far[0]], far[1], NextHop(UNNUMBERED, interface), far[1]


def _refusal(
    speakers: Sequence[Speaker],
    one: tuple[int, NeighbourSettings, str | None],
    other: tuple[int, NeighbourSettings | None, str],
) -> str:
    """Return why a session stays down; empty if it comes up."""
    (number, settings, interface), (peer, theirs, far_interface) = one, other
    names = speakers[number].router.name, speakers[peer].router.name
    for speaker, end in ((speakers[number], interface), (speakers[peer], far_interface)):
        if end in speaker.down:
            return f"{end} of {speaker.router.name} is down"
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
    if settings.passive and theirs.passive:
        return "both ends wait for the other (passive)"
    if settings.password != theirs.password:
        return "the passwords of its ends differ"
    if settings.ttl_security != theirs.ttl_security:
        return "only one end has this ttl-security"
    return ""


def _missing_groups(configuration: FrrConfiguration) -> list[str]:
    groups = {settings.group for settings in configuration.neighbours.values() if settings.group}
    return sorted(groups - configuration.neighbours.keys())


def neighbours(configuration: FrrConfiguration) -> Mapping[str, NeighbourSettings]:
    """Return each neighbour that is no peer group, with what it inherits from its group.

    Addresses have their canonical form (RFC 5952).
    """
    merged_by_name = {}
    groups = {s.group for s in configuration.neighbours.values() if s.group}
    for name, own in configuration.neighbours.items():
        if own.is_group or name in groups:
            continue
        whole = own
        if own.group is not None:
            whole = own.within(configuration.neighbours.get(own.group, NeighbourSettings()))
        if whole.remote_as is not None:
            merged_by_name[_canonical(name)] = whole
    return merged_by_name


def _canonical(name: str) -> str:
    """Return an address as it is written in full, and the name of an interface as it is."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name
