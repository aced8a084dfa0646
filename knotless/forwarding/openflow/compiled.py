"""Compiled rules in columns; the rules of a switch are decoded on access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import repeat
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.forwarding.openflow.rules import (
    COOKIE,
    Action,
    Choose,
    Field,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
)

_VLAN_PRESENT = 0x1000
_ARP = 0x0806
_CHOOSE, _MEMBER = 6, 7
_ALL_BITS = {"eth_dst": (1 << 48) - 1, "eth_src": (1 << 48) - 1, "vlan_vid": 0x1FFF}
"""The fields that may have a mask, with that which counts as none."""
_FIELDS = (
    *("arp_sha", "arp_spa", "eth_dst", "eth_src", "eth_type", "in_port", "ipv4_src"),
    *("metadata", "vlan_pcp", "vlan_vid"),
)
"""The fields of matches in canonical order, see :func:`forwarding.openflow.rules.match_order`."""


class CompiledRules(Mapping[str, SwitchRules]):
    """The rules of each switch by name; decoded on each access, not cached."""

    def __init__(self, names: tuple[str, ...], compiled: core.Compiled) -> None:
        self.core = compiled
        self.names = names
        self._index = {name: i for i, name in enumerate(names)}
        self._columns = compiled.columns()

    def __len__(self) -> int:
        """Return the number of switches."""
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the switches, in the order of the fabric."""
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a switch of this name, without decoding its rules."""
        return name in self._index

    def __getitem__(self, name: str) -> SwitchRules:
        """Return the rules of a switch."""
        switch = self._index[name]
        part = slice(*_part(self._columns["rule_ends"], switch))

        def column(name: str) -> list[int]:
            values: list[int] = self._columns[name][part].tolist()
            return values

        def optional(name: str) -> list[int | None]:
            return [value if value >= 0 else None for value in column(name)]

        def fields(name: str) -> list[Field | None]:
            if name not in _ALL_BITS:
                return [None if value is None else Field(name, value) for value in optional(name)]
            full, masks = _ALL_BITS[name], column(f"{name}_mask")
            values = zip(column(name), masks, strict=True)
            return [
                Field(name, value, None if mask == full else mask) if mask else None
                for value, mask in values
            ]

        sources = self._sources(part)
        by_field = [sources[name] if name in sources else fields(name) for name in _FIELDS]
        every = zip(
            column("table"),
            column("priority"),
            (tuple(filter(None, fields_of_rule)) for fields_of_rule in zip(*by_field, strict=True)),
            (self._lists[number] for number in column("actions")),
            optional("write_metadata"),
            optional("goto"),
            repeat(COOKIE),
            strict=False,
        )
        rules = sorted(map(Rule._make, every), key=attrgetter("order"))
        return SwitchRules(tuple(rules), self._groups(switch))

    def _sources(self, part: slice) -> dict[str, list[Field | None]]:
        """Return the fields of source addresses inside of frames, of the rules of a switch."""
        columns = ("source_ip", "eth_type", "eth_src")
        ips, types, macs = (self._columns[name][part].tolist() for name in columns)

        def fields(name: str, values: list[int], *, of_arp: bool) -> list[Field | None]:
            rows = zip(values, ips, types, strict=True)
            return [
                Field(name, value) if ip >= 0 and (eth_type == _ARP) == of_arp else None
                for value, ip, eth_type in rows
            ]

        return {
            "arp_sha": fields("arp_sha", macs, of_arp=True),
            "arp_spa": fields("arp_spa", ips, of_arp=True),
            "ipv4_src": fields("ipv4_src", ips, of_arp=False),
        }

    @cached_property
    def parsed(self) -> list[core.Switch]:
        """The rules of all switches in the core's form."""
        return self.core.switches()

    def equal_columns(self, other: CompiledRules) -> bool:
        """Tell whether the rules of all switches are equal, listed in the same order.

        A subclass may add rules that are in no column: what has another type is never equal.
        """
        return (type(self), self.names) == (type(other), other.names) and all(
            np.array_equal(column, other._columns[key]) for key, column in self._columns.items()
        )

    @property
    def counts(self) -> NDArray[np.int64]:
        """(switches,) the number of rules of each switch."""
        return np.diff(self._columns["rule_ends"], prepend=0).astype(np.int64)

    def count(self, name: str) -> int:
        """Return the number of rules of a switch."""
        return int(self.counts[self._index[name]])

    @property
    def total(self) -> int:
        """The number of rules of all switches."""
        return int(self.counts.sum())

    @property
    def groups(self) -> int:
        """The number of groups of all switches."""
        return len(self._columns["bucket_ends"])

    @cached_property
    def _lists(self) -> list[tuple[Action, ...]]:
        kinds = self._columns["action_kind"].tolist()
        arguments = self._columns["action_argument"].tolist()
        coded = list(zip(kinds, arguments, strict=True))
        ends = self._columns["list_ends"].tolist()
        return [_actions(coded[a:b]) for a, b in zip([0, *ends], ends, strict=False)]

    def _groups(self, switch: int) -> tuple[Group, ...]:
        groups = []
        first, end = _part(self._columns["group_ends"], switch)
        for number, group in enumerate(range(first, end), 1):
            buckets = slice(*_part(self._columns["bucket_ends"], group))
            lists = self._columns["buckets"][buckets].tolist()
            groups.append(Group(number, tuple(self._lists[action_list] for action_list in lists)))
        return tuple(groups)


def _part(ends: NDArray[np.integer], i: int) -> tuple[int, int]:
    return (int(ends[i - 1]) if i else 0), int(ends[i])


def _actions(coded: list[tuple[int, int]]) -> tuple[Action, ...]:
    members = tuple(port for kind, port in coded if kind == _MEMBER)
    return tuple(
        Choose(members, argument) if kind == _CHOOSE else _action(kind, argument)
        for kind, argument in coded
        if kind != _MEMBER
    )


def _action(kind: int, argument: int) -> Action:
    match kind:
        case 0:
            return Output(argument)
        case 1:
            return PushVlan()
        case 2:
            return PopVlan()
        case 3:
            return SetField("vlan_vid", _VLAN_PRESENT | argument)
        case 4:
            return SetField("vlan_pcp", argument)
        case _:
            return ToGroup(argument)
