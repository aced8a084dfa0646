"""Rules for backups: fast-failover groups, and the routes of diverted packets.

The rules of the plan stay as they are. Added are, above them:

- admission: frames from other switches with the VLAN of a label pass.
- forward: (VLAN of a label, destination) -> output port. Virtual channels do not change.
- output: (output port, destination) -> a group of type fast failover, which sends to the port or,
  if that is down, sets the VLAN of a label and sends to the backup's port. A frame that came from
  there goes back. Frames with the VLAN of a label are not diverted again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.forwarding.openflow.compiled import CompiledRules
from knotless.forwarding.openflow.cubes import ALL_BITS, cubes
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
from knotless.routing.failover.backups import FIRST_LABEL, Backup, Backups
from knotless.routing.plan import Plan
from knotless.topologies.numbering import mac_value

Then = TypeVar("Then")

PRIORITY = 0x2000
"""The lowest priority of these rules; those of plans are below it."""
FIRST_GROUP = 1 << 20
_PRESENT = 0x1000
_BLOCK = _PRESENT | 0xE00
"""The bits of a VLAN that say whether it is that of a label, and its plane."""
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
        own, added = super().__getitem__(name), self._added.get(name)
        if added is None:
            return own
        ports = {rule.match for rule in own.rules if rule.table == OUTPUT}
        rules = [of for of in added.rules if not _is_output(of) or _unlabelled(of) not in ports]
        in_order = sorted([*own.rules, *rules], key=lambda rule: rule.order)
        return SwitchRules(tuple(in_order), (*own.groups, *added.groups))

    @cached_property
    def parsed(self) -> list[core.Switch]:
        """The rules of all switches in the core's form, while all ports are up."""
        return [self[name].parsed for name in self.names]

    def equal_columns(self, other: CompiledRules) -> bool:
        """Tell whether the rules of all switches are equal, listed in the same order."""
        added = other._added if isinstance(other, ProtectedRules) else {}
        return added == self._added and super().equal_columns(other)

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
    found = {}
    for at, name in enumerate(plan.channels.names):
        made = _SwitchBackups(plan, backups, at)
        made.divert()
        made.forward()
        if made.rules:
            rules = sorted(made.rules, key=lambda rule: rule.order)
            found[name] = SwitchRules(tuple(rules), tuple(made.groups.values()))
    return found


class _SwitchBackups:
    """The rules for backups of one switch (its index)."""

    def __init__(self, plan: Plan, backups: Backups, at: int) -> None:
        self.plan, self.backups, self.at = plan, backups, at
        self.rules: list[Rule] = []
        self.groups: dict[tuple[int, Backup, bool], Group] = {}
        self.out_port = plan.channels.out_port.tolist()
        self.in_port = plan.channels.in_port.tolist()

    def divert(self) -> None:
        """Add the groups, and the rules that send to them."""
        backups, tail = self.backups, self.plan.channels.tail
        by_channel: defaultdict[int, dict[int, Backup | None]] = defaultdict(dict)
        for channel, to in (*backups.of, *backups.none):
            if tail[channel] == self.at:
                by_channel[channel][to] = backups.of.get((channel, to))
        for channel, of in sorted(by_channel.items()):
            if any(of.values()):
                self._divert_from(channel, of)

    def _divert_from(self, channel: int, of: Mapping[int, Backup | None]) -> None:
        port = Field("metadata", self.out_port[channel])
        for field, backup, level in self._destinations(of):
            match = [port, _PLANNED, *field]
            if backup is None:
                if field:
                    self._add(OUTPUT, level, match, (Output(port.value),))
                continue
            self._add(OUTPUT, level, match, (self._group(channel, backup, back=False),))
            same = (to for to, other in of.items() if other == backup)
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
        for (label, at, to), channel in hops.items():
            if at == self.at:
                ports[label][to] = self.out_port[channel]
        taken = {(to, channel) for (_, _, to), channel in hops.items()}
        taken |= {(to, backup.channel) for (_, to), backup in self.backups.of.items()}
        here = {use for use in taken if channels.head[use[1]] == self.at}
        entered = {self.in_port[channel] for _, channel in here}
        for port in sorted(entered):
            self._add(ADMISSION, 0, [Field("in_port", port), _LABELS], goto=FORWARD)
        if not entered:
            return
        self._add(FORWARD, 0, [_LABELS])
        for label, of in sorted(ports.items()):
            vlan = Field("vlan_vid", _PRESENT | FIRST_LABEL + label)
            for field, port, level in self._destinations(of):
                self._add(FORWARD, 1 + level, [vlan, *field], metadata=port, goto=OUTPUT)
            for port in sorted(set(of.values())):
                self._add(OUTPUT, 0, [Field("metadata", port), _LABELS], (Output(port),))
        ends = any(to == self.at for to, _ in here)
        hosts = plan.fabric.hosts_at[channels.names[self.at]].values() if ends else ()
        for host in hosts:
            mac = Field("eth_dst", mac_value(host.mac))
            self._add(FORWARD, 9, [_LABELS, mac], metadata=host.port, goto=OUTPUT)

    def _destinations(self, of: Mapping[int, Then]) -> Iterable[tuple[list[Field], Then, int]]:
        """Yield matches of destinations, what is done with them, and a level of priority.

        What is done with most destinations matches all of them, at the lowest level.
        """
        most = Counter(of.values()).most_common(1)[0][0]
        yield [], most, 0
        for then in dict.fromkeys(of.values()):
            if then == most:
                continue
            wanted = self._macs(to for to, other in of.items() if other == then)
            unwanted = self._macs(to for to, other in of.items() if other != then)
            for value, mask in cubes(wanted, unwanted):
                field = Field("eth_dst", value, None if mask == ALL_BITS else mask)
                yield [field], then, 2

    def _macs(self, switches: Iterable[int]) -> list[int]:
        names = self.plan.channels.names
        hosts = (host for at in switches for host in self.plan.fabric.hosts_at[names[at]].values())
        return [mac_value(host.mac) for host in hosts]

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
