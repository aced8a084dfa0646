"""One flow table, indexed so that few rules are left to try for a frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from routing.rules import Field, Rule

VLAN_PRESENT = 0x1000
FOLLOWED = frozenset(
    {"in_port", "metadata", "eth_dst", "eth_src", "eth_type", "vlan_vid", "vlan_pcp"}
)
"""The fields that rules may match here."""
_ALL_48 = (1 << 48) - 1

Class = tuple[int, ...]
"""What some rules can tell of an address: equal for addresses that they treat alike."""
_Ordered = list[tuple[int, Rule]]
"""Rules with their place in the order in which the table tries them."""


class Frame(NamedTuple):
    """The headers of a frame. ``tags`` are its 802.1Q tags, outermost first, 16 bits each."""

    eth_dst: int
    eth_src: int
    eth_type: int
    tags: tuple[int, ...] = ()

    @property
    def type_seen(self) -> int:
        """What ``eth_type`` matches: to Open vSwitch, unless told, a second tag is payload."""
        return 0x8100 if len(self.tags) > 1 else self.eth_type

    @property
    def priority(self) -> int:
        """The priority that flow control sees: that of the outer tag, or 0."""
        return self.tags[0] >> 13 if self.tags else 0


class _Index:
    """Rules by one address field."""

    def __init__(self, rules: Iterable[tuple[int, Rule]], name: str) -> None:
        self._general: _Ordered = []
        self._by_mask: dict[int, dict[int, _Ordered]] = {}
        for order, rule in rules:
            field = next((field for field in rule.match if field.name == name), None)
            if field is None:
                self._general.append((order, rule))
            else:
                mask = _ALL_48 if field.mask is None else field.mask
                of_mask = self._by_mask.setdefault(mask, {})
                of_mask.setdefault(field.value & mask, []).append((order, rule))

    def __bool__(self) -> bool:
        """Whether any rule matches this field."""
        return bool(self._by_mask)

    def class_of(self, address: int) -> Class:
        """Return what the rules can tell of an address."""
        return tuple(
            address & mask if address & mask in values else -1
            for mask, values in self._by_mask.items()
        )

    def matching(self, seen: Class) -> _Ordered:
        """Return the rules that match the addresses of a class, in order."""
        found = list(self._general)
        for value, values in zip(seen, self._by_mask.values(), strict=True):
            found += values.get(value, ())
        return sorted(found, key=lambda entry: entry[0])


class FlowTable:
    """The rules of one table; all fields that they match are of :data:`FOLLOWED`."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        ordered = sorted(rules, key=lambda rule: -rule.priority)
        self._destinations = _Index(enumerate(ordered), "eth_dst")
        self._to: dict[Class, tuple[_Ordered, bool]] = {}
        self._sources: dict[tuple[Class, int], _Index] = {}
        self._known: dict[tuple[Class, int, int, int, int, int], Rule | None] = {}

    def class_of(self, eth_dst: int) -> Class:
        """Return what this table can tell of a destination."""
        return self._destinations.class_of(eth_dst)

    def lookup(self, to: Class, in_port: int, metadata: int, frame: Frame) -> Rule | None:
        """Return the rule that a frame to class ``to`` meets."""
        rules, by_port = self._narrowed(to)
        port = in_port if by_port else 0
        sources = self._sources.get((to, port))
        if sources is None:
            fit = ((order, rule) for order, rule in rules if _fits_port(rule, in_port))
            sources = self._sources[to, port] = _Index(fit, "eth_src")
        source = frame.eth_src if sources else -1
        tag = frame.tags[0] if frame.tags else -1
        key = (to, port, source, metadata, tag, frame.type_seen)
        if key not in self._known:
            candidates = sources.matching(sources.class_of(frame.eth_src))
            self._known[key] = next(
                (rule for _, rule in candidates if _matches(rule, metadata, frame)), None
            )
        return self._known[key]

    def _narrowed(self, to: Class) -> tuple[_Ordered, bool]:
        """Return the rules for a class of destinations, and whether any matches the in port."""
        known = self._to.get(to)
        if known is None:
            rules = self._destinations.matching(to)
            by_port = any(field.name == "in_port" for _, rule in rules for field in rule.match)
            known = self._to[to] = (rules, by_port)
        return known


def _fits_port(rule: Rule, in_port: int) -> bool:
    return all(_fits(field, in_port) for field in rule.match if field.name == "in_port")


def _matches(rule: Rule, metadata: int, frame: Frame) -> bool:
    """Whether the fields match that no index has sorted out yet."""
    for field in rule.match:
        if field.name == "metadata":
            fits = _fits(field, metadata)
        elif field.name == "vlan_vid":
            fits = _fits(field, VLAN_PRESENT | frame.tags[0] & 0xFFF if frame.tags else 0)
        elif field.name == "vlan_pcp":
            fits = bool(frame.tags) and _fits(field, frame.tags[0] >> 13)
        elif field.name == "eth_type":
            fits = _fits(field, frame.type_seen)
        else:
            continue
        if not fits:
            return False
    return True


def _fits(field: Field, value: int) -> bool:
    if field.mask is None:
        return value == field.value
    return (value ^ field.value) & field.mask == 0
