"""The forwarding state of a fabric, explored from everything that hosts can send.

To a switch, a packet is a destination, a label (the VLAN of our plans) and a virtual channel. The
state says, for each link by which packets enter a switch, where each of them goes on. It comes from
a plan (:mod:`forwarding.from_plan`), from rules (:mod:`forwarding.openflow.reader`) or from the
tables of 802.1Q switches (:mod:`forwarding.dot1q.state`); the Rust core holds it in columns, and
fills in what packets can reach while it follows them.

Links are numbered: the channels between switches, then for each host the link to and from it.
Destinations are numbered: the hosts, then the floods (what is sent to all hosts or to a group, once
for each set of sources that switches treat alike).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knotless_core import forwarding as core
from routing.graphs.channels import Channels
from routing.multicast import MulticastGroup
from topologies.fabric import Fabric

End = tuple[int, int]
"""A switch (its index) and a port."""


class Hop(NamedTuple):
    """A link, and the label and priority that a packet has on it."""

    link: int
    label: int
    priority: int


class Trace(NamedTuple):
    """What becomes of one packet, on all of its ways where it has a choice.

    ``hops`` are the links that it takes, hosts' included; ``delivered`` the hosts that get it, by
    number, with the label it then has; ``dropped`` the switches that drop it, ``unsupported`` those
    that do with it what cannot be followed. ``again``: a copy comes twice by one link, unchanged.
    """

    hops: list[Hop]
    delivered: list[tuple[int, int]]
    dropped: list[int]
    unsupported: list[int]
    again: bool


@dataclass(frozen=True)
class Links:
    """What the Rust core must know of a fabric: the ends of its channels, and its hosts."""

    leaves: list[End]
    enters: list[End]
    hosts: list[End]


def links_of(fabric: Fabric, channels: Channels) -> Links:
    """Return the ends of all channels and hosts of ``fabric``."""
    index = fabric.switch_index
    return Links(
        list(zip(channels.tail.tolist(), channels.out_port.tolist(), strict=True)),
        list(zip(channels.head.tolist(), channels.in_port.tolist(), strict=True)),
        [(index[host.switch], host.port) for host in fabric.hosts],
    )


def members_of(fabric: Fabric, groups: Sequence[MulticastGroup]) -> list[list[bool]]:
    """Return who gets what is sent to all hosts, then to each group, by host."""
    members = [[True] * len(fabric.hosts)]
    for group in groups:
        of_group = set(group.members)
        members.append([host.name in of_group for host in fabric.hosts])
    return members


@dataclass(frozen=True)
class ForwardingState:
    """A fabric's state.

    ``groups`` are the declared multicast groups, beside 'all hosts'; ``silent`` are the switches
    of which nothing is known: they drop everything. ``beside`` are states whose packets are under
    way at the same time, through the same channels.
    """

    fabric: Fabric
    channels: Channels
    groups: tuple[MulticastGroup, ...]
    core: core.State
    silent: tuple[str, ...] = ()
    beside: tuple[ForwardingState, ...] = ()

    @property
    def pairs(self) -> int:
        """The number of ordered pairs of different hosts."""
        return len(self.fabric.hosts) * (len(self.fabric.hosts) - 1)

    @cached_property
    def loads(self) -> NDArray[np.float64]:
        """(channels,) the delivered pairs whose packets take each channel.

        Packets with a choice count in equal shares.
        """
        return self.core.loads

    @cached_property
    def dependencies(self) -> NDArray[np.int64]:
        """(dependencies, 6) which virtual channel is held while which is waited for.

        Columns: channel and priority that are held; those that are waited for; a source (host) and
        a destination whose packets do it. Those of the states ``beside`` follow.
        """
        return np.concatenate([self.core.edges, *(state.dependencies for state in self.beside)])

    def trace(self, source: str, destination: str) -> Trace:
        """Follow what one host sends to another (names)."""
        return self.trace_number(source, self.fabric.host_index[destination])

    def flood(self, source: str, group: int = 0) -> Trace:
        """Follow what a host sends to all (0), or to the group at that place from 1."""
        host = self.fabric.host_index[source]
        return self.trace_number(source, self.core.flood_of(host, group))

    def trace_number(self, source: str, destination: int) -> Trace:
        """Follow what a host sends to a destination by its number."""
        found = self.core.trace(self.fabric.host_index[source], destination)
        return Trace([Hop(*hop) for hop in found[0]], *found[1:])

    def destination_name(self, number: int) -> str:
        """Return the name of a destination: a host, ``all`` or ``multicast:N``."""
        if number < len(self.fabric.hosts):
            return self.fabric.hosts[number].name
        group, _ = self.core.floods[number - len(self.fabric.hosts)]
        return "all" if group == 0 else f"multicast:{self.groups[group - 1].number}"

    def destination_number(self, source: str, name: str) -> int | None:
        """Return the number of what ``source`` calls by the name of a destination, if there is."""
        names = {f"multicast:{group.number}": place for place, group in enumerate(self.groups, 1)}
        group = {"all": 0, **names}.get(name)
        if group is None:
            return self.fabric.host_index.get(name)
        return self.core.flood_of(self.fabric.host_index[source], group)

    def difference(self, other: ForwardingState) -> str:
        """Return a packet that two states of one fabric treat differently, or an empty text."""
        found = self.core.difference(other.core)
        if found is None:
            return ""
        source, destination, (link, label, priority) = found
        to = self.destination_name(destination)
        where = "from its host"
        if link < len(self.channels):
            where = f"from {self.channels.name(link, priority)}"
        sender = self.fabric.hosts[source].name
        return f"what {sender} sends to {to}, where it comes {where} with label {label}"
