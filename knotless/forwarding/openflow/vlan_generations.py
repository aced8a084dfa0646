"""VLAN generations: two plans on the same switches at the same time, whose frames never mix.

A VLAN generation is a block of 1,024 VLANs; ordinary rules are in generation 0. The rules of
another generation match only VLANs of its block, have higher priorities, and end in entries that
match all of the block, so that its frames never reach rules of generation 0. So the rules of
several generations can be installed side by side, and each can be removed, without a change to the
others. Only the entries that admit untagged frames of hosts choose a generation: of several the
highest is taken.

Under PFC a generation can also have priorities of its own: ``first_priority`` is added to all of
its priorities. Then its channels do not wait for those of the other generations at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from knotless.base.errors import RuleError
from knotless.base.model_limits import PRIORITIES
from knotless.forwarding.openflow.compiled import CompiledRules
from knotless.forwarding.openflow.rules import (
    ADMISSION,
    OUTPUT,
    Action,
    FabricRules,
    Field,
    Group,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
    match_order,
)
from knotless.routing.vlans.host_tags import HostTags

VLAN_GENERATIONS = 4
VLAN_BITS = 10
"""The bits of a VLAN below those of its generation."""
NO_VLAN = Field("vlan_vid", 0, 0xFFF)
"""Frames without a VLAN: without a tag, or with one that has only a priority."""
_PRESENT = 0x1000
_GENERATION_BITS = 0xC00
_GUARD = _PRESENT | _GENERATION_BITS
_PRIORITIES = 0x4000
"""Added to the priorities of entries for each generation."""
_GROUPS = 1 << 24
"""Added to the numbers of groups for each generation."""


@dataclass(frozen=True, order=True)
class VlanGeneration:
    """A block of VLANs, and what is added to the priorities of its frames."""

    number: int = 0
    first_priority: int = 0


def vlans_of(rules: FabricRules, tags: HostTags | None = None) -> frozenset[int]:
    """Return the VLANs that switches or hosts put on frames."""
    of_hosts = {vlan for of_host in (tags or {}).values() for vlan in of_host.values()}
    return frozenset(of_hosts | _set_values(rules, "vlan_vid", 0xFFF))


def priorities_of(rules: FabricRules) -> frozenset[int]:
    """Return the priorities (PCP) that switches put on frames."""
    return frozenset(_set_values(rules, "vlan_pcp", 7))


def _set_values(rules: FabricRules, name: str, bits: int) -> set[int]:
    """Return the ``bits`` of the values to which rules and groups set the field ``name``."""
    values = set[tuple[str, int]]().union(*(switch.values_set for switch in rules.values()))
    return {value & bits for field, value in values if field == name}


def vlan_generation_of(rules: FabricRules, tags: HostTags | None = None) -> VlanGeneration:
    """Return the lowest VLAN generation that ``rules`` use, and the lowest of their priorities."""
    vlans = vlans_of(rules, tags)
    return VlanGeneration(min(vlans, default=0) >> VLAN_BITS, min(priorities_of(rules), default=0))


def vlan_generations_in(rules: FabricRules, tags: HostTags | None = None) -> frozenset[int]:
    """Return the generations of VLANs that hosts or switches put on frames, or let in."""
    numbers = {vlan >> VLAN_BITS for vlan in vlans_of(rules, tags)}
    let_in = {
        field
        for switch in rules.values()
        for rule in switch.rules
        if rule.table == ADMISSION and rule.goto is not None
        for field in rule.match
        if field.name == "vlan_vid" and field.value & _PRESENT
    }
    for field in let_in:
        bits = _GENERATION_BITS if field.mask is None else field.mask & _GENERATION_BITS
        numbers |= {
            number
            for number in range(VLAN_GENERATIONS)
            if not (number << VLAN_BITS ^ field.value) & bits
        }
    return frozenset(numbers)


def tags_in(tags: HostTags | None, generation: VlanGeneration) -> HostTags | None:
    """Return the tags of generation 0 in another VLAN generation."""
    if tags is None:
        return None
    first = generation.number << VLAN_BITS
    return {
        host: {to: first + vlan for to, vlan in of_host.items()} for host, of_host in tags.items()
    }


def rules_in(rules: FabricRules, generation: VlanGeneration) -> FabricRules:
    """Return compiled rules, which are in generation 0, in another VLAN generation.

    Raises
    ------
    RuleError
        They use too many VLANs or priorities for the generation.

    """
    if generation == VlanGeneration():
        return rules
    rules = dict(rules)  # decoded once
    if generation.number and max(vlans_of(rules), default=0) >> VLAN_BITS:
        raise RuleError(f"the rules use more than the {1 << VLAN_BITS} VLANs of a generation")
    if max(priorities_of(rules), default=0) + generation.first_priority >= PRIORITIES:
        raise RuleError(
            f"the rules use priorities above {PRIORITIES - 1 - generation.first_priority}"
        )
    return {name: _switch_in(of_switch, generation) for name, of_switch in rules.items()}


def _switch_in(rules: SwitchRules, generation: VlanGeneration) -> SwitchRules:
    moved = [copy for rule in rules.rules for copy in _rule_in(rule, generation)]
    groups = tuple(
        Group(
            group.group_id + generation.number * _GROUPS,
            tuple(_actions_in(bucket, generation) for bucket in group.buckets),
            group.watch,
            group.selects,
        )
        for group in rules.groups
    )
    return SwitchRules(tuple(sorted(moved, key=lambda rule: rule.order)), groups)


def _rule_in(rule: Rule, generation: VlanGeneration) -> Iterable[Rule]:
    """Yield the rule in the generation: once, twice for a table miss, or not if it cannot fit."""
    backup = any(field.name == "vlan_vid" and field.mask != _PRESENT for field in rule.match)
    if rule.table == OUTPUT and not backup:
        yield rule
        return
    if generation.number and rule.priority == 0:
        yield rule
        if rule.table == ADMISSION:
            return
    match = _match_in(rule, generation)
    if match is not None:
        yield Rule(
            rule.table,
            rule.priority + generation.number * _PRIORITIES,
            match,
            _actions_in(rule.actions, generation),
            *rule[4:],
        )


def _match_in(rule: Rule, generation: VlanGeneration) -> tuple[Field, ...] | None:
    fields = {field.name: field for field in rule.match}
    vlan = fields.get("vlan_vid")
    if "vlan_pcp" in fields:
        pcp = fields["vlan_pcp"]
        fields["vlan_pcp"] = pcp._replace(value=pcp.value + generation.first_priority)
    tagged = rule.table != ADMISSION or (vlan is not None and vlan.value & _PRESENT)
    if generation.number and tagged:
        value = _PRESENT if vlan is None else vlan.value
        mask = _PRESENT if vlan is None else 0x1FFF if vlan.mask is None else vlan.mask
        if value & mask & _GENERATION_BITS:
            return None
        value, mask = value & ~_GENERATION_BITS | generation.number << VLAN_BITS, mask | _GUARD
        fields["vlan_vid"] = Field("vlan_vid", value | _PRESENT, None if mask == 0x1FFF else mask)
    return match_order(fields.values())


def _actions_in(actions: tuple[Action, ...], generation: VlanGeneration) -> tuple[Action, ...]:
    def moved(action: Action) -> Action:
        match action:
            case SetField("vlan_vid", value):
                return SetField("vlan_vid", value | generation.number << VLAN_BITS)
            case SetField("vlan_pcp", value):
                return SetField("vlan_pcp", value + generation.first_priority)
            case ToGroup(number):
                return ToGroup(number + generation.number * _GROUPS)
            case _:
                return action

    return tuple(map(moved, actions))


def admits_untagged(rule: Rule) -> bool:
    """Tell whether the rule puts the tag on a host's frames, or drops them."""
    ports = {field.name for field in rule.match}
    return rule.table == ADMISSION and "in_port" in ports and NO_VLAN in rule.match


def without_admission(rules: FabricRules) -> FabricRules:
    """Return the rules without those that admit untagged frames of hosts."""
    return {
        name: replace(
            of_switch, rules=tuple(rule for rule in of_switch.rules if not admits_untagged(rule))
        )
        for name, of_switch in rules.items()
    }


def without_rules(rules: FabricRules, others: FabricRules) -> FabricRules:
    """Return the rules and groups of each switch that are not among its ``others``."""
    nothing = SwitchRules(())
    left = {}
    for name, of_switch in rules.items():
        theirs = others.get(name, nothing)
        gone, groups = set(theirs.rules), set(theirs.groups)
        left[name] = SwitchRules(
            tuple(rule for rule in of_switch.rules if rule not in gone),
            tuple(group for group in of_switch.groups if group not in groups),
        )
    return left


def joined(first: FabricRules, second: FabricRules) -> FabricRules:
    """Return the rules of both, side by side on each switch.

    Raises
    ------
    RuleError
        Two rules have the same table, priority and match, or two groups the same number, but do
        different things.

    """
    nothing = SwitchRules(())
    return {
        name: _joined(name, first.get(name, nothing), second.get(name, nothing))
        for name in dict.fromkeys([*first, *second])
    }


def _joined(name: str, first: SwitchRules, second: SwitchRules) -> SwitchRules:
    rules = {rule.key: rule for rule in first.rules}
    groups: dict[int, Group] = {group.group_id: group for group in first.groups}
    for rule in second.rules:
        if rules.setdefault(rule.key, rule) != rule:
            raise RuleError(f"{name}: both have a rule in table {rule.table} for the same frames")
    for group in second.groups:
        if groups.setdefault(group.group_id, group) != group:
            raise RuleError(f"{name}: both have a group {group.group_id}")
    in_order = sorted(rules.values(), key=lambda rule: rule.order)
    return SwitchRules(tuple(in_order), tuple(groups[number] for number in sorted(groups)))


def same_rules(a: FabricRules, b: FabricRules) -> bool:
    """Tell whether all switches have the same rules and groups in both."""
    if isinstance(a, CompiledRules) and isinstance(b, CompiledRules) and a.is_compiled_alike(b):
        return True
    nothing = SwitchRules(())
    return all(a.get(name, nothing) == b.get(name, nothing) for name in {*a, *b})


def rules_changed(old: FabricRules, new: FabricRules) -> int:
    """Return the rules and groups that are added, modified or deleted, on all switches."""
    nothing = SwitchRules(())
    return sum(
        _changed(old.get(name, nothing), new.get(name, nothing))
        for name in dict.fromkeys([*old, *new])
        if old.get(name, nothing) is not new.get(name, nothing)
    )


def _changed(old_rules: SwitchRules, new_rules: SwitchRules) -> int:
    def differing(old: Mapping[object, object], new: Mapping[object, object]) -> int:
        return sum(old.get(key) != new.get(key) for key in old.keys() | new.keys())

    return differing(
        {rule.key: rule for rule in old_rules.rules}, {rule.key: rule for rule in new_rules.rules}
    ) + differing(
        {group.group_id: group for group in old_rules.groups},
        {group.group_id: group for group in new_rules.groups},
    )
