"""Waits for the shared pools of switches, which close cycles that channels alone do not.

An ingress buffer of a priority without a reserve of a longest frame takes frames only while its
pool has room, and the pool is held by frames of other inputs. So a virtual channel into such a
buffer waits for the pool, and the pool waits for every virtual channel that a frame in it may take
next. Frames that hosts send hold pools as well, though nothing waits for the links of hosts.

These waits are nodes and edges of the channel dependency graph
(:mod:`knotless.verification.dependencies`): a node for each switch and pool, an edge from each
virtual channel without a reserve to the pool behind it, and one from the pool to each virtual
channel that its frames request. Without a cycle in the joint graph, no deadlock is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, Channels
from knotless.routing.graphs.dependencies import Edges, find_cycle
from knotless.verification.verdict_parts import pool_name

End = tuple[int, int]
"""A switch (its index) and a port."""


class Share(NamedTuple):
    """The pool that an ingress buffer takes from, and whether it has a longest frame's reserve."""

    pool: str
    reserved: bool


class Packet(NamedTuple):
    """A packet by the numbers of its traffic, source and destination."""

    traffic: int
    source: int
    destination: int


Shares = Mapping[End, Mapping[int, Share]]
"""The share of each ingress buffer with a pool, by end and priority."""
Nodes = Callable[[int, int], Iterable[int]]
"""Returns the nodes of a packet on a channel, by its virtual channel there, if they can wait."""


@dataclass(frozen=True)
class Waits:
    """The dependencies of all packets of a fabric.

    Attributes
    ----------
    channels : Channels
        The channels between switches.
    rows : array of shape (rows, 6)
        Held channel and priority, requested ones, source and destination.
    groups : array of shape (rows,)
        The priority of the ingress buffer that each row holds.
    waiting : array of shape (waiting,)
        The rows that wait; what they hold may be lossy.
    nodes : array of shape (waiting,)
        The nodes that these request.
    edges : array of shape (edges, 2)
        The dependencies between lossless virtual channels.
    causes : array of shape (edges,)
        The row of each edge.
    classes : sequence of int
        The class of each priority: the ingress buffers of a class are paused together.
    traffics : sequence of ForwardingState
        The states whose rows stand one after the other.
    nodes_of : function
        The nodes of a packet on a channel, by its virtual channel.
    waiting_of : function
        The priorities of a channel that can wait.
    source_pools : mapping of int to set of str
        By switch the pools that frames of its own hosts may hold.
    pools_held : function, optional
        Returns those that packets of a traffic and a source may hold at its switch, by numbers;
        None: any of these.

    """

    channels: Channels
    rows: Edges
    groups: NDArray[np.int64]
    waiting: NDArray[np.int64]
    nodes: NDArray[np.int64]
    edges: Edges
    causes: NDArray[np.int64]
    classes: Sequence[int]
    traffics: Sequence[ForwardingState]
    nodes_of: Nodes
    waiting_of: Callable[[int], Iterable[int]]
    source_pools: Mapping[int, frozenset[str]]
    pools_held: Callable[[int, int], frozenset[str] | None] = lambda _traffic, _source: None


class PoolStep(NamedTuple):
    """A step of a cycle: the names of what is held and requested, and a packet."""

    holds: str
    requests: str
    packet: Packet


def pool_cycle(waits: Waits, shares: Shares) -> list[PoolStep]:
    """Return a shortest cycle of virtual channels and pools; empty if there is none.

    Whether a host's frame takes a channel first is looked up only for channels of a cycle that is
    otherwise complete.
    """
    if all(share.reserved for of_end in shares.values() for share in of_end.values()):
        return []
    return _Graph(waits, shares).cycle()


class _Graph:
    def __init__(self, waits: Waits, shares: Shares) -> None:
        self.waits, self.shares = waits, shares
        self.first = len(waits.channels) * VCS_PER_CHANNEL
        self.pools: dict[tuple[int, str], int] = {}

    def cycle(self) -> list[PoolStep]:
        waiting = dict.fromkeys(self._waiting())
        if not waiting:
            return []
        own: dict[tuple[int, int], int] = {}
        for row, node, pool in self._of_rows():
            own.setdefault((pool, node), row)
        maybe = {edge for edge in self._of_hosts() if edge not in own}
        certain = np.concatenate([self.waits.edges, _array(waiting), _array(own)])
        while True:
            cycle = find_cycle(np.concatenate([certain, _array(maybe)]))
            steps = list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
            wrong = {step for step in steps if step in maybe and self._packet(step) is None}
            if not wrong:
                return self._named(steps, own)
            switches = {self._pool(pool)[0] for pool, _ in wrong}
            maybe = {
                step
                for step in maybe
                if self._pool(step[0])[0] not in switches or self._packet(step) is not None
            }

    def _node(self, switch: int, pool: str) -> int:
        return self.pools.setdefault((switch, pool), self.first + len(self.pools))

    def _pool(self, node: int) -> tuple[int, str]:
        return list(self.pools)[node - self.first]

    def _buffers(self, channel: int, group: int) -> Iterator[Share]:
        """Yield the shares of the ingress buffers that a priority of a channel may fill."""
        channels, classes = self.waits.channels, self.waits.classes
        of_end = self.shares.get((int(channels.head[channel]), int(channels.in_port[channel])), {})
        for priority, share in of_end.items():
            if classes[priority % len(classes)] == classes[group % len(classes)]:
                yield share

    @cached_property
    def _lossless(self) -> list[tuple[int, int]]:
        """Every virtual channel that can wait, as channel and priority."""
        return [
            (channel, priority)
            for channel in range(len(self.waits.channels))
            for priority in sorted({*self.waits.waiting_of(channel)})
        ]

    def _waiting(self) -> Iterator[tuple[int, int]]:
        """Yield the virtual channels that wait for pools, with the nodes of these."""
        for channel, group in self._lossless:
            for share in self._buffers(channel, group):
                if not share.reserved:
                    pool = self._node(int(self.waits.channels.head[channel]), share.pool)
                    yield channel * VCS_PER_CHANNEL + group, pool

    def _of_rows(self) -> Iterator[tuple[int, int, int]]:
        """Yield (row, requested node, pool) of packets between switches."""
        waits = self.waits
        rows = waits.waiting
        columns = np.stack([waits.rows[rows, 0], waits.groups[rows], waits.nodes], axis=1)
        distinct, first = np.unique(columns, axis=0, return_index=True)
        for (channel, group, node), row in zip(
            distinct.tolist(), rows[first].tolist(), strict=True
        ):
            for share in self._buffers(channel, group):
                pool = self.pools.get((int(waits.channels.head[channel]), share.pool))
                if pool is not None:
                    yield row, node, pool

    def _of_hosts(self) -> Iterator[tuple[int, int]]:
        """Yield the pools that frames of hosts may hold, with every channel that leaves there."""
        leaving: dict[int, list[int]] = {}
        for channel, group in self._lossless:
            tail = int(self.waits.channels.tail[channel])
            leaving.setdefault(tail, []).append(channel * VCS_PER_CHANNEL + group)
        for (switch, name), pool in self.pools.items():
            if name in self.waits.source_pools.get(switch, ()):
                yield from ((pool, node) for node in leaving.get(switch, ()))

    def _packet(self, step: tuple[int, int]) -> Packet | None:
        """Return a packet of a host that holds a pool and requests a node, if there is one."""
        switch, pool = self._pool(step[0])
        return self._first_hops(switch).get((pool, step[1]))

    @cached_property
    def _by_switch(self) -> dict[int, dict[tuple[str, int], Packet]]:
        return {}

    def _first_hops(self, switch: int) -> dict[tuple[str, int], Packet]:
        """Return by pool and node a packet of a host of a switch that holds one for the other."""
        if switch not in self._by_switch:
            packets: dict[tuple[str, int], Packet] = {}
            for number, state in enumerate(self.waits.traffics):
                for source in _sources(state, switch):
                    held = self.waits.pools_held(number, source)
                    pools = self.waits.source_pools[switch] if held is None else held
                    for destination in _destinations(state, source):
                        packet = Packet(number, source, destination)
                        for channel, priority in _leaving(state, packet, switch):
                            for node in self.waits.nodes_of(channel, priority):
                                for pool in pools:
                                    packets.setdefault((pool, node), packet)
            self._by_switch[switch] = packets
        return self._by_switch[switch]

    def _named(
        self, steps: Sequence[tuple[int, int]], own: Mapping[tuple[int, int], int]
    ) -> list[PoolStep]:
        packets = [self._packet_of(step, own) for step in steps]
        last = [packet for packet in packets if packet is not None][-1:]
        named = []
        for (holds, requests), packet in zip(steps, packets, strict=True):
            # What waits for a pool is the packet of the step before, on its way into it.
            last = last if packet is None else [packet]
            named.append(PoolStep(self._name(holds), self._name(requests), last[0]))
        return named

    def _packet_of(
        self, step: tuple[int, int], own: Mapping[tuple[int, int], int]
    ) -> Packet | None:
        if step in own:
            return self._of_row(own[step])
        if step[0] >= self.first:
            return self._packet(step)
        if step[1] >= self.first:
            return None
        edge = np.flatnonzero((self.waits.edges == step).all(axis=1))[0]
        return self._of_row(int(self.waits.causes[edge]))

    def _of_row(self, row: int) -> Packet:
        counts = np.cumsum([len(state.dependencies) for state in self.waits.traffics])
        traffic = int(np.searchsorted(counts, row, side="right"))
        return Packet(traffic, *self.waits.rows[row, 4:6].tolist())

    def _name(self, node: int) -> str:
        channels = self.waits.channels
        if node < self.first:
            return channels.name(*divmod(node, VCS_PER_CHANNEL))
        switch, pool = self._pool(node)
        return pool_name(pool, channels.names[switch])


def _array(edges: Iterable[tuple[int, int]]) -> Edges:
    return np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)


def _sources(state: ForwardingState, switch: int) -> Iterator[int]:
    """Yield the numbers of the hosts of a switch, and of its ports whose far end is not known."""
    name = state.channels.names[switch]
    for number, host in enumerate(state.fabric.hosts):
        if host.switch == name:
            yield number
    for number, text in enumerate(state.more, len(state.fabric.hosts)):
        if text.startswith(f"{name}:"):
            yield number


def _destinations(state: ForwardingState, source: int) -> Iterator[int]:
    hosts = len(state.fabric.hosts)
    yield from (host for host in range(hosts) if host != source)
    if state.more:
        yield from (n for n in range(hosts, hosts + len(state.more)) if n != source)
        return
    for group in {group for group, sources in state.core.floods if source in sources}:
        yield state.core.flood_of(source, group)
    for address in dict.fromkeys(state.core.unassigned):
        number = state.core.unassigned_of(source, address)
        if number is not None:
            yield number


def _leaving(state: ForwardingState, packet: Packet, switch: int) -> Iterator[tuple[int, int]]:
    try:
        hops = state.core.trace(packet.source, packet.destination)[0]
    except ValueError:
        return  # it sends nothing there
    for channel, _, priority in hops:
        if channel < len(state.channels) and state.channels.tail[channel] == switch:
            yield channel, priority
