"""OpenFlow 1.3 rules as Python sees them, independent of the make of the switch.

Rules belong to the core, which compiles and parses them and follows frames through them
(``core/forwarding/src/openflow/rule.rs``); ``core/python/src/forwarding/views.rs`` makes these
values of them. Python changes and compares them, the controller turns them into messages, and
:mod:`knotless.forwarding.openflow.ofctl_writer` writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from knotless._core import forwarding as core

IN_PORT = 0xFFFFFFF8
NORMAL = 0xFFFFFFFA
FLOOD = 0xFFFFFFFB
ALL = 0xFFFFFFFC
CONTROLLER = 0xFFFFFFFD
"""Reserved ports. Our rules use the first and the last; those of others may use all."""
ADMISSION, FORWARD, VIRTUAL_CHANNEL, OUTPUT = range(4)


class Field(NamedTuple):
    """A matched field: its OpenFlow name, its value, and its mask unless all bits count.

    ``name`` is one of in_port, metadata, eth_type, eth_dst, eth_src, vlan_vid, vlan_pcp,
    arp_op, arp_tpa ... as in OpenFlow 1.3 and Ryu. ``value`` is always an integer: a MAC has 48
    bits; ``vlan_vid`` includes the present bit (0x1000), so ``Field("vlan_vid", 0)`` is
    'untagged', ``Field("vlan_vid", 0, 0xFFF)`` is that or 'tagged with a priority only', and
    ``Field("vlan_vid", 0x1000, 0x1000)`` is 'tagged, any VLAN'. ``mask`` None means all bits.
    """

    name: str
    value: int
    mask: int | None = None


_NAME_AND_VALUE = itemgetter(0, 1)


def match_order(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Return ``fields`` in the canonical order, in which matches are written and compared.

    A match has a field once.
    """
    return tuple(sorted(fields, key=_NAME_AND_VALUE))


@dataclass(frozen=True, order=True)
class Output:
    """Send the frame out of ``port`` (a number, or a reserved port)."""

    port: int


@dataclass(frozen=True, order=True)
class PushVlan:
    """Add an 802.1Q tag (0x8100)."""


@dataclass(frozen=True, order=True)
class PopVlan:
    """Remove the outer 802.1Q tag."""


@dataclass(frozen=True, order=True)
class SetField:
    """Set a field; ``vlan_vid`` includes the present bit (0x1000)."""

    name: str
    value: int


@dataclass(frozen=True, order=True)
class ToGroup:
    """Send the frame to a group of the same switch."""

    group_id: int


@dataclass(frozen=True, order=True)
class Choose:
    """Write one of ``ports`` to the low 16 bits of the metadata, by a hash of the addresses.

    Of the ports that are up, it is the one with the highest score; without any it is 0xFFFF. The
    hash begins with ``basis`` (16 bits): switches with equal ones would choose alike. On Open
    vSwitch these are actions of Nicira, in this order:

    - move eth_src to register xxreg0, and the low 24 bits of eth_dst to the high ones of eth_src;
    - bundle_load of the ports, with the algorithm hrw over eth_src;
    - move xxreg0 back to eth_src.

    The core's ``select_member`` computes the same choice.
    """

    ports: tuple[int, ...]
    basis: int


Action = Output | PushVlan | PopVlan | SetField | ToGroup | Choose


class Rule(NamedTuple):
    """A flow entry: apply ``actions`` in order, write ``metadata``, go to table ``goto``.

    No actions and no ``goto`` is a drop. ``cookie`` marks entries as ours: it is
    :data:`COOKIE` for every rule that Knotless compiles.
    """

    table: int
    priority: int
    match: tuple[Field, ...]
    actions: tuple[Action, ...] = ()
    metadata: int | None = None
    goto: int | None = None
    cookie: int = 0

    @property
    def key(self) -> tuple[int, int, tuple[Field, ...]]:
        """The identity of a flow entry in a switch: table, priority and match."""
        return (self.table, self.priority, self.match)

    @property
    def order(self) -> tuple[int, int, list[tuple[str, int, int]]]:
        """The sort key: table, priority from high to low, match; no mask before any mask."""
        fields = [(name, value, -1 if mask is None else mask) for name, value, mask in self.match]
        return (self.table, -self.priority, fields)


@dataclass(frozen=True)
class Group:
    """A group of type 'all': the actions of each bucket are applied to a copy of the frame.

    With ``watch``, a port for each bucket, it is of type 'fast failover': only the first bucket
    whose port is up is applied. If it ``selects``, it is of type 'select', which no group of ours
    is: any one bucket is applied to the frame.
    """

    group_id: int
    buckets: tuple[tuple[Action, ...], ...]
    watch: tuple[int, ...] = ()
    selects: bool = False

    def live(self, down: Collection[int] = ()) -> Group:
        """Return what the group does while some ports are down, as a group of type 'all'."""
        if not self.watch:
            return self
        buckets = zip(self.watch, self.buckets, strict=True)
        return Group(self.group_id, tuple(b for port, b in buckets if port not in down)[:1])


@dataclass(frozen=True)
class SwitchRules:
    """All rules and groups of one switch; rules sorted by :attr:`Rule.order`."""

    rules: tuple[Rule, ...]
    groups: tuple[Group, ...] = ()

    @cached_property
    def parsed(self) -> core.Switch:
        """The rules in the core's form, while all ports are up.

        Raises OverflowError if a number is out of range.
        """
        return core.Switch(self)

    @cached_property
    def values_set(self) -> frozenset[tuple[str, int]]:
        """The fields that rules and groups set, each with a value that it is set to."""
        lists = [rule.actions for rule in self.rules]
        lists += [bucket for group in self.groups for bucket in group.buckets]
        every = chain.from_iterable({id(actions): actions for actions in lists}.values())
        return frozenset(
            (action.name, action.value) for action in every if isinstance(action, SetField)
        )

    @cached_property
    def floods(self) -> bool:
        """Whether a rule sends to all ports of the switch, which no rule of ours does."""
        lists = [rule.actions for rule in self.rules]
        lists += [bucket for group in self.groups for bucket in group.buckets]
        every = chain.from_iterable({id(actions): actions for actions in lists}.values())
        return any(isinstance(action, Output) and action.port in (FLOOD, ALL) for action in every)

    def flooding(self, ports: Collection[int]) -> SwitchRules:
        """Return the same for a switch with these ports, which rules that flood then name."""
        if not self.floods:
            return self
        outputs = tuple(map(Output, sorted(ports)))

        def named(actions: tuple[Action, ...]) -> tuple[Action, ...]:
            each = (
                outputs if isinstance(action, Output) and action.port in (FLOOD, ALL) else (action,)
                for action in actions
            )
            return tuple(chain.from_iterable(each))

        return SwitchRules(
            tuple(rule._replace(actions=named(rule.actions)) for rule in self.rules),
            tuple(
                replace(group, buckets=tuple(map(named, group.buckets))) for group in self.groups
            ),
        )

    def live(self, down: Collection[int] = ()) -> SwitchRules:
        """Return what the switch does while some ports are down, with groups of type 'all'."""
        if not any(group.watch for group in self.groups):
            return self
        return SwitchRules(self.rules, tuple(group.live(down) for group in self.groups))


NO_RULES = SwitchRules(())
"""A switch without rules."""


COOKIE = core.COOKIE
"""'knot': the cookie of every rule that Knotless installs."""

FabricRules = Mapping[str, SwitchRules]
"""Switch name -> its rules."""
