"""The configuration of FRR: interfaces, static routes, BGP, route maps and prefix lists.

See the FRR User Guide, chapters Basic Setup, Static, BGP, Route Maps and Filtering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from knotless.base.errors import RuleError
from knotless.importers.prefixes import Prefix

IPV4, IPV6 = "ipv4", "ipv6"
FAMILIES = (IPV4, IPV6)
BGP_DISTANCE = 20
"""The distance of external routes: static ones that are nearer count before them."""
MAX_MED = 4294967294
"""The metric of ``bgp max-med`` without a number."""
_TRADITIONAL_SINCE = (7, 4)
"""The version since which the profile *traditional* checks networks and requires policies."""


def family_of(prefix: str) -> str:
    """Return the address family of an address or a prefix."""
    return IPV6 if ":" in prefix else IPV4


@dataclass(frozen=True)
class StaticRoute:
    """A next hop of a static route; neither gateway nor interface: it drops."""

    prefix: str
    gateway: str | None = None
    interface: str | None = None
    distance: int = 1
    tag: int = 0

    @property
    def drops(self) -> bool:
        """Whether packets are dropped: ``blackhole``, ``reject``, ``Null0``."""
        return self.gateway is None and self.interface is None


@dataclass(frozen=True)
class PrefixRule:
    """A line of a prefix list: prefixes in ``prefix`` of a length from ``least`` to ``most``."""

    permit: bool
    prefix: Prefix
    least: int
    most: int


@dataclass
class MapEntry:
    """An entry of a route map: what a route must match, and what is set.

    ``lists`` are the prefix lists that must permit the prefix, ``interfaces`` and ``tags`` what a
    redistributed route must have. ``of_zebra`` are matches that bgpd of FRR 8 does not know, and
    does without: the length of the prefix, or the protocol. ``prepend`` are the AS numbers that
    are put in front of the path. ``keeps`` is whether the route is announced no further (RFC 1997);
    None leaves it as it is. ``goto`` is the sequence number of the entry that follows, 0 for the
    next one, or None: the map ends here. ``unclear`` are statements that are not followed.
    """

    permit: bool
    lists: list[tuple[str, str]] = field(default_factory=list)
    interfaces: list[str] = field(default_factory=list)
    tags: list[int] = field(default_factory=list)
    of_zebra: list[tuple[str, str]] = field(default_factory=list)
    prepend: list[int] = field(default_factory=list)
    metric: int | None = None
    preference: int | None = None
    keeps: bool | None = None
    goto: int | None = None
    unclear: list[str] = field(default_factory=list)


@dataclass
class NeighbourSettings:
    """The configuration of a neighbour or a peer group; None: not set.

    ``remote_as`` is a number, or ``external`` or ``internal``. ``maps`` and ``lists`` are route
    maps and prefix lists by (address family, ``in`` or ``out``), ``limits`` the most prefixes that
    are accepted. ``silent`` are the families without communities.
    """

    group: str | None = None
    is_group: bool = False
    interface: bool = False
    remote_as: int | str | None = None
    shutdown: bool | None = None
    passive: bool | None = None
    password: str | None = None
    ttl_security: int | None = None
    source: str | None = None
    detects_loops: bool | None = None
    extended_next_hop: bool | None = None
    active: dict[str, bool] = field(default_factory=dict)
    own_as_allowed: dict[str, int] = field(default_factory=dict)
    default_route: dict[str, bool] = field(default_factory=dict)
    maps: dict[tuple[str, str], str] = field(default_factory=dict)
    lists: dict[tuple[str, str], str] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    silent: dict[str, bool] = field(default_factory=dict)

    def within(self, group: NeighbourSettings) -> NeighbourSettings:
        """Return the settings with what is inherited from a group: what is not set here."""
        inherited: dict[str, Any] = {}
        for one in fields(self):
            own, of_group = getattr(self, one.name), getattr(group, one.name)
            if isinstance(own, dict):
                inherited[one.name] = {**of_group, **own}
            elif own is None and one.name != "group":
                inherited[one.name] = of_group
        return replace(self, **inherited)


@dataclass
class FrrConfiguration:
    """A configuration. ``networks`` and ``redistributed`` have the route map of each, or None.

    ``networks`` are by prefix, ``redistributed`` by address family and source. ``closed`` are the
    interfaces that are shut down. ``checks_networks`` and ``requires_policy`` are what the file
    says, None if its profile and version decide. ``max_med`` is the metric of all announcements.
    ``waits_for_fib`` is whether only routes are announced that have been installed. ``daemons`` are
    those whose statements were read. ``vrf_of`` is the VRF of each interface that is not in the
    default one, ``vrfs`` what BGP is told in each, ``vrf_static`` their static routes. ``unclear``
    are statements that are not followed.
    """

    host: str = ""
    version: tuple[int, ...] = ()
    profile: str = "traditional"
    daemons: set[str] = field(default_factory=set)
    asn: int | None = None
    relaxed: bool = False
    compares_all_med: bool = False
    activates_ipv4: bool = True
    checks_networks: bool | None = None
    requires_policy: bool | None = None
    max_med: int | None = None
    waits_for_fib: bool = False
    addresses: list[tuple[str, str]] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    neighbours: dict[str, NeighbourSettings] = field(default_factory=dict)
    networks: dict[str, str | None] = field(default_factory=dict)
    redistributed: dict[tuple[str, str], str | None] = field(default_factory=dict)
    most_paths: dict[str, int] = field(default_factory=dict)
    static: list[StaticRoute] = field(default_factory=list)
    prefix_lists: dict[tuple[str, str], list[tuple[int, PrefixRule]]] = field(default_factory=dict)
    route_maps: dict[str, dict[int, MapEntry]] = field(default_factory=dict)
    protocols: dict[str, None] = field(default_factory=dict)
    vrf_of: dict[str, str] = field(default_factory=dict)
    vrfs: dict[str, FrrConfiguration] = field(default_factory=dict)
    vrf_static: dict[str, list[StaticRoute]] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)

    @property
    def _is_recent(self) -> bool:
        """Whether the defaults of FRR 7.4 hold; without a version, those of a recent FRR do."""
        return not self.version or self.version >= _TRADITIONAL_SINCE

    @property
    def network_check(self) -> bool:
        """Whether networks are announced only if they are in the router's own table."""
        if self.checks_networks is not None:
            return self.checks_networks
        return self._is_recent or self.profile == "datacenter"

    @property
    def policy_required(self) -> bool:
        """Whether external sessions without policies carry nothing (RFC 8212)."""
        if self.requires_policy is not None:
            return self.requires_policy
        return self._is_recent and self.profile != "datacenter"

    @property
    def interfaces(self) -> set[str]:
        """The interfaces that statements name."""
        speakers = (self, *self.vrfs.values())
        return {
            *(*self.vrf_of, *self.closed, *(interface for interface, _ in self.addresses)),
            *(n for one in speakers for n, has in one.neighbours.items() if has.interface),
        }

    def of_vrf(self, vrf: str | None) -> FrrConfiguration:
        """Return what the router does in a VRF (None: the default one): its own interfaces."""
        own = self if vrf is None else self.vrfs.get(vrf, FrrConfiguration())
        return replace(
            own,
            host=self.host,
            version=self.version,
            profile=self.profile,
            daemons=self.daemons,
            addresses=[one for one in self.addresses if self.vrf_of.get(one[0]) == vrf],
            closed={one for one in self.closed if self.vrf_of.get(one) == vrf},
            static=self.static if vrf is None else self.vrf_static.get(vrf, []),
            prefix_lists=self.prefix_lists,
            route_maps=self.route_maps,
        )


_BY_NAME = ("prefix_lists", "route_maps")
_OF_DAEMON = {
    "bgpd": (
        *("version", "profile", "asn", "relaxed", "compares_all_med", "activates_ipv4"),
        *("checks_networks", "requires_policy", "max_med", "waits_for_fib"),
        *("neighbours", "networks", "redistributed", "most_paths", "vrfs"),
    ),
    "zebra": ("addresses", "closed", "vrf_of"),
    "staticd": ("static", "vrf_static"),
}
"""The facts that only the statements of one daemon give."""


def merged(files: Sequence[tuple[str, FrrConfiguration]]) -> FrrConfiguration:
    """Return the one configuration that files, each with its name, have together.

    Each daemon may have a file of its own, and two files may say the same.

    Raises
    ------
    RuleError
        Two files differ in what one daemon or list is told.

    """
    (name, whole), *others = files
    whole = replace(whole, daemons={*whole.daemons})
    for other_name, other in others:
        names = f"{name} and {other_name}"
        if whole.host and other.host and whole.host != other.host:
            raise RuleError(
                f"{names}: two routers, {whole.host} and {other.host}, in one configuration"
            )
        facts: dict[str, Any] = {"host": other.host if whole.host == "" else whole.host}
        for daemon, of_daemon in _OF_DAEMON.items():
            if daemon not in other.daemons:
                continue
            values = {fact: getattr(other, fact) for fact in of_daemon}
            if daemon in whole.daemons and any(
                getattr(whole, fact) != value for fact, value in values.items()
            ):
                raise RuleError(f"{names} tell {daemon} different things: keep the one in use")
            facts |= values
        for kind in _BY_NAME:
            mine, theirs = getattr(whole, kind), getattr(other, kind)
            different = [key for key in mine.keys() & theirs.keys() if mine[key] != theirs[key]]
            if different:
                raise RuleError(
                    f"{names} have different lists or maps {different[0]!r}: keep the one in use"
                )
            facts[kind] = {**mine, **theirs}
        facts["daemons"] = whole.daemons | other.daemons
        facts["protocols"] = {**whole.protocols, **other.protocols}
        facts["unclear"] = [*dict.fromkeys([*whole.unclear, *other.unclear])]
        whole = replace(whole, **facts)
        name = names
    return whole
