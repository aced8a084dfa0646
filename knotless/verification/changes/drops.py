"""Admission of single pairs: frames that are dropped there, or still take the old routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from knotless.base.errors import PlanError, RuleError
from knotless.forwarding.openflow.rules import (
    ADMISSION,
    COOKIE,
    FabricRules,
    Field,
    Rule,
    SwitchRules,
    match_order,
)
from knotless.forwarding.openflow.unused_addresses import ALL_BITS, masks_of
from knotless.forwarding.openflow.vlan_generations import admits_untagged
from knotless.routing.multicast import MulticastGroup
from knotless.topologies.fabric import Fabric, Host
from knotless.topologies.numbering import mac_value
from knotless.verification.changes.change import EVERYTHING, Pair
from knotless.verification.changes.proof import ALL

PRIORITY = 0xFFFF
"""Of the rules that drop frames: above all others."""
_GROUP_BIT = 1 << 40
_ROOM = 100
"""Priorities above the admission of hosts, below those of addresses that no host may use."""


def dropping(
    rules: FabricRules,
    fabric: Fabric,
    pairs: Collection[Pair],
    groups: Collection[MulticastGroup] = (),
) -> FabricRules:
    """Return ``rules`` and rules that drop the frames of ``pairs`` at the port of their source.

    So are frames for unused addresses, which compiled rules forward like those for a destination.
    The packet counters of these rules count what is dropped.

    Raises
    ------
    PlanError
        A pair names no host or group.

    """
    if not pairs:
        return rules
    destinations = _Destinations(fabric, groups)
    added: defaultdict[str, list[Rule]] = defaultdict(list)
    for source, destination in pairs:
        host, match = destinations.host(source), []
        if destination != EVERYTHING:
            match.append(destinations.field(destination))
        match.append(Field("in_port", host.port))
        added[host.switch].append(Rule(ADMISSION, PRIORITY, match_order(match), cookie=COOKIE))
    return _joined(rules, added)


def dropped_rules(rules: FabricRules) -> int:
    """Return how many rules of :func:`dropping` switches hold: one for each pair."""
    return sum(
        rule.table == ADMISSION and rule.priority == PRIORITY
        for of_switch in rules.values()
        for rule in of_switch.rules
    )


def keeping(
    rules: FabricRules,
    old: FabricRules,
    fabric: Fabric,
    pairs: Collection[Pair],
    groups: Collection[MulticastGroup] = (),
) -> FabricRules:
    """Return ``rules`` and rules that admit the frames of ``pairs`` as the ``old`` rules do.

    Raises
    ------
    PlanError
        A pair names no host or group.
    RuleError
        A switch has too many admission rules for a host.

    """
    destinations = _Destinations(fabric, groups)
    added: defaultdict[str, list[Rule]] = defaultdict(list)
    for source, destination in pairs:
        host, wanted = destinations.host(source), destinations.field(destination)
        now, before = (each.get(host.switch, SwitchRules(())) for each in (rules, old))
        at_switch = [rule for rule in now.rules if admits_untagged(rule)]
        above = 1 + max((rule.priority for rule in at_switch), default=0)
        of_host = [
            rule
            for rule in before.rules
            if admits_untagged(rule) and Field("in_port", host.port) in rule.match
        ]
        lowest = min((rule.priority for rule in of_host), default=0)
        for rule in of_host:
            if rule.priority - lowest >= _ROOM:
                raise RuleError(f"{host.switch}: too many kinds of admission rules for {source}")
            if (match := _narrowed(rule.match, wanted)) is not None:
                priority = above + rule.priority - lowest
                added[host.switch].append(rule._replace(priority=priority, match=match))
    return _joined(rules, added)


def _narrowed(match: Iterable[Field], wanted: Field) -> tuple[Field, ...] | None:
    """Return a match with one more condition on a field; None if nothing matches both."""
    fields = {field.name: field for field in match}
    has = fields.get(wanted.name, Field(wanted.name, 0, 0))
    masks = [ALL_BITS if field.mask is None else field.mask for field in (has, wanted)]
    if (has.value ^ wanted.value) & masks[0] & masks[1]:
        return None
    mask = masks[0] | masks[1]
    value = has.value & masks[0] | wanted.value & masks[1]
    fields[wanted.name] = Field(wanted.name, value, None if mask == ALL_BITS else mask)
    return match_order(fields.values())


class _Destinations:
    """The addresses of a fabric's hosts and groups; an unknown name raises PlanError."""

    def __init__(self, fabric: Fabric, groups: Collection[MulticastGroup]) -> None:
        self._fabric = fabric
        self._addresses: Mapping[str, int] = {
            **{f"multicast:{group.number}": group.address for group in groups},
            **{host.name: mac_value(host.mac) for host in fabric.hosts},
        }
        self._masks = masks_of(mac_value(host.mac) for host in fabric.hosts)

    def host(self, source: str) -> Host:
        if source not in self._fabric.host_index:
            raise PlanError(f"{self._fabric.name} has no host {source!r}")
        return self._fabric.hosts[self._fabric.host_index[source]]

    def field(self, destination: str) -> Field:
        """Return what matches frames to a host, or to a group; all groups together: ``all``.

        Frames for unused addresses that belong to the host are matched as well.
        """
        if destination == ALL:
            return Field("eth_dst", _GROUP_BIT, _GROUP_BIT)
        if destination not in self._addresses:
            raise PlanError(f"{self._fabric.name} has no host or group {destination!r}")
        value = self._addresses[destination]
        mask = self._masks.get(value, ALL_BITS)
        return Field("eth_dst", value & mask, None if mask == ALL_BITS else mask)


def _joined(rules: FabricRules, added: Mapping[str, list[Rule]]) -> FabricRules:
    nothing = SwitchRules(())
    return {
        name: _with(rules.get(name, nothing), added.get(name, []))
        for name in dict.fromkeys([*rules, *added])
    }


def _with(rules: SwitchRules, added: list[Rule]) -> SwitchRules:
    if not added:
        return rules
    merged = sorted([*rules.rules, *added], key=lambda rule: rule.order)
    return SwitchRules(tuple(merged), rules.groups)
