"""The configuration of FRR (``frr.conf``, ``show running-config``): BGP and static routes.

Statements that change which routes there are and are not followed are ``unclear``. See the FRR
User Guide, chapters BGP, Route Maps and Filtering.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind
from knotless.importers.prefixes import Prefix, prefix_of

IPV4, IPV6 = "ipv4", "ipv6"
FAMILIES = (IPV4, IPV6)
_IS_CONFIGURATION = re.compile(r"^(?:router bgp |frr version |frr defaults )", re.MULTILINE)
_IGNORED_OF_NEIGHBOUR = {
    *("advertisement-interval", "bfd", "capability", "description", "disable-connected-check"),
    *("ebgp-multihop", "graceful-restart", "maximum-prefix", "next-hop-self", "passive"),
    *("password", "port", "send-community", "soft-reconfiguration", "strict-capability-match"),
    *("timers", "ttl-security", "update-source", "dont-capability-negotiate"),
    "sender-as-path-loop-detection",
}
_IGNORED_OF_BGP = {
    *("bgp router-id", "bgp log-neighbor-changes", "bgp graceful-restart", "bgp network"),
    *("bgp max-med", "bgp ebgp-requires-policy", "bgp suppress-duplicates", "timers bgp"),
    *("bgp deterministic-med", "bgp bestpath compare-routerid", "bgp suppress-fib-pending"),
    *("bgp cluster-id", "bgp update-delay", "update-delay", "coalesce-time", "bgp fast-external"),
    *("bgp session-dscp", "bgp minimum-holdtime"),
    *("maximum-paths ibgp", "bgp default show-hostname", "bgp conditional-advertisement"),
}
_BGP_DISTANCE = 20
"""The distance of external routes: static ones that are nearer count before them."""


def family_of(prefix: str) -> str:
    """Return the address family of an address or a prefix."""
    return IPV6 if ":" in prefix else IPV4


@dataclass(frozen=True)
class PrefixRule:
    """A line of a prefix list: prefixes in ``prefix`` of a length from ``least`` to ``most``."""

    permit: bool
    prefix: Prefix
    least: int
    most: int


@dataclass
class MapEntry:
    """An entry of a route map. ``lists`` are the prefix lists that must permit the prefix.

    ``prepend`` is how many AS numbers are put in front of the path; ``goto`` is the sequence
    number of the entry that follows, 0 for the next one, or None: the map ends here. ``unclear``
    are statements that are not followed.
    """

    permit: bool
    lists: list[tuple[str, str]] = field(default_factory=list)
    prepend: int = 0
    goto: int | None = None
    unclear: list[str] = field(default_factory=list)


@dataclass
class NeighbourSettings:
    """What is configured for a neighbour or a peer group; None: not set.

    ``remote_as`` is a number, or ``external`` or ``internal``. ``maps`` and ``lists`` are route
    maps and prefix lists by (address family, ``in`` or ``out``).
    """

    group: str | None = None
    is_group: bool = False
    interface: bool = False
    remote_as: int | str | None = None
    shutdown: bool = False
    active: dict[str, bool] = field(default_factory=dict)
    own_as_allowed: dict[str, int] = field(default_factory=dict)
    default_route: set[str] = field(default_factory=set)
    maps: dict[tuple[str, str], str] = field(default_factory=dict)
    lists: dict[tuple[str, str], str] = field(default_factory=dict)


@dataclass
class FrrConfiguration:
    """What was read. ``networks`` and ``redistributed`` have the route map of each, or None.

    ``networks`` are by prefix, ``redistributed`` by address family and source. ``closed`` are the
    interfaces that are shut down.
    """

    host: str = ""
    asn: int | None = None
    relaxed: bool = False
    activates_ipv4: bool = True
    addresses: list[tuple[str, str]] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    neighbours: dict[str, NeighbourSettings] = field(default_factory=dict)
    networks: dict[str, str | None] = field(default_factory=dict)
    redistributed: dict[tuple[str, str], str | None] = field(default_factory=dict)
    most_paths: dict[str, int] = field(default_factory=dict)
    static: list[tuple[str, str]] = field(default_factory=list)
    prefix_lists: dict[tuple[str, str], list[tuple[int, PrefixRule]]] = field(default_factory=dict)
    route_maps: dict[str, dict[int, MapEntry]] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)


class _Reader:
    def __init__(self) -> None:
        self.read = FrrConfiguration()
        self._section: Callable[[list[str], str], None] = self._top
        self._family = IPV4
        self._interface = ""
        self._entry: MapEntry | None = None

    def line(self, text: str) -> None:
        words = text.split()
        starts_a_section = not text[0].isspace() or words[0] in ("router", "route-map", "interface")
        if starts_a_section and words[0] not in ("neighbor", "address-family"):
            self._section = self._top
        self._section(words, text)

    def _top(self, words: list[str], text: str) -> None:
        match words:
            case ["hostname", name, *_]:
                self.read.host = name
            case ["interface", name, *_]:
                self._interface, self._section = name, self._of_interface
            case ["router", "bgp", number]:
                if self.read.asn not in (None, number_of(number)):
                    raise RuleError("router bgp: two numbers of an autonomous system")
                self.read.asn = number_of(number)
                self._family, self._section = "both", self._of_bgp
            case ["router", *_] if words[1:2] != ["bgp"] or "vrf" in words:
                self._unclear(text)
                self._section = self._skipped
            case ["route-map", name, verdict, number]:
                self._entry = MapEntry(verdict == "permit")
                self.read.route_maps.setdefault(name, {})[number_of(number)] = self._entry
                self._section = self._of_map
            case ["ip" | "ipv6" as version, "prefix-list", name, *rest]:
                self._prefix_list(IPV4 if version == "ip" else IPV6, name, rest, text)
            case ["vrf", *_]:
                self._section = self._skipped
            case ["ip" | "ipv6", "route", prefix, hop, *rest]:
                if not rest or (len(rest) == 1 and number_of(rest[0]) < _BGP_DISTANCE):
                    self.read.static.append((prefix_of(prefix).text, hop))
                else:
                    self._unclear(text)
            case _:
                pass

    def _skipped(self, words: list[str], text: str) -> None:
        """Statements of a section that is not followed as a whole."""

    def _of_interface(self, words: list[str], text: str) -> None:
        match words:
            case ["shutdown"]:
                self.read.closed.add(self._interface)
            case ["vrf", *_]:
                self._unclear(text)
            case ["ip" | "ipv6", "address", address, *_]:
                prefix_of(address)
                self.read.addresses.append((self._interface, address))
            case _:
                pass

    def _of_bgp(self, words: list[str], text: str) -> None:
        match words:
            case ["address-family", family, *kind]:
                followed = family in FAMILIES and kind in ([], ["unicast"])
                self._family = family if followed else ""
            case ["exit-address-family"]:
                self._family = "both"
            case ["exit"]:
                self._section = self._top
            case _ if not self._family:
                pass  # EVPN and others do not forward by these routes
            case ["neighbor", name, *rest] if rest:
                self._neighbour(name, rest, text)
            case ["no", "neighbor", name, "activate"]:
                self._settings(name).active[self._one_family()] = False
            case ["network", prefix]:
                self.read.networks[prefix_of(prefix).text] = None
            case ["network", prefix, "route-map", route_map]:
                self.read.networks[prefix_of(prefix).text] = route_map
            case ["redistribute", "connected" | "static" as kind]:
                self.read.redistributed[self._one_family(), kind] = None
            case ["redistribute", "connected" | "static" as kind, "route-map", route_map]:
                self.read.redistributed[self._one_family(), kind] = route_map
            case ["maximum-paths", number]:
                self.read.most_paths[self._one_family()] = number_of(number)
            case ["bgp", "bestpath", "as-path", "multipath-relax", *_]:
                self.read.relaxed = True
            case ["no", "bgp", "default", "ipv4-unicast"]:
                self.read.activates_ipv4 = False
            case ["no", *_] | ["!", *_]:
                pass
            case _:
                if not any(" ".join(words).startswith(known) for known in _IGNORED_OF_BGP):
                    self._unclear(text)

    def _one_family(self) -> str:
        return IPV4 if self._family == "both" else self._family

    def _settings(self, name: str) -> NeighbourSettings:
        return self.read.neighbours.setdefault(name, NeighbourSettings())

    def _neighbour(self, name: str, words: Sequence[str], text: str) -> None:
        settings, family = self._settings(name), self._one_family()
        match words:
            case ["peer-group"]:
                settings.is_group = True
            case ["peer-group", group]:
                settings.group = group
            case ["interface"] | ["interface", "v6only"]:
                settings.interface = True
            case ["interface", "v6only", ("remote-as" | "peer-group"), _]:
                settings.interface = True
                self._neighbour(name, words[2:], text)
            case ["interface", ("remote-as" | "peer-group"), _]:
                settings.interface = True
                self._neighbour(name, words[1:], text)
            case ["remote-as", number]:
                known = number in ("external", "internal")
                settings.remote_as = number if known else number_of(number)
            case ["shutdown", *_]:
                settings.shutdown = True
            case ["activate"]:
                settings.active[family] = True
            case ["allowas-in", *rest]:
                count = rest[0] if rest and rest[0].isdecimal() else "3"
                settings.own_as_allowed[family] = number_of(count)
            case ["default-originate"]:
                settings.default_route.add(family)
            case ["route-map", route_map, "in" | "out" as direction]:
                settings.maps[family, direction] = route_map
            case ["prefix-list", prefix_list, "in" | "out" as direction]:
                settings.lists[family, direction] = prefix_list
            case [word, *_] if word in _IGNORED_OF_NEIGHBOUR:
                pass
            case _:
                self._unclear(text)

    def _of_map(self, words: list[str], _: str) -> None:
        entry = self._entry
        if entry is None:
            return
        match words:
            case ["match", "ip" | "ipv6" as version, "address", "prefix-list", name]:
                entry.lists.append((IPV4 if version == "ip" else IPV6, name))
            case ["set", "as-path", "prepend", *numbers]:
                last = numbers[:1] == ["last-as"]
                entry.prepend += number_of(numbers[1]) if last else len(numbers)
            case ["on-match", "next"]:
                entry.goto = 0
            case ["on-match", "goto", number] | ["continue", number]:
                entry.goto = number_of(number)
            case ["continue"]:
                entry.goto = 0
            case ["description", *_] | ["exit", *_] | ["!", *_]:
                pass
            case ["set", "community" | "large-community" | "extcommunity" | "src" | "tag", *_]:
                pass  # what matches on them is unclear
            case _:
                entry.unclear.append(" ".join(words))

    def _prefix_list(self, family: str, name: str, words: list[str], text: str) -> None:
        rules = self.read.prefix_lists.setdefault((family, name), [])
        number = 5 * (len(rules) + 1)
        if words[:1] == ["seq"] and len(words) > 1:
            number, words = number_of(words[1]), words[2:]
        if words[:1] == ["description"]:
            return
        if len(words) < 2 or words[0] not in ("permit", "deny"):
            self._unclear(text)
            return
        longest = 32 if family == IPV4 else 128
        if words[1] == "any":
            words[1:2] = ["0.0.0.0/0" if family == IPV4 else "::/0", "le", str(longest)]
        prefix = prefix_of(words[1])
        length = longest - (prefix.size.bit_length() - 1)
        limits = dict(zip(words[2::2], words[3::2], strict=False))
        least = number_of(limits["ge"]) if "ge" in limits else length
        default = longest if "ge" in limits else length
        most = number_of(limits["le"]) if "le" in limits else default
        rules.append((number, PrefixRule(words[0] == "permit", prefix, least, most)))

    def _unclear(self, text: str) -> None:
        self.read.unclear.append(" ".join(text.split())[:100])


def number_of(text: str) -> int:
    """Return a number; that of an autonomous system may be written ``1.10`` (RFC 5396).

    Raises RuleError.
    """
    high, dot, low = text.partition(".")
    parts = [high, low] if dot else [high]
    if not all(part.isascii() and part.isdecimal() and len(part) <= 10 for part in parts):
        raise RuleError(f"{text[:60]!r} is not a number")
    return int(high) << 16 | int(low) if dot else int(high)


def _read(content: Content) -> FrrConfiguration:
    reader = _Reader()
    for number, line in enumerate(content.text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith(("!", "#")):
            try:
                reader.line(line)
            except RuleError as error:
                raise error.within(f"line {number}") from None
    return reader.read


KIND = FileKind(
    "FRR configuration",
    "routers",
    lambda content: content.text[:1] not in ("{", "[")
    and bool(_IS_CONFIGURATION.search(content.text)),
    _read,
)
