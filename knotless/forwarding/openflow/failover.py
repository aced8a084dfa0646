"""Rules for backups: fast-failover groups, and the routes of diverted packets.

The rules of the plan stay as they are. Added are, above them:

- admission: frames from other switches with the VLAN of a label pass.
- forward: (VLAN of a label, destination) -> output port. Virtual channels do not change. Unused
  addresses are forwarded like the host that they belong to, and dropped at its switch.
- output: (output port, destination) -> a group of type fast failover, which sends to the port or,
  if that is down, sets the VLAN of a label and sends to the backup's port. A frame that came from
  there goes back. Frames with the VLAN of a label are not diverted again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, reduce
from operator import or_
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.forwarding.openflow.compiled import CompiledRules
from knotless.forwarding.openflow.rules import (
    ADMISSION,
    COOKIE,
    FORWARD,
    IN_PORT,
    OUTPUT,
    Action,
    Field,
    Group,
    Output,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
    match_order,
)
from knotless.forwarding.openflow.unused_addresses import ALL_BITS, masks_of
from knotless.routing.failover.backups import FIRST_LABEL, Backup, Backups
from knotless.routing.plan import Plan
from knotless.topologies.numbering import mac_value

Treatment = TypeVar("Treatment")
Masked = tuple[int, int]
"""A value and a mask, which match a host's address and the unused ones that belong to it."""

PRIORITY = 0x2000
"""The lowest priority of these rules; those of plans are below it."""
FIRST_GROUP = 1 << 20
_PRESENT = 0x1000
_BLOCK = _PRESENT | 0xE00
"""The bits of a VLAN that say whether it is that of a label, and its generation."""
_LABELS = Field("vlan_vid", _PRESENT | FIRST_LABEL, _BLOCK)
_PLANNED = Field("vlan_vid", _PRESENT, _BLOCK)


class ProtectedRules(CompiledRules):
    """The compiled rules of a plan, with those of its backups."""

    def __init__(self, plan: Plan, compiled: CompiledRules, backups: Backups) -> None:
        super().__init__(compiled.names, compiled.core)
        self.backups = backups
        self._added = _added(plan, backups)

    def __getitem__(self, name: str) -> SwitchRules:
        """Return the rules of a switch."""
        planned, added = super().__getitem__(name), self._added.get(name)
        if added is None:
            return planned
        ports = {rule.match for rule in planned.rules if rule.table == OUTPUT}
        rules = [
            rule for rule in added.rules if not _is_output(rule) or _unlabelled(rule) not in ports
        ]
        in_order = sorted([*planned.rules, *rules], key=lambda rule: rule.order)
        return SwitchRules(tuple(in_order), (*planned.groups, *added.groups))

    @cached_property
    def parsed(self) -> list[core.Switch]:
        """The rules of all switches in the core's form, while all ports are up."""
        return [self[name].parsed for name in self.names]

    def is_compiled_alike(self, other: CompiledRules) -> bool:
        """Tell whether the rules of all switches are equal, listed in the same order."""
        is_alike = isinstance(other, ProtectedRules) and other._added == self._added
        return is_alike and super().is_compiled_alike(other)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(switches,) the number of rules of each switch."""
        return np.array([len(self[name].rules) for name in self.names], dtype=np.int64)

    @property
    def groups(self) -> int:
        """The number of groups of all switches."""
        return super().groups + sum(len(added.groups) for added in self._added.values())


def _is_output(rule: Rule) -> bool:
    return rule.table == OUTPUT and _LABELS in rule.match


def _unlabelled(rule: Rule) -> tuple[Field, ...]:
    return tuple(field for field in rule.match if field != _LABELS)


def _added(plan: Plan, backups: Backups) -> dict[str, SwitchRules]:
    """Return the rules for backups by switch, for each that has some."""
    added = {}
    masks = masks_of(mac_value(host.mac) for host in plan.fabric.hosts)
    for switch, name in enumerate(plan.channels.names):
        switch_backups = _SwitchBackups(plan, backups, switch, masks)
        switch_backups.divert()
        switch_backups.forward()
        if switch_backups.rules:
            rules = sorted(switch_backups.rules, key=lambda rule: rule.order)
            added[name] = SwitchRules(tuple(rules), tuple(switch_backups.groups.values()))
    return added


class _SwitchBackups:
    """The rules for backups of one switch (its index).

    ``masks`` are those of :func:`knotless.forwarding.openflow.unused_addresses.masks_of`.
    """

    def __init__(self, plan: Plan, backups: Backups, switch: int, masks: Mapping[int, int]) -> None:
        self.plan, self.backups, self.switch, self.masks = plan, backups, switch, masks
        self.rules: list[Rule] = []
        self.groups: dict[tuple[int, Backup, bool], Group] = {}
        self.out_port = plan.channels.out_port.tolist()
        self.in_port = plan.channels.in_port.tolist()

    def divert(self) -> None:
        """Add the groups, and the rules that send to them."""
        backups, tail = self.backups, self.plan.channels.tail
        by_channel: defaultdict[int, dict[int, Backup | None]] = defaultdict(dict)
        for channel, to in (*backups.chosen, *backups.none):
            if tail[channel] == self.switch:
                by_channel[channel][to] = backups.chosen.get((channel, to))
        for channel, backup_by_destination in sorted(by_channel.items()):
            if any(backup_by_destination.values()):
                self._divert_from(channel, backup_by_destination)

    def _divert_from(
        self, channel: int, backup_by_destination: Mapping[int, Backup | None]
    ) -> None:
        port = Field("metadata", self.out_port[channel])
        for field, backup, level in self._destinations(backup_by_destination):
            match = [port, _PLANNED, *field]
            if backup is None:
                if field:
                    self._add(OUTPUT, level, match, (Output(port.value),))
                continue
            self._add(OUTPUT, level, match, (self._group(channel, backup, back=False),))
            same = (to for to, other in backup_by_destination.items() if other == backup)
            if any((channel, to) in self.backups.returning for to in same):
                came = Field("in_port", self.out_port[backup.channel])
                group = self._group(channel, backup, back=True)
                self._add(OUTPUT, level + 1, [*match, came], (group,))

    def _group(self, channel: int, backup: Backup, *, back: bool) -> ToGroup:
        """Return the action that sends to a channel, or else to the backup's."""
        key = (channel, backup, back)
        if key not in self.groups:
            actions: list[Action] = [SetField("vlan_vid", _PRESENT | FIRST_LABEL + backup.label)]
            if self.backups.priority or self.plan.vcs > 1:
                actions.append(SetField("vlan_pcp", self.backups.priority))
            first, second = self.out_port[channel], self.out_port[backup.channel]
            actions.append(Output(IN_PORT if back else second))
            number, watch = FIRST_GROUP + len(self.groups), (first, second)
            self.groups[key] = Group(number, ((Output(first),), tuple(actions)), watch)
        return ToGroup(self.groups[key].group_id)

    def forward(self) -> None:
        """Add the rules for diverted packets that pass this switch or end here."""
        plan, channels, hops = self.plan, self.plan.channels, self.backups.next_hop
        ports: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for (label, switch, to), channel in hops.items():
            if switch == self.switch:
                ports[label][to] = self.out_port[channel]
        used = {(to, channel) for (_, _, to), channel in hops.items()}
        used |= {(to, backup.channel) for (_, to), backup in self.backups.chosen.items()}
        entering = {use for use in used if channels.head[use[1]] == self.switch}
        entered = {self.in_port[channel] for _, channel in entering}
        for port in sorted(entered):
            self._add(ADMISSION, 0, [Field("in_port", port), _LABELS], goto=FORWARD)
        if not entered:
            return
        self._add(FORWARD, 0, [_LABELS])
        for label, port_by_destination in sorted(ports.items()):
            vlan = Field("vlan_vid", _PRESENT | FIRST_LABEL + label)
            for field, port, level in self._destinations(port_by_destination):
                self._add(FORWARD, 1 + level, [vlan, *field], metadata=port, goto=OUTPUT)
            for port in sorted(set(port_by_destination.values())):
                self._add(OUTPUT, 0, [Field("metadata", port), _LABELS], (Output(port),))
        ends = any(to == self.switch for to, _ in entering)
        if not ends:
            return
        others = [to for to in range(len(channels.names)) if to != self.switch]
        for value, mask in cubes(self._macs([self.switch]), self._macs(others)):
            unused = [Field("eth_dst", value, mask)] if mask else []
            self._add(FORWARD, 8, [_LABELS, *unused])
        for host in plan.fabric.hosts_at[channels.names[self.switch]].values():
            mac = Field("eth_dst", mac_value(host.mac))
            self._add(FORWARD, 9, [_LABELS, mac], metadata=host.port, goto=OUTPUT)

    def _destinations(
        self, action_by_destination: Mapping[int, Treatment]
    ) -> Iterable[tuple[list[Field], Treatment, int]]:
        """Yield matches of destinations, what is done with them, and a level of priority.

        What is done with most destinations matches all of them, at the lowest level.
        """
        default = Counter(action_by_destination.values()).most_common(1)[0][0]
        yield [], default, 0
        listed_pairs: list[Masked] = []
        for action in dict.fromkeys(action_by_destination.values()):
            if action == default:
                continue
            included = self._macs(
                to for to, other in action_by_destination.items() if other == action
            )
            excluded = self._macs(
                to for to, other in action_by_destination.items() if other != action
            )
            # No address, not even of an unknown host, may match two rules of one priority that
            # differ: which of them counts is not defined (OpenFlow 1.3, 5.3).
            pairs = cubes(included, excluded, listed_pairs)
            listed_pairs += pairs
            for value, mask in pairs:
                field = Field("eth_dst", value, None if mask == ALL_BITS else mask)
                yield [field], action, 2

    def _macs(self, switches: Iterable[int]) -> list[Masked]:
        names = self.plan.channels.names
        hosts = (
            host
            for switch in switches
            for host in self.plan.fabric.hosts_at[names[switch]].values()
        )
        macs = [mac_value(host.mac) for host in hosts]
        return [(mac & self.masks[mac], self.masks[mac]) for mac in macs]

    def _add(
        self,
        table: int,
        level: int,
        match: list[Field],
        actions: tuple[Action, ...] = (),
        metadata: int | None = None,
        goto: int | None = None,
    ) -> None:
        fields = match_order(match)
        rule = Rule(table, PRIORITY + level, fields, actions, metadata, goto, COOKIE)
        if rule not in self.rules:
            self.rules.append(rule)


def cubes(
    included: Collection[Masked],
    excluded: Collection[Masked],
    apart: Collection[Masked] = (),
) -> list[Masked]:
    """Return (value, mask) pairs that match all that ``included`` ones do, and nothing else's.

    No address matches one of them and one of the pairs ``apart``, which match nothing that an
    included one matches and mask nothing in which all values agree. Greedy: from the lowest one
    that is not matched yet, bits are left out from the lowest on, as long as nothing that an
    ``excluded`` one or one ``apart`` matches is matched. Bits in which all values agree are always
    left out.
    """
    everything = [value for value, _ in (*included, *excluded)]
    differing = reduce(or_, (value ^ everything[0] for value in everything), 0)
    others, matches = (*excluded, *apart), list[Masked]()
    unmatched = set(included)
    while unmatched:
        value, whole = min(unmatched)
        mask = whole & differing
        for bit in [1 << i for i in range(48) if mask >> i & 1]:
            smaller = mask & ~bit
            if all((value ^ other) & smaller & other_mask for other, other_mask in others):
                mask = smaller
        unmatched = {
            (other, of_other)
            for other, of_other in unmatched
            if (value ^ other) & mask or mask & ~of_other
        }
        matches.append((value & mask, mask))
    return matches
