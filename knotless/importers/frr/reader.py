"""Files of FRR: ``frr.conf``, ``show running-config``, those of single daemons, and ``daemons``.

Statements that change which routes there are and are not followed are ``unclear``; those without
such an effect are listed in :mod:`.without_effect`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind
from knotless.importers.frr import without_effect
from knotless.importers.frr.configuration import (
    FAMILIES,
    IPV4,
    IPV6,
    MAX_MED,
    FrrConfiguration,
    MapEntry,
    NeighbourSettings,
    PrefixRule,
    StaticRoute,
)
from knotless.importers.frr.without_effect import is_without_effect
from knotless.importers.prefixes import prefix_of

_MARKS = re.compile(
    r"^(?:frr version |frr defaults |service integrated-vtysh-config$"
    r"|bgpd=(?:yes|no)$|! template: (?:bgpd|zebra|staticd|common)/)",
    re.MULTILINE,
)
"""What FRR itself, or SONiC's templates for it, write."""
_NO_JSON = re.compile(r"\A(?![{\[])")
_FILES = re.compile(r"(?:frr|zebra|bgpd|staticd|ospfd|ospf6d|isisd|pimd|bfdd|vtysh)\.conf")
_SECTIONS = ("router", "route-map", "interface")
_KEPT = {"no-export", "no-advertise", "local-AS", "65535:65281", "65535:65282", "65535:65283"}
"""Communities with which a route is not announced over external sessions (RFC 1997)."""
_DROPS = ("Null0", "blackhole", "reject")
_STATIC_OPTIONS = frozenset(
    ["tag", "label", "table", "vrf", "nexthop-vrf", "onlink", "color", "bfd", "segments"]
)
"""What may follow the next hop of a static route, beside its distance."""
_DAEMON = re.compile(r"(\w+)=(.*)")
"""A line of the file ``daemons``, which says what is started."""
_PROTOCOLS = {"ospf": "OSPF", "ospf6": "OSPF", "isis": "IS-IS"}


class _Reader:
    def __init__(self) -> None:
        self.read = self._speaker = FrrConfiguration()
        self._section: Callable[[list[str], str], None] = self._top
        self._family = IPV4
        self._interface = self._vrf = ""
        self._entry = MapEntry(permit=False)

    def line(self, text: str) -> None:
        words = text.split()
        starts_a_section = not text[0].isspace() or words[0] in _SECTIONS
        if starts_a_section and words[0] not in ("neighbor", "address-family"):
            self._section = self._top
        self._section(words, text)

    def _top(self, words: list[str], text: str) -> None:
        match words:
            case ["hostname", name, *_]:
                self.read.host = name
            case ["frr", "version", version, *_]:
                numbers = re.match(r"\d+(?:\.\d+)*", version)
                self.read.version = tuple(map(int, numbers[0].split("."))) if numbers else ()
            case ["frr", "defaults", profile]:
                self.read.profile = profile
            case ["interface", name] | ["interface", name, "vrf", _]:
                self._interface, self._section = name, self._of_interface
                if len(words) > 2:
                    self._put_in_vrf(words[3])
            case ["router", "bgp", number]:
                self._start_bgp(number, self.read)
            case ["router", "bgp", number, "vrf", name]:
                self._start_bgp(number, self.read.vrfs.setdefault(name, FrrConfiguration()))
            case ["router", protocol, *_]:
                self.read.protocols[_PROTOCOLS.get(protocol, protocol)] = None
                self._section = self._skipped
            case ["route-map", name, "permit" | "deny" as verdict, number]:
                self._entry = MapEntry(verdict == "permit")
                self.read.route_maps.setdefault(name, {})[number_of(number)] = self._entry
                self._section = self._of_map
            case ["ip" | "ipv6" as version, "prefix-list", name, *rest]:
                self._prefix_list(IPV4 if version == "ip" else IPV6, name, rest, text)
            case ["vrf", name]:
                self._vrf, self._section = name, self._of_vrf
            case ["ip" | "ipv6", "route", prefix, *rest] if rest:
                self._route(self.read.static, prefix, rest, text)
            case [word, *_] if word in without_effect.SECTIONS:
                self._section = self._skipped
            case ["no", "ip" | "ipv6", "forwarding", *_]:
                self._unclear(text)
            case [word, *_] if line := _DAEMON.match(word):
                if line[1] == "frr_profile" or (line[1] == "bgpd" and line[2] != "yes"):
                    self._unclear(f"{text.strip()} of the file daemons")
            case _:
                self._unless_without_effect(without_effect.TOP, words, text)

    def _start_bgp(self, number: str, speaker: FrrConfiguration) -> None:
        asn = number_of(number)
        if speaker.asn not in (None, asn):
            raise RuleError("router bgp: two numbers of an autonomous system")
        speaker.asn, self._speaker = asn, speaker
        self.read.daemons.add("bgpd")
        self._family, self._section = "both", self._of_bgp

    def _put_in_vrf(self, name: str) -> None:
        self.read.vrf_of[self._interface] = name
        self.read.daemons.add("zebra")

    def _of_vrf(self, words: list[str], text: str) -> None:
        match words:
            case ["ip" | "ipv6", "route", prefix, *rest] if rest:
                routes = self.read.vrf_static.setdefault(self._vrf, [])
                self._route(routes, prefix, rest, text)
            case ["exit" | "exit-vrf"]:
                self._section = self._top
            case _:
                self._unclear(text)

    def _route(self, routes: list[StaticRoute], prefix: str, words: list[str], text: str) -> None:
        if "/" not in prefix and len(words) > 1 and _is_address(words[0]):
            prefix, words = f"{prefix}/{words[0]}", words[1:]
        gateway = interface = None
        tag, distance = 0, 1
        match words:
            case [hop, *rest] if hop in _DROPS:
                pass
            case [hop, port, *rest] if _is_address(hop) and not _is_option(port):
                gateway, interface = hop, port
            case [hop, *rest]:
                gateway, interface = (hop, None) if _is_address(hop) else (None, hop)
        while rest:
            match rest:
                case ["tag", number, *rest]:
                    tag = number_of(number)
                case [number, *rest] if number.isdecimal():
                    distance = number_of(number)
                case _:
                    self._unclear(text)
                    return
        self.read.daemons.add("staticd")
        routes.append(StaticRoute(prefix_of(prefix).text, gateway, interface, distance, tag))

    def _skipped(self, words: list[str], text: str) -> None:
        """Statements of a section that is not followed as a whole."""

    def _of_interface(self, words: list[str], text: str) -> None:
        match words:
            case ["shutdown"]:
                self.read.closed.add(self._interface)
                self.read.daemons.add("zebra")
            case ["ip" | "ipv6", "address", address]:
                prefix_of(address)
                self.read.addresses.append((self._interface, address))
                self.read.daemons.add("zebra")
            case ["vrf", name]:
                self._put_in_vrf(name)
            case ["no", "shutdown" | "multicast"]:
                pass
            case ["no", *_]:
                self._unclear(text)
            case _:
                self._unless_without_effect(without_effect.INTERFACE, words, text)

    def _of_bgp(self, words: list[str], text: str) -> None:
        read = self._speaker
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
            case ["no", "neighbor", name, *rest] if rest:
                self._no_neighbour(name, rest, text)
            case ["network", prefix]:
                read.networks[prefix_of(prefix).text] = None
            case ["network", prefix, "route-map", route_map]:
                read.networks[prefix_of(prefix).text] = route_map
            case ["redistribute", "connected" | "static" as kind]:
                read.redistributed[self._one_family(), kind] = None
            case ["redistribute", "connected" | "static" as kind, "route-map", route_map]:
                read.redistributed[self._one_family(), kind] = route_map
            case ["maximum-paths", number]:
                read.most_paths[self._one_family()] = number_of(number)
            case ["bgp", "bestpath", "as-path", "multipath-relax", *_]:
                read.relaxed = True
            case ["no", "bgp", "bestpath", "as-path", "multipath-relax"]:
                read.relaxed = False
            case ["bgp", "always-compare-med"]:
                read.compares_all_med = True
            case ["no", "bgp", "always-compare-med"]:
                read.compares_all_med = False
            case ["no", "bgp", "default", "ipv4-unicast"]:
                read.activates_ipv4 = False
            case ["bgp", "default", "ipv4-unicast"]:
                read.activates_ipv4 = True
            case ["bgp", "network", "import-check"]:
                read.checks_networks = True
            case ["no", "bgp", "network", "import-check"]:
                read.checks_networks = False
            case ["bgp", "ebgp-requires-policy"]:
                read.requires_policy = True
            case ["no", "bgp", "ebgp-requires-policy"]:
                read.requires_policy = False
            case ["bgp", "suppress-fib-pending"]:
                read.waits_for_fib = True
            case ["no", "bgp", "suppress-fib-pending"]:
                read.waits_for_fib = False
            case ["bgp", "max-med", "administrative"]:
                read.max_med = MAX_MED
            case ["bgp", "max-med", "administrative", value]:
                read.max_med = number_of(value)
            case _:
                self._unless_without_effect(without_effect.BGP, words, text)

    def _one_family(self) -> str:
        return IPV4 if self._family == "both" else self._family

    def _settings(self, name: str) -> NeighbourSettings:
        return self._speaker.neighbours.setdefault(name, NeighbourSettings())

    def _no_neighbour(self, name: str, words: Sequence[str], text: str) -> None:
        settings, family = self._settings(name), self._one_family()
        match words:
            case ["activate"]:
                settings.active[family] = False
            case ["send-community"] | ["send-community", "standard" | "both" | "all"]:
                settings.silent[family] = True
            case ["shutdown" | "passive"]:
                setattr(settings, words[0], False)
            case _:
                self._unless_without_effect(without_effect.NEIGHBOUR, words, text)

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
                is_keyword = number in ("external", "internal")
                settings.remote_as = number if is_keyword else number_of(number)
            case ["shutdown"] | ["shutdown", "message", *_]:
                settings.shutdown = True
            case ["passive"]:
                settings.passive = True
            case ["password", *password]:
                settings.password = " ".join(password)
            case ["ttl-security", "hops", hops]:
                settings.ttl_security = number_of(hops)
            case ["update-source", source]:
                settings.source = source
            case ["sender-as-path-loop-detection"]:
                settings.detects_loops = True
            case ["capability", "extended-nexthop"]:
                settings.extended_next_hop = True
            case ["port", "179"]:
                pass
            case ["activate"]:
                settings.active[family] = True
            case ["allowas-in", *rest] if rest[:1] != ["origin"]:
                settings.own_as_allowed[family] = number_of(rest[0]) if rest else 3
            case ["default-originate"]:
                settings.default_route[family] = True
            case ["route-map", route_map, "in" | "out" as direction]:
                settings.maps[family, direction] = route_map
            case ["prefix-list", prefix_list, "in" | "out" as direction]:
                settings.lists[family, direction] = prefix_list
            case ["maximum-prefix", _, *rest] if rest[-1:] == ["warning-only"]:
                pass
            case ["maximum-prefix", number, *percent] if all(map(str.isdecimal, percent)):
                settings.limits[family] = number_of(number)
            case ["send-community"] | ["send-community", "standard" | "both" | "all"]:
                settings.silent[family] = False
            case ["bfd", *rest] if "strict" in rest:
                self._unclear(text)
            case _:
                self._unless_without_effect(without_effect.NEIGHBOUR, words, text)

    def _of_map(self, words: list[str], _: str) -> None:
        entry = self._entry
        match words:
            case ["match", "ip" | "ipv6" as version, "address", "prefix-list", name]:
                entry.lists.append((IPV4 if version == "ip" else IPV6, name))
            case ["match", "interface", name]:
                entry.interfaces.append(name)
            case ["match", "tag", tag]:
                entry.tags.append(number_of(tag))
            case ["match", "ip" | "ipv6", "address", "prefix-len", length]:
                entry.of_zebra.append(("length", length))
            case ["match", "source-protocol", protocol]:
                entry.of_zebra.append(("protocol", protocol))
            case ["set", "as-path", "prepend", *numbers] if numbers[:1] != ["last-as"]:
                entry.prepend += map(number_of, numbers)
            case ["set", "metric", number] if number.isdecimal():
                entry.metric = number_of(number)
            case ["set", "local-preference", number] if number.isdecimal():
                entry.preference = number_of(number)
            case ["set", "community", *communities] if all(map(_is_plain, communities)):
                keeps = bool(_KEPT.intersection(communities))
                if keeps or communities[-1:] != ["additive"]:
                    entry.keeps = keeps
            case ["on-match", "next"]:
                entry.goto = 0
            case ["on-match", "goto", number] | ["continue", number]:
                entry.goto = number_of(number)
            case ["continue"]:
                entry.goto = 0
            case ["no", *_]:
                entry.unclear.append(" ".join(words))
            case _:
                if not is_without_effect(without_effect.MAP, words):
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

    def _unless_without_effect(
        self, table: without_effect.Statements, words: Sequence[str], text: str
    ) -> None:
        if not is_without_effect(table, words):
            self._unclear(text)

    def _unclear(self, text: str) -> None:
        self.read.unclear.append(" ".join(text.split())[:100])


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_option(word: str) -> bool:
    return word.isdecimal() or word in _STATIC_OPTIONS


def _is_plain(community: str) -> bool:
    """Tell whether what a community does is known: nothing, or that a route goes no further."""
    high, colon, _ = community.partition(":")
    if community in _KEPT or community in ("additive", "none"):
        return True
    return bool(colon) and high.isdecimal() and 0 < int(high) < 0xFFFF


def number_of(text: str) -> int:
    """Return a number; that of an autonomous system may be written ``1.10`` (RFC 5396).

    Raises RuleError.
    """
    high, dot, low = text.partition(".")
    parts = [high, low] if dot else [high]
    if not all(part.isascii() and part.isdecimal() and len(part) <= 10 for part in parts):
        raise RuleError(f"{text[:60]!r} is not a number")
    return int(high) << 16 | int(low) if dot else int(high)


def _fits(content: Content) -> bool:
    return bool(_MARKS.search(content.text) or _FILES.fullmatch(content.name))


def read_configuration(content: Content) -> FrrConfiguration:
    """Return what a file says; a line that is not understood is unclear, with its number."""
    reader = _Reader()
    for number, line in enumerate(content.text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith(("!", "#")):
            try:
                reader.line(line)
            except RuleError as error:
                text = " ".join(line.split())[:100]
                reader.read.unclear.append(f"line {number}, {text}: {error}")
    return reader.read


KIND = FileKind("FRR configuration", "routers", _NO_JSON, read_configuration, _fits)
