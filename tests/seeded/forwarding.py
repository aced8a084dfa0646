"""What a switch does with a frame by the entries that it holds, for the world and its judge.

The entries are read by the project's own reader of messages; what they do is interpreted here, by
the OpenFlow 1.3 specification, and shares no code with the proofs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from ipaddress import IPv4Address
from typing import NamedTuple

from knotless.controller.openflow.replies import read_group, read_rule
from knotless.controller.reconcile import PROBE_COOKIE, FoundGroup, FoundRule
from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.rules import (
    CONTROLLER,
    COOKIE,
    IN_PORT,
    Action,
    Choose,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    SwitchRules,
)
from knotless.routing.vlans.host_tags import EVERYTHING_ELSE, HostTags
from knotless.topologies.fabric import Host
from knotless.topologies.numbering import mac_value

_PRESENT = 0x1000
_BROADCAST = 0xFFFFFFFFFFFF
_IPV4, _ARP = 0x0800, 0x0806
_NO_PORT = 0xFFFF


class Header(NamedTuple):
    """The fields of a frame; ``vlan`` is None without a tag. ``ip`` is the sender's address."""

    dst: int
    src: int
    kind: int
    vlan: int | None = None
    pcp: int = 0
    ip: int = 0


def header_of(frame: bytes) -> Header:
    """Return the fields of a frame."""
    dst, src = (int.from_bytes(frame[at : at + 6], "big") for at in (0, 6))
    kind = int.from_bytes(frame[12:14], "big")
    if kind == 0x8100:
        tag = int.from_bytes(frame[14:16], "big")
        kind = int.from_bytes(frame[16:18], "big")
        return Header(dst, src, kind, tag & 0xFFF, tag >> 13)
    return Header(dst, src, kind)


def sent(sender: Host, receiver: Host | None, tags: HostTags | None) -> Header:
    """Return the header that a host sends to another one, or to all, with its tag if it has one."""
    dst, kind = (_BROADCAST, _ARP) if receiver is None else (mac_value(receiver.mac), _IPV4)
    header = Header(dst, mac_value(sender.mac), kind, ip=int(IPv4Address(sender.ip)))
    if tags is None:
        return header
    table = tags[sender.name]
    default = table[EVERYTHING_ELSE]
    return header._replace(vlan=default if receiver is None else table.get(receiver.mac, default))


class Copy(NamedTuple):
    """A frame that leaves on ``port``, by an entry with this cookie."""

    port: int
    header: Header
    cookie: int


@lru_cache(maxsize=1 << 16)
def rule_of(entry: bytes) -> FoundRule:
    """Read an entry of a reply about flows."""
    return read_rule(entry)


@lru_cache(maxsize=1 << 12)
def group_of(entry: bytes) -> FoundGroup:
    """Read an entry of a reply about groups."""
    return read_group(entry)


def is_foreign(rule: FoundRule) -> bool:
    """Return whether a rule is neither of routes nor of probes."""
    return rule.cookie not in (COOKIE, PROBE_COOKIE)


class Forwarding:
    """What a switch does while it holds these entries and these ports are up."""

    def __init__(self, flows: Iterable[bytes], groups: Iterable[bytes], up: frozenset[int]) -> None:
        rules = [found.rule for found in map(rule_of, flows) if found.rule is not None]
        self._tables: dict[int, list[Rule]] = {}
        for rule in sorted(rules, key=lambda rule: -rule.priority):
            self._tables.setdefault(rule.table, []).append(rule)
        found = [each.group for each in map(group_of, groups) if each.group is not None]
        self._groups: Mapping[int, Group] = {group.group_id: group for group in found}
        self._up = up
        actions = (action for rule in rules for action in rule.actions)
        chosen = (len(action.ports) for action in actions if isinstance(action, Choose))
        self._most_ports = max(chosen, default=1)
        self._known: dict[tuple[int, Header], tuple[tuple[Copy, ...], ...]] = {}
        self.own = sum(rule.cookie == COOKIE for rule in rules)
        """How many of the entries are rules of routes."""

    @cached_property
    def text(self) -> tuple[str, str]:
        """The rules of routes and the groups as ovs-ofctl's text, in any order of the entries.

        Choices have the ports that are up.
        """
        rules = [rule for table in self._tables.values() for rule in table]
        routes = tuple(
            rule._replace(actions=tuple(map(self._live, rule.actions)))
            for rule in rules
            if rule.cookie == COOKIE
        )
        return write(SwitchRules(routes, tuple(self._groups.values())))

    def _live(self, action: Action) -> Action:
        if not isinstance(action, Choose):
            return action
        up = tuple(port for port in action.ports if port in self._up)
        return replace(action, ports=up or (_NO_PORT,))

    def copies(self, in_port: int, header: Header) -> tuple[Copy, ...]:
        """Return the copies of a frame that leave, in order."""
        return self._followed(in_port, header)[0]

    def choices(self, in_port: int, header: Header) -> tuple[tuple[Copy, ...], ...]:
        """Return the same for each port, of those that are up, that a rule may choose."""
        return self._followed(in_port, header)

    def _followed(self, in_port: int, header: Header) -> tuple[tuple[Copy, ...], ...]:
        """Return :meth:`choices`, that of :meth:`copies` first."""
        key = (in_port, header)
        if key not in self._known:
            numbers = range(self._most_ports)
            every = (tuple(self._copies(in_port, header, number)) for number in numbers)
            self._known[key] = tuple(dict.fromkeys(every))
        return self._known[key]

    def _copies(self, in_port: int, header: Header, number: int) -> Iterator[Copy]:
        table: int | None = 0
        metadata = 0
        while table is not None:
            rule = self._hit(table, in_port, header, metadata)
            if rule is None:
                return
            header = yield from self._act(rule.actions, in_port, header, rule.cookie)
            metadata = metadata if rule.metadata is None else rule.metadata
            table = rule.goto
            for choice in (action for action in rule.actions if isinstance(action, Choose)):
                ports = self._ports(choice, header)
                metadata = ports[number % len(ports)]

    def _hit(self, table: int, in_port: int, header: Header, metadata: int) -> Rule | None:
        values = {
            "in_port": in_port,
            "metadata": metadata,
            "eth_dst": header.dst,
            "eth_src": header.src,
            "eth_type": header.kind,
            "vlan_vid": 0 if header.vlan is None else _PRESENT | header.vlan,
        }
        if header.kind == _IPV4:
            values["ipv4_src"] = header.ip
        elif header.kind == _ARP:
            values |= {"arp_spa": header.ip, "arp_sha": header.src}
        if header.vlan is not None:
            values["vlan_pcp"] = header.pcp
        for rule in self._tables.get(table, ()):
            for name, value, mask in rule.match:
                have = values.get(name)
                bits = -1 if mask is None else mask
                if have is None or have & bits != value & bits:
                    break
            else:
                return rule
        return None

    def _act(
        self, actions: Iterable[Action], in_port: int, header: Header, cookie: int
    ) -> Generator[Copy, None, Header]:
        for action in actions:
            match action:
                case Output(port) if port == IN_PORT:
                    yield Copy(in_port, header, cookie)
                case Output(port):
                    if port != in_port:
                        yield Copy(port, header, cookie)
                case PushVlan():
                    header = header._replace(vlan=0, pcp=0)
                case PopVlan():
                    header = header._replace(vlan=None, pcp=0)
                case SetField("vlan_vid", value):
                    header = header._replace(vlan=value & 0xFFF)
                case SetField("vlan_pcp", value):
                    header = header._replace(pcp=value)
                case SetField("eth_dst", value):
                    header = header._replace(dst=value)
                case SetField("eth_src", value):
                    header = header._replace(src=value)
                case Choose():
                    pass
                case _:
                    group = self._groups.get(getattr(action, "group_id", -1))
                    for bucket in () if group is None else self._buckets(group):
                        yield from self._act(bucket, in_port, header, cookie)
        return header

    def _ports(self, choice: Choose, header: Header) -> list[int]:
        """Return the ports that are up, first the one that is chosen: nobody may rely on it."""
        up = [port for port in choice.ports if port in self._up]
        taken = hash((header.src, header.dst, choice.basis)) % max(1, len(up))
        return [*up[taken:], *up[:taken]] or [_NO_PORT]

    def _buckets(self, group: Group) -> Iterable[tuple[Action, ...]]:
        if not group.watch:
            return group.buckets
        ways = zip(group.watch, group.buckets, strict=True)
        return [bucket for port, bucket in ways if port in self._up or port == CONTROLLER][:1]
