"""Routes that BGP would install, computed from configurations: assumed, not read.

What is followed: external sessions over links that are up, the shortest AS path, local preferences,
origins, metrics, multipath, own AS numbers that are let in, networks that must be in the router's
own table, required policies, communities by which a route goes no further, the most prefixes that
are accepted, prefix lists and route maps (RFC 4271, section 9.1; RFC 1997; RFC 8212; FRR User
Guide, chapter BGP). All else that could change a route is a missing fact.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from knotless.base.errors import RuleError
from knotless.base.printable import listed
from knotless.importers.findings import Findings
from knotless.importers.frr.configuration import FAMILIES, IPV4, IPV6, family_of
from knotless.importers.route_dump import NextHop
from knotless.importers.routers.bgp_origins import (
    IGP,
    PREFERENCE,
    Origins,
    Route,
    first_compared,
)
from knotless.importers.routers.bgp_policies import Change, Policies
from knotless.importers.routers.bgp_sessions import (
    UNNUMBERED,
    Session,
    Speaker,
    connect,
    speakers_of,
)
from knotless.importers.routers.cables import Cabling, Routes
from knotless.importers.routers.router import Router
from knotless.importers.routers.static_next_hops import StaticTable, static_table

_MOST_PATHS = 256
_DEFAULT = {IPV4: "0.0.0.0/0", IPV6: "::/0"}
_MAX_UPDATES = 50_000_000

_Changes = tuple[Change | None, Change | None]
"""What the policies of sender and receiver change; None: refused."""


def computed_routes(
    routers: Sequence[Router], cabling: Cabling, findings: Findings
) -> dict[str, Routes]:
    """Return by router the routes of its interfaces, its static ones, and those of BGP.

    Raises
    ------
    RuleError
        No router has a configuration of BGP, or an address is not one.

    """
    speakers = speakers_of(routers, cabling, findings)
    protocols = _protocols(speakers, findings)
    if all(speaker.configuration.asn is None for speaker in speakers):
        if protocols:
            raise RuleError(
                f"--routes bgp: {protocols} is not followed, and no router has a configuration of"
                " BGP; collect the routes instead: vtysh -c 'show ip route vrf all json'"
            )
        raise RuleError("--routes bgp: no router has a configuration of BGP (frr.conf, bgp_asn)")
    for speaker in speakers:
        if speaker.configuration.asn is None and "bgpd" not in speaker.configuration.daemons:
            findings.gap(f"the BGP configuration of {speaker.router.name}")
    _find_unclear(speakers, findings)
    connect(speakers, cabling, findings)
    findings.note("all routes are computed from the configurations of BGP: assumed, not read")
    tables = [static_table(speaker, cabling, findings) for speaker in speakers]
    learned = _Learned(speakers, tables, findings)
    return {
        speaker.router.name: {
            **table.far,
            **learned.routes_of(number),
            **table.near,
            **{text: (hop,) for text, hop in speaker.connected.items()},
        }
        for number, (speaker, table) in enumerate(zip(speakers, tables, strict=True))
    }


def static_routes(
    routers: Sequence[Router], cabling: Cabling, findings: Findings
) -> dict[str, Routes]:
    """Return by router the routes of its interfaces, and its static ones: no protocol runs.

    Raises
    ------
    RuleError
        No router has an address of an interface, or an address is not one.

    """
    speakers = speakers_of(routers, cabling, findings)
    if not any(speaker.interfaces for speaker in speakers):
        raise RuleError("--routes static: no router has addresses (frr.conf, config_db.json)")
    for speaker in speakers:
        if speaker.configuration.asn is not None:
            findings.gap(f"the routes that {speaker.router.name} learns by BGP")
    _protocols(speakers, findings)
    _find_unclear(speakers, findings)
    findings.note("all routes are those of interfaces and static ones in configurations")
    routes: dict[str, Routes] = {}
    for speaker in speakers:
        table = static_table(speaker, cabling, findings)
        connected = {text: (hop,) for text, hop in speaker.connected.items()}
        routes[speaker.router.name] = {**table.far, **table.near, **connected}
    return routes


def _protocols(speakers: Sequence[Speaker], findings: Findings) -> str:
    """Add the protocols that run and are not followed, one line each; return their names."""
    routers: dict[str, list[str]] = {}
    for speaker in speakers:
        for protocol in speaker.configuration.protocols:
            routers.setdefault(protocol, []).append(speaker.router.name)
    for protocol, names in routers.items():
        findings.gap(
            f"the routes of {protocol}, which is not followed, at {listed(names, 3)}",
            *(findings.cause(name, f"router {protocol}") for name in names[:3]),
        )
    return listed([*routers], 3)


def _find_unclear(speakers: Sequence[Speaker], findings: Findings) -> None:
    for speaker in speakers:
        if speaker.configuration.unclear:
            texts = listed([repr(text) for text in speaker.configuration.unclear], 2)
            findings.gap(
                f"what {texts} of {speaker.router.name} does to routes",
                *(speaker.router.source.cause(text) for text in speaker.configuration.unclear[:2]),
            )


class _Learned:
    """The routes that speakers learn. Prefixes that all treat alike are computed together."""

    def __init__(
        self, speakers: Sequence[Speaker], tables: Sequence[StaticTable], findings: Findings
    ) -> None:
        self._speakers, self._tables, self._findings = speakers, tables, findings
        self._policies = Policies(findings)
        self._routes: list[dict[str, tuple[NextHop, ...]]] = [{} for _ in speakers]
        self._updates = 0
        origins = Origins(speakers, tables, self._policies, findings)
        families = [_Family(family, speakers, origins.of_family(family)) for family in FAMILIES]
        self._find_mixed(families)
        for family in families:
            family.decide(self._policies, speakers)
        ended = {pair for family in families for pair in family.over_limit(speakers, findings)}
        for family in families:
            family.end(ended)
            self._learn(family)

    def _find_mixed(self, families: Sequence[_Family]) -> None:
        """Add sessions by IPv6 addresses that carry IPv4 routes, whose next hops need RFC 8950."""
        for session in (
            one for family in families for one in family.sessions if family.is_mixed(one)
        ):
            names = (self._speakers[n].router.name for n in (session.sender, session.receiver))
            self._findings.gap(
                f"the next hops of IPv4 routes between {' and '.join(sorted(names))}: a session by"
                " IPv6 addresses without 'capability extended-nexthop'"
            )

    def routes_of(self, number: int) -> dict[str, tuple[NextHop, ...]]:
        """Return the routes that a speaker has learned."""
        return self._routes[number]

    def _learn(self, family: _Family) -> None:
        alike: dict[object, list[str]] = {}
        for prefix, origins in family.origins.items():
            waiting = tuple(
                number
                for number, speaker in enumerate(self._speakers)
                if speaker.configuration.waits_for_fib and number not in origins
                if prefix in speaker.connected or prefix in self._tables[number].near
            )
            kind = (
                tuple(origins.items()),
                tuple(family.changes[prefix].values()),
                waiting,
                prefix == _DEFAULT[family.name],
            )
            alike.setdefault(kind, []).append(prefix)
        for prefixes in alike.values():
            learned = self._spread(family, prefixes[0], last=False)
            if learned.depends_on_order:
                other = self._spread(family, prefixes[0], last=True)
                for speaker, one, two in zip(self._speakers, learned.hops, other.hops, strict=True):
                    if one != two:
                        self._findings.gap(
                            f"which of equal paths is the oldest: routes of {speaker.router.name}"
                            " depend on it"
                        )
            for number, hops in enumerate(learned.hops):
                if not hops:
                    continue
                self._routes[number].update(dict.fromkeys(prefixes, hops))
                speaker = self._speakers[number]
                for prefix in prefixes if speaker.configuration.waits_for_fib else ():
                    if prefix in speaker.connected or prefix in self._tables[number].near:
                        self._findings.gap(
                            f"whether {speaker.router.name} announces {prefix}, to which it has a"
                            " route of its own (bgp suppress-fib-pending)",
                            speaker.router.source.cause("suppress-fib-pending"),
                        )

    def _spread(self, family: _Family, prefix: str, *, last: bool) -> _Spread:
        """Return the next hops of each speaker, once no speaker has anything new to announce.

        Of equal paths, the one of the lowest address is announced, or the ``last`` one.
        """
        speakers, origins, changes = self._speakers, family.origins[prefix], family.changes[prefix]
        is_default = prefix == _DEFAULT[family.name]
        best: list[Route | None] = [origins.get(number) for number in range(len(speakers))]
        heard: list[dict[Session, Route]] = [{} for _ in speakers]
        spread = _Spread([])
        waiting = dict.fromkeys(origins)
        if is_default:
            waiting |= dict.fromkeys(n for n, out in enumerate(family.outgoing) if out)
        while waiting:
            number = next(iter(waiting))
            del waiting[number]
            for session in family.outgoing[number]:
                self._updates += 1
                if self._updates > _MAX_UPDATES:
                    raise RuleError("BGP does not settle, or there are too many routes to compute")
                announced, change = best[number], changes[session]
                if is_default and session.sends.default_route.get(family.name):
                    # Sent whatever the policy of the sender is, as FRR 8.4 does.
                    announced, change = Route((), IGP, own=True), (Change(), change[1])
                offered = self._offered(session, announced, change, family.name)
                peer = session.receiver
                if heard[peer].get(session) == offered:
                    continue
                if offered is None:
                    del heard[peer][session]
                else:
                    heard[peer][session] = offered
                if peer in origins:
                    continue
                equal = self._equal(peer, heard[peer])
                chosen = None
                if equal:
                    order = max if last else min
                    chosen = order(equal, key=lambda item: _order(item[0].hop))[1]
                    spread.depends_on_order |= len({(r.path, r.keeps) for _, r in equal}) > 1
                if chosen != best[peer]:
                    best[peer] = chosen
                    waiting[peer] = None
        for number in range(len(speakers)):
            hops = () if number in origins else self._hops(number, heard[number], family.name)
            spread.hops.append(hops)
        return spread

    def _offered(
        self, session: Session, announced: Route | None, changes: _Changes, family: str
    ) -> Route | None:
        """Return the route that the peer has after its policy; None: it has none."""
        sender, receiver = (
            self._speakers[number].configuration for number in (session.sender, session.receiver)
        )
        out, into = changes
        if announced is None or announced.keeps or out is None or into is None:
            return None
        if sender.asn is None or receiver.asn is None:
            return None
        if session.receiver_address in announced.gateways:
            return None
        if session.sends.detects_loops and receiver.asn in announced.path:
            return None
        path = (sender.asn, *out.prepended, *announced.path)
        if path.count(receiver.asn) > session.takes.own_as_allowed.get(family, 0):
            return None
        metric = announced.metric if announced.own else 0
        metric = metric if out.metric is None else out.metric
        metric = metric if sender.max_med is None else sender.max_med
        keeps = bool(out.keeps) and not session.sends.silent.get(family)
        return Route(
            path=(*into.prepended, *path),
            origin=announced.origin,
            metric=metric if into.metric is None else into.metric,
            preference=PREFERENCE if into.preference is None else into.preference,
            keeps=keeps if into.keeps is None else into.keeps,
        )

    def _equal(self, number: int, heard: Mapping[Session, Route]) -> list[tuple[Session, Route]]:
        """Return the best routes; those of one neighbouring AS are compared by their metrics."""
        if not heard:
            return []
        first = min(map(first_compared, heard.values()))
        equal = [item for item in heard.items() if first_compared(item[1]) == first]
        compares_all = self._speakers[number].configuration.compares_all_med
        by_as: dict[int, list[tuple[Session, Route]]] = {}
        for item in equal:
            by_as.setdefault(0 if compares_all else item[1].path[0], []).append(item)
        best = []
        for items in by_as.values():
            least = min(route.metric for _, route in items)
            best += [item for item in items if item[1].metric == least]
        if len(by_as) > 1 and len(best) < len(equal):
            self._findings.gap(
                f"the order in which {self._speakers[number].router.name} compares metrics of"
                " several AS"
            )
        return best

    def _hops(
        self, number: int, heard: Mapping[Session, Route], family: str
    ) -> tuple[NextHop, ...]:
        configuration, name = (
            self._speakers[number].configuration,
            self._speakers[number].router.name,
        )
        equal = [(session.hop, route.path) for session, route in self._equal(number, heard)]
        if not configuration.relaxed and len({path for _, path in equal}) > 1:
            first = min(equal, key=lambda each: _order(each[0]))[1]
            equal = [(hop, path) for hop, path in equal if path == first]
            self._findings.gap(
                f"which AS path is the oldest at {name}, which takes next hops of one path only (no"
                " multipath-relax)"
            )
        hops = sorted((hop for hop, _ in equal), key=_order)
        most = configuration.most_paths.get(family, _MOST_PATHS)
        if len(hops) > most:
            self._findings.gap(
                f"which {most} of {len(hops)} equal next hops {name} takes (maximum-paths)",
                self._findings.cause(name, "maximum-paths"),
            )
        return tuple(hops[:most])


class _Spread:
    """The next hops of each speaker, and whether they may depend on which path is the oldest."""

    def __init__(self, hops: list[tuple[NextHop, ...]]) -> None:
        self.hops = hops
        self.depends_on_order = False


class _Family:
    """The sessions of an address family, what speakers announce, and what policies do with it."""

    def __init__(
        self, name: str, speakers: Sequence[Speaker], origins: dict[str, dict[int, Route]]
    ) -> None:
        self.name, self.origins = name, origins
        self.changes: dict[str, dict[Session, _Changes]] = {}
        self.outgoing: list[list[Session]] = [[] for _ in speakers]
        for session in (session for speaker in speakers for session in speaker.sessions):
            if all(
                settings.active.get(
                    name, speakers[number].configuration.activates_ipv4 and name == IPV4
                )
                for number, settings in (
                    (session.sender, session.sends),
                    (session.receiver, session.takes),
                )
            ):
                self.outgoing[session.sender].append(session)
        if any(session.sends.default_route.get(name) for session in self.sessions):
            origins.setdefault(_DEFAULT[name], {})

    @property
    def sessions(self) -> Iterator[Session]:
        """All sessions, by sender."""
        return (session for sessions in self.outgoing for session in sessions)

    def is_mixed(self, session: Session) -> bool:
        """Tell whether IPv4 routes have next hops by a session that negotiates IPv6 ones alone."""
        address = session.hop.address or ""
        extended = session.sends.extended_next_hop and session.takes.extended_next_hop
        is_six = family_of(address) == IPV6 and address != UNNUMBERED
        return self.name == IPV4 and bool(self.origins) and is_six and not extended

    def decide(self, policies: Policies, speakers: Sequence[Speaker]) -> None:
        """Apply all policies to all prefixes."""
        alike: dict[tuple[_Changes, ...], dict[Session, _Changes]] = {}
        for prefix in self.origins:
            changes = {
                session: (
                    policies.sent(session, speakers[session.sender], prefix, self.name),
                    policies.taken(session, speakers[session.receiver], prefix, self.name),
                )
                for session in self.sessions
            }
            self.changes[prefix] = alike.setdefault(tuple(changes.values()), changes)

    def over_limit(
        self, speakers: Sequence[Speaker], findings: Findings
    ) -> Iterator[frozenset[int]]:
        """Yield the sessions that end by ``maximum-prefix``: what the sender has itself suffices.

        If only prefixes of others would be too many, it depends on more than is computed here. So
        it does with one prefix too many: FRR compares with the limit before it adds the next one
        (``bgp_update``), and real sessions stay up until something changes.
        """
        for session in self.sessions:
            limit = session.takes.limits.get(self.name)
            if limit is None:
                continue
            permitted = [
                prefix
                for prefix, changes in self.changes.items()
                if None not in changes[session]
                or (prefix == _DEFAULT[self.name] and session.sends.default_route.get(self.name))
            ]
            own = [
                prefix
                for prefix in permitted
                if (route := self.origins[prefix].get(session.sender)) is not None
                and not (route.keeps or session.receiver_address in route.gateways)
            ]
            names = [speakers[n].router.name for n in (session.receiver, session.sender)]
            if len(own) > limit + 1:
                findings.note(
                    f"the BGP session of {names[0]} with {names[1]} ends: maximum-prefix {limit},"
                    f" and {names[1]} announces {len(own)} itself",
                    findings.cause(names[0], f"maximum-prefix {limit}"),
                )
                yield _pair(session)
            elif len(permitted) > limit:
                findings.gap(
                    f"whether {names[1]} announces more than {limit} prefixes to {names[0]}"
                    " (maximum-prefix)",
                    findings.cause(names[0], f"maximum-prefix {limit}"),
                )

    def end(self, pairs: set[frozenset[int]]) -> None:
        """Remove sessions, in both directions."""
        if not pairs:
            return
        self.outgoing = [
            [session for session in sessions if _pair(session) not in pairs]
            for sessions in self.outgoing
        ]
        for prefix, changes in self.changes.items():
            self.changes[prefix] = {s: c for s, c in changes.items() if _pair(s) not in pairs}


def _pair(session: Session) -> frozenset[int]:
    """Return what both directions of a session have in common: the settings of its ends."""
    return frozenset((id(session.sends), id(session.takes)))


def _order(hop: NextHop) -> tuple[int, str]:
    address = hop.address or ""
    number = 0 if address == UNNUMBERED else int(ipaddress.ip_address(address))
    return number, hop.interface or ""
