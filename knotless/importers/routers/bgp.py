"""Routes that BGP would install, computed from configurations: assumed, not read.

What is followed: external sessions over a link, the shortest AS path, origins, multipath, own AS
numbers that are let in, prefix lists, and route maps that match prefix lists and lengthen paths
(RFC 4271, section 9.1; FRR User Guide, chapter BGP). All else that could change a route is a
missing fact.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from knotless.base.errors import RuleError
from knotless.base.printable import listed
from knotless.importers.findings import Findings
from knotless.importers.frr.configuration import FAMILIES, IPV4, IPV6, family_of
from knotless.importers.prefixes import prefix_of
from knotless.importers.route_dump import DROP, NextHop
from knotless.importers.routers.bgp_sessions import (
    UNNUMBERED,
    Session,
    Speaker,
    connect,
    speaker_of,
)
from knotless.importers.routers.cables import Cabling, Routes
from knotless.importers.routers.router import Router

_IGP, _INCOMPLETE = 0, 2
_MOST_PATHS = 256
_DEFAULT = {IPV4: "0.0.0.0/0", IPV6: "::/0"}
_MAX_UPDATES = 50_000_000

_AsPath = tuple[int, ...]
_Kind = tuple[tuple[tuple[int, int], ...], tuple[tuple[int | None, int | None], ...], bool]
"""Who announces a prefix, with which origin; what all policies do with it; if it is the default."""


def computed_routes(
    routers: Sequence[Router], cabling: Cabling, findings: Findings
) -> dict[str, Routes]:
    """Return by router the routes of its interfaces, its static ones, and those of BGP.

    Raises
    ------
    RuleError
        No router has a configuration of BGP, or an address is not one.

    """
    speakers = [speaker_of(router, findings) for router in routers]
    if all(speaker.configuration.asn is None for speaker in speakers):
        raise RuleError("--routes bgp: no router has a configuration of BGP (frr.conf, bgp_asn)")
    for speaker in speakers:
        name, configuration = speaker.router.name, speaker.configuration
        if configuration.asn is None:
            findings.gap(f"the BGP configuration of {name}")
        if configuration.unclear:
            texts = listed([repr(text) for text in configuration.unclear], 2)
            findings.gap(f"what {texts} of {name} does to routes")
    connect(speakers, cabling, findings)
    findings.note("all routes are computed from the configurations of BGP: assumed, not read")
    learned = _Learned(speakers, findings)
    return {
        speaker.router.name: {
            **learned.routes_of(number),
            **_static(speaker, findings),
            **{text: (hop,) for text, hop in speaker.connected.items()},
        }
        for number, speaker in enumerate(speakers)
    }


def static_routes(routers: Sequence[Router], findings: Findings) -> dict[str, Routes]:
    """Return by router the routes of its interfaces, and its static ones: no protocol runs.

    Raises
    ------
    RuleError
        No router has an address of an interface, or an address is not one.

    """
    speakers = [speaker_of(router, findings) for router in routers]
    if not any(speaker.connected for speaker in speakers):
        raise RuleError("--routes static: no router has addresses (frr.conf, config_db.json)")
    for speaker in speakers:
        name, configuration = speaker.router.name, speaker.configuration
        if configuration.asn is not None:
            findings.gap(f"the routes that {name} learns by BGP")
        if configuration.unclear:
            texts = listed([repr(text) for text in configuration.unclear], 2)
            findings.gap(f"what {texts} of {name} does to routes")
    findings.note("all routes are those of interfaces and static ones in configurations")
    return {
        speaker.router.name: {
            **_static(speaker, findings),
            **{text: (hop,) for text, hop in speaker.connected.items()},
        }
        for speaker in speakers
    }


def _static(speaker: Speaker, findings: Findings) -> dict[str, tuple[NextHop, ...]]:
    routes: dict[str, tuple[NextHop, ...]] = {}
    for prefix, text in speaker.configuration.static:
        if text in ("Null0", "blackhole", "reject"):
            hop: NextHop | None = DROP
        elif text in speaker.interfaces:
            hop = NextHop(None, text)
        else:
            try:
                interface = speaker.interface_towards(text)
            except ValueError:
                interface = None
            hop = None if interface is None else NextHop(text, interface)
        if hop is None:
            findings.gap(f"the next hop of the static route of {speaker.router.name} to {prefix}")
        else:
            routes[prefix] = (*routes.get(prefix, ()), hop)
    return routes


class _Learned:
    """The routes that speakers learn. Prefixes that all treat alike are computed together."""

    def __init__(self, speakers: Sequence[Speaker], findings: Findings) -> None:
        self._speakers, self._findings = speakers, findings
        self._unclear: dict[str, None] = {}
        self._routes: list[dict[str, tuple[NextHop, ...]]] = [{} for _ in speakers]
        self._updates = 0
        for family in FAMILIES:
            self._learn(family)
        for text in self._unclear:
            findings.gap(text)

    def routes_of(self, number: int) -> dict[str, tuple[NextHop, ...]]:
        """Return the routes that a speaker has learned."""
        return self._routes[number]

    def _learn(self, family: str) -> None:
        speakers = self._speakers
        incoming: list[list[Session]] = [[] for _ in speakers]
        for session in (session for speaker in speakers for session in speaker.sessions):
            activates = speakers[session.sender].configuration.activates_ipv4 and family == IPV4
            if all(
                settings.active.get(family, activates)
                for settings in (session.sends, session.takes)
            ):
                incoming[session.receiver].append(session)
        outgoing: list[list[Session]] = [[] for _ in speakers]
        for sessions in incoming:
            for session in sessions:
                outgoing[session.sender].append(session)
        origins: dict[str, dict[int, int]] = {}
        for number, speaker in enumerate(speakers):
            for prefix, origin in self._originated(speaker, family):
                known = origins.setdefault(prefix, {})
                known[number] = min(origin, known.get(number, origin))
        if any(family in s.sends.default_route for sessions in outgoing for s in sessions):
            origins.setdefault(_DEFAULT[family], {})
        alike: dict[_Kind, list[str]] = {}
        for prefix, known in origins.items():
            treated = tuple(
                self._policies(session, prefix, family)
                for sessions in incoming
                for session in sessions
            )
            alike.setdefault(
                (tuple(known.items()), treated, prefix == _DEFAULT[family]), []
            ).append(prefix)
        for (announced, _, is_default), prefixes in alike.items():
            learned = self._spread(
                dict(announced), prefixes[0], family, outgoing, is_default=is_default
            )
            for routes, hops in zip(self._routes, learned, strict=True):
                if hops:
                    routes.update(dict.fromkeys(prefixes, hops))

    def _originated(self, speaker: Speaker, family: str) -> Iterator[tuple[str, int]]:
        configuration = speaker.configuration
        for prefix, route_map in configuration.networks.items():
            if family_of(prefix) != family:
                continue
            if self._permits(speaker, route_map, None, prefix, family) is not None:
                yield prefix, _IGP
        static = {prefix: None for prefix, _ in configuration.static}
        for kind, prefixes in (("connected", speaker.connected), ("static", static)):
            if (family, kind) not in configuration.redistributed:
                continue
            route_map = configuration.redistributed[family, kind]
            for prefix in prefixes:
                if family_of(prefix) != family or prefix.startswith("fe80:"):
                    continue
                if self._permits(speaker, route_map, None, prefix, family) is not None:
                    yield prefix, _INCOMPLETE

    def _policies(
        self, session: Session, prefix: str, family: str
    ) -> tuple[int | None, int | None]:
        """Return by how much the sender and the receiver lengthen the path; None: refused."""
        return (
            self._permits(
                self._speakers[session.sender],
                session.sends.maps.get((family, "out")),
                session.sends.lists.get((family, "out")),
                prefix,
                family,
            ),
            self._permits(
                self._speakers[session.receiver],
                session.takes.maps.get((family, "in")),
                session.takes.lists.get((family, "in")),
                prefix,
                family,
            ),
        )

    def _permits(
        self, speaker: Speaker, map_name: str | None, list_name: str | None, text: str, family: str
    ) -> int | None:
        """Return how many AS numbers a policy puts in front of the path; None if it refuses."""
        if list_name is not None and not self._in_list(speaker, family, list_name, text):
            return None
        if map_name is None:
            return 0
        entries = speaker.configuration.route_maps.get(map_name)
        if entries is None:
            self._unclear[f"route-map {map_name} of {speaker.router.name}"] = None
            return 0
        prepended, accepted, least = 0, False, 0
        for number in sorted(entries):
            entry = entries[number]
            if number < least:
                continue
            if not all(
                kind == family and self._in_list(speaker, kind, name, text)
                for kind, name in entry.lists
            ):
                continue
            if entry.unclear:
                what = f"what {entry.unclear[0]!r} in route-map {map_name} of"
                self._unclear[f"{what} {speaker.router.name} does to routes"] = None
            if not entry.permit:
                return None
            accepted, prepended = True, prepended + entry.prepend
            if entry.goto is None:
                break
            least = max(entry.goto, number + 1)
        return prepended if accepted else None

    def _in_list(self, speaker: Speaker, family: str, name: str, text: str) -> bool:
        rules = speaker.configuration.prefix_lists.get((family, name))
        if rules is None:
            self._unclear[f"prefix-list {name} of {speaker.router.name}"] = None
            return True
        wanted = prefix_of(text)
        longest = 128 if family == IPV6 else 32
        length = longest - (wanted.size.bit_length() - 1)
        for _, rule in sorted(rules, key=lambda numbered: numbered[0]):
            inside = rule.prefix.first <= wanted.first and wanted.end <= rule.prefix.end
            if inside and rule.least <= length <= rule.most:
                return rule.permit
        return False

    def _spread(
        self,
        origins: Mapping[int, int],
        prefix: str,
        family: str,
        outgoing: Sequence[Sequence[Session]],
        *,
        is_default: bool,
    ) -> list[tuple[NextHop, ...]]:
        """Return the next hops of each speaker, once no speaker has anything new to announce."""
        speakers = self._speakers
        best: list[tuple[_AsPath, int] | None] = [
            ((), origins[number]) if number in origins else None for number in range(len(speakers))
        ]
        heard: list[dict[Session, tuple[_AsPath, int]]] = [{} for _ in speakers]
        waiting = dict.fromkeys(origins)
        if is_default:
            waiting |= dict.fromkeys(n for n, out in enumerate(outgoing) if out)
        while waiting:
            number = next(iter(waiting))
            del waiting[number]
            for session in outgoing[number]:
                self._updates += 1
                if self._updates > _MAX_UPDATES:
                    raise RuleError("BGP does not settle, or there are too many routes to compute")
                told = best[number]
                if is_default and family in session.sends.default_route:
                    told = ((), _IGP)
                offered = self._offered(session, told, prefix, family)
                peer = session.receiver
                if heard[peer].get(session) == offered:
                    continue
                if offered is None:
                    del heard[peer][session]
                else:
                    heard[peer][session] = offered
                if peer in origins:
                    continue
                chosen = min(
                    heard[peer].items(),
                    key=lambda item: (len(item[1][0]), item[1][1], _order(item[0].hop)),
                    default=(None, None),
                )[1]
                if chosen != best[peer]:
                    best[peer] = chosen
                    waiting[peer] = None
        return [
            () if number in origins else self._hops(number, heard[number], family)
            for number in range(len(speakers))
        ]

    def _offered(
        self, session: Session, told: tuple[_AsPath, int] | None, prefix: str, family: str
    ) -> tuple[_AsPath, int] | None:
        """Return the path and origin that the peer has after its policy; None: it has none."""
        sender, receiver = (
            self._speakers[number].configuration.asn
            for number in (session.sender, session.receiver)
        )
        if told is None or sender is None:
            return None
        out, into = self._policies(session, prefix, family)
        if out is None or into is None:
            return None
        path = (*(sender,) * (1 + out + into), *told[0])
        allowed = session.takes.own_as_allowed.get(family, 0)
        return None if path.count(receiver or -1) > allowed else (path, told[1])

    def _hops(
        self, number: int, heard: Mapping[Session, tuple[_AsPath, int]], family: str
    ) -> tuple[NextHop, ...]:
        if not heard:
            return ()
        configuration = self._speakers[number].configuration
        length, origin = min((len(path), origin) for path, origin in heard.values())
        equal = [
            (session.hop, path)
            for session, (path, its_origin) in heard.items()
            if (len(path), its_origin) == (length, origin)
        ]
        if not configuration.relaxed and len({path for _, path in equal}) > 1:
            first = min(equal, key=lambda each: _order(each[0]))[1]
            equal = [(hop, path) for hop, path in equal if path == first]
            name = self._speakers[number].router.name
            self._findings.note(
                f"{name} takes next hops of one AS path only (no multipath-relax): which one"
                " depends on the order of announcements; that of the lowest address is taken"
            )
        hops = sorted((hop for hop, _ in equal), key=_order)
        return tuple(hops[: configuration.most_paths.get(family, _MOST_PATHS)])


def _order(hop: NextHop) -> tuple[int, str]:
    address = hop.address or ""
    number = 0 if address == UNNUMBERED else int(ipaddress.ip_address(address))
    return number, hop.interface or ""
