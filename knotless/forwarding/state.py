"""The forwarding state of a fabric, explored from everything that hosts can send.

To a switch, a packet is a destination, a label (in our plans the VLAN) and a virtual channel. The
state maps each packet on each input channel of a switch to its output channels. It is made from a
plan (:mod:`knotless.forwarding.from_plan`), from rules (:mod:`knotless.forwarding.openflow.reader`)
or from the tables of 802.1Q switches (:mod:`knotless.forwarding.dot1q.state`). The Rust core stores
it in columns, and computes the entries that packets can reach while it traces them.

Channels are numbered: first those between switches, then those of the link of each host, whose two
directions share a number.
Destinations are numbered: first the hosts, then the floods, then addresses that no host has. A
flood is what is sent to all hosts or to a group; sources that switches treat alike share one.
Addresses that all switches treat alike are one destination. Nobody expects packets for an address
that no host has to arrive, but on their way they wait for others, and others for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.routing.graphs.channels import Channels, End
from knotless.routing.multicast import MulticastGroup
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import NO_FAILURES, Failures


class Hop(NamedTuple):
    """A channel, and the label and priority that a packet has on it."""

    channel: int
    label: int
    priority: int


class Trace(NamedTuple):
    """The trace of one packet, along all of its paths if it has a choice.

    ``hops`` are the channels that it takes, including those of hosts. ``delivered`` are the numbers
    of the hosts that receive it, with the label at delivery. ``dropped`` are the switches that
    drop it, ``unsupported`` the switches whose actions cannot be followed. ``loops`` is true if a
    copy comes back, unchanged, to a channel that it has passed: it goes round for ever.
    ``repeated`` is true if one does, or two copies pass the same channel; what they do from there
    on is listed once.
    """

    hops: list[Hop]
    delivered: list[tuple[int, int]]
    dropped: list[int]
    unsupported: list[int]
    repeated: bool
    loops: bool


_MOST_TRACED = 100
"""Traces of packets that a state keeps."""


class FirstFree(NamedTuple):
    """Packets that hold a virtual channel while they wait for the first free of several.

    Each is a channel and a priority. ``source`` and ``destination`` are the numbers of one packet.
    """

    held: tuple[int, int]
    requested: list[tuple[int, int]]
    source: int
    destination: int


@dataclass(frozen=True)
class ChannelEnds:
    """The ends of the channels between switches that they leave and enter, and those of hosts."""

    leaves: list[End]
    enters: list[End]
    hosts: list[End]


def channel_ends_of(fabric: Fabric, channels: Channels) -> ChannelEnds:
    """Return the ends of all channels and hosts of ``fabric``."""
    index = fabric.switch_index
    return ChannelEnds(
        list(zip(channels.tail.tolist(), channels.out_port.tolist(), strict=True)),
        list(zip(channels.head.tolist(), channels.in_port.tolist(), strict=True)),
        [(index[host.switch], host.port) for host in fabric.hosts],
    )


def members_of(fabric: Fabric, groups: Sequence[MulticastGroup]) -> list[list[bool]]:
    """Return the receivers of a frame to all hosts, then of a frame to each group, by host."""
    members = [[True] * len(fabric.hosts)]
    for group in groups:
        of_group = set(group.members)
        members.append([host.name in of_group for host in fabric.hosts])
    return members


@dataclass(frozen=True)
class ForwardingState:
    """The forwarding state of a fabric.

    ``groups`` are the declared multicast groups; 'all hosts' is not listed. ``silent`` are the
    switches without known rules; they drop everything. ``concurrent`` are states whose packets
    are in flight at the same time, on the same channels. ``changing`` says that switches hold
    rules of several generations: a packet has a choice where these differ. ``failures`` separate
    hosts: what these send to each other is to be dropped. ``more`` are the names of destinations
    after the hosts, in imported fabrics, which have no floods; ports whose far end is not known are
    among them, as sources.
    """

    fabric: Fabric
    channels: Channels
    groups: tuple[MulticastGroup, ...]
    core: core.State
    silent: tuple[str, ...] = ()
    concurrent: tuple[ForwardingState, ...] = ()
    changing: bool = False
    failures: Failures = NO_FAILURES
    more: tuple[str, ...] = ()
    _traced: dict[tuple[int, int], Trace] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def pairs(self) -> int:
        """The number of ordered pairs of different hosts."""
        return len(self.fabric.hosts) * (len(self.fabric.hosts) - 1)

    @cached_property
    def loads(self) -> NDArray[np.float64]:
        """(channels,) the number of delivered pairs whose packets take each channel.

        A packet with several paths is divided equally among them.
        """
        return self.core.loads

    @cached_property
    def dependencies(self) -> NDArray[np.int64]:
        """(dependencies, 6) the virtual channels that are held while others are waited for.

        Columns: held channel and priority; waited-for channel and priority; source host and
        destination of a packet that does so. Those of the ``concurrent`` states follow.
        """
        if not self.concurrent:
            return self.core.edges
        return np.concatenate([self.core.edges, *(state.dependencies for state in self.concurrent)])

    @cached_property
    def priorities(self) -> frozenset[int]:
        """The priorities in which packets wait between switches."""
        return frozenset(self.core.vcs).union(*(state.priorities for state in self.concurrent))

    @cached_property
    def alone(self) -> NDArray[np.bool_]:
        """(dependencies,) whether some packet waits for the second virtual channel alone.

        The others are those of ``first_free``: their packets wait for other ones as well.
        """
        return np.concatenate([self.core.alone, *(state.alone for state in self.concurrent)])

    @cached_property
    def first_free(self) -> list[FirstFree]:
        """The packets that wait for the first free of several virtual channels."""
        own = [FirstFree(*wait) for wait in self.core.first_free]
        return own + [wait for state in self.concurrent for wait in state.first_free]

    def trace(self, source: str, destination: str) -> Trace:
        """Trace a packet from a host to another, or to an address that no host has (names)."""
        number = self.destination_number(source, destination)
        if number is None:
            raise KeyError(destination)
        return self.trace_number(source, number)

    def flood(self, source: str, group: int = 0) -> Trace:
        """Trace a flood from a host to all (0), or to the group with this index, from 1."""
        host = self.fabric.host_index[source]
        return self.trace_number(source, self.core.flood_of(host, group))

    def trace_number(self, source: str, destination: int) -> Trace:
        """Trace a packet from a host to a destination number."""
        number = self.source_number(source)
        if number is None:
            raise KeyError(source)
        if (number, destination) not in self._traced:
            if len(self._traced) >= _MOST_TRACED:
                self._traced.clear()
            trace = self.core.trace(number, destination)
            self._traced[number, destination] = Trace([*map(Hop._make, trace[0])], *trace[1:])
        return self._traced[number, destination]

    def destination_name(self, number: int) -> str:
        """Return the name of a destination: a host, ``all``, ``multicast:N`` or an address."""
        if number < len(self.fabric.hosts):
            return self.fabric.hosts[number].name
        if self.more:
            return self.more[number - len(self.fabric.hosts)]
        floods, place = self.core.floods, number - len(self.fabric.hosts)
        if place >= len(floods):
            return self.core.unassigned[place - len(floods)]
        group, _ = floods[place]
        return "all" if group == 0 else f"multicast:{self.groups[group - 1].number}"

    def source_number(self, name: str) -> int | None:
        """Return the number of a host, or of a port that sends, or None."""
        if name in self.fabric.host_index:
            return self.fabric.host_index[name]
        place = self.more.index(name) if name in self.more else -1
        return len(self.fabric.hosts) + place if place >= 0 else None

    def destination_number(self, source: str, name: str) -> int | None:
        """Return the number of the destination ``name`` as seen by ``source``, or None."""
        names = {f"multicast:{group.number}": place for place, group in enumerate(self.groups, 1)}
        group = {"all": 0, **names}.get(name) if self.core.floods else None
        if group is None:
            more = {name: len(self.fabric.hosts) + i for i, name in enumerate(self.more)}
            number = {**more, **self.fabric.host_index}.get(name)
            if number is None and not self.more:
                return self.core.unassigned_of(self.fabric.host_index[source], name)
            return number
        return self.core.flood_of(self.fabric.host_index[source], group)

    def shares(self, source: str, destination: int) -> list[tuple[Hop, float]]:
        """Return the share of packets from a host that takes each hop to a destination number.

        Each of several next hops takes an equal share. A hop follows those that lead to it. Empty
        if a packet can loop.
        """
        number = self.source_number(source)
        if number is None:
            raise KeyError(source)
        return [(Hop(*hop), share) for hop, share in self.core.shares(number, destination)]

    def difference(self, other: ForwardingState) -> str:
        """Describe a packet that the two states treat differently; empty if there is none."""
        packet = self.core.difference(other.core)
        if packet is None:
            return ""
        source, destination, (channel, label, priority) = packet
        to = self.destination_name(destination)
        origin = "from its host"
        if channel < len(self.channels):
            origin = f"from {self.channels.name(channel, priority)}"
        sender = self.fabric.hosts[source].name
        return f"the packet from {sender} to {to}, coming {origin} with label {label}"
