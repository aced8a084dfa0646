"""The virtual channels of routers, and which of them wait for each other under PFC.

The virtual channel of a packet on a link is its queue at the sender and its priority group at the
receiver. A priority group at an input waits for each queue in which its packets stand; a queue
waits for each priority group whose pauses stop it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forwarding.imported.findings import Findings
from forwarding.imported.next_hops import VcMap
from forwarding.imported.router_fabric import RouterFabric, channel_ends
from forwarding.imported.router_qos import DSCPS, MAX_QUEUE, PRIORITIES, Map, PortQos, port_qos
from forwarding.imported.router_tunnels import Tunnel

Qos = Mapping[str, Mapping[str, PortQos]]
"""By router and port; port ``""`` is that of ports that are not listed."""


@dataclass(frozen=True)
class Priorities:
    """The virtual channels of packets: for each of ``dscps``, by label.

    Label 0 is that of packets in no tunnel, label i + 1 that of tunnel i. ``dscps`` are one for
    each set of DSCPs that all ports treat alike and some port does not drop. ``pausing``
    (channels, priority groups, queues) is whether a priority group at the receiver stops a queue
    of the sender.
    """

    vcs: VcMap
    dscps: tuple[int, ...]
    labels: int
    pausing: NDArray[np.bool_]

    def of_dscp(self, number: int) -> VcMap:
        """Return the virtual channels of the packets with DSCP ``dscps[number]``."""
        first = number * self.labels
        return self.vcs.with_labels(range(first, first + self.labels))


def priorities_of(
    made: RouterFabric, qos: Qos, tunnels: Sequence[Tunnel], findings: Findings
) -> Priorities:
    """Return the virtual channels of the packets that some port does not drop."""
    every = [port for of in qos.values() for port in of.values()]
    dscps = _lossless(every, {port.classes for port in every})
    outer = _outer_dscps(qos, tunnels, dscps, findings)
    count = len(made.channels)
    pausing = np.zeros((count, PRIORITIES, MAX_QUEUE + 1), dtype=bool)
    entering: list[list[tuple[int, Map]]] = [[] for _ in made.names]
    ends = list(channel_ends(made))
    for channel, (_, (far, port)) in enumerate(ends):
        at = int(made.channels.head[channel])
        entering[at].append((channel, port_qos(qos[far], port).classes))
    index = made.fabric.switch_index
    for number, host in enumerate(made.fabric.hosts):
        # Nothing waits for a host's own link, so the map for what enters there does not matter.
        at = index[host.switch]
        entering[at].append((count + number, qos[made.names[at]][""].classes))
    numbers: dict[tuple[int, ...], int] = {}
    columns: list[tuple[int, int, int]] = []
    for channel, (near, far_end) in enumerate(ends):
        out, into = port_qos(qos[near[0]], near[1]), port_qos(qos[far_end[0]], far_end[1])
        for group, sent in enumerate(into.pauses):
            for priority in sent & out.obeys:
                pausing[channel, group, out.stopped[priority]] = True
        by_map: dict[Map, int] = {}
        for link, classes in entering[int(made.channels.tail[channel])]:
            if classes not in by_map:
                turn = _Turn(classes, out, into, near[0], far_end[0])
                row = tuple(vc for dscp in dscps for vc in turn.vcs(dscp, tunnels, outer))
                by_map[classes] = numbers.setdefault(row, len(numbers))
            columns.append((link, channel, by_map[classes]))
    rows = np.array([*numbers], dtype=np.uint8).reshape(-1, len(dscps) * (1 + len(tunnels)))
    link_in, out_channel, of_row = np.array(columns, dtype=np.uint32).reshape(-1, 3).T.copy()
    return Priorities(VcMap(link_in, out_channel, of_row, rows), dscps, 1 + len(tunnels), pausing)


@dataclass(frozen=True)
class _Turn:
    """From an input port of router ``near`` (its classes) to one of router ``far``."""

    classes: Map
    out: PortQos
    into: PortQos
    near: str
    far: str

    def vcs(self, dscp: int, tunnels: Sequence[Tunnel], outer: _Outer) -> Iterator[int]:
        """Yield the virtual channel of packets in no tunnel, then in each."""
        group = self.into.groups[self.into.classes[dscp]]
        yield self.out.queues[self.classes[dscp]] * PRIORITIES + group
        for number, tunnel in enumerate(tunnels):
            shown = outer[number, dscp]
            queue = self.out.queues[self.classes[shown]]
            if self.near == tunnel.source and tunnel.queues is not None:
                queue = tunnel.queues[self.classes[dscp]]
            elif self.near == tunnel.source:
                queue = self.out.queues[self.classes[dscp]]
            group = self.into.groups[self.into.classes[shown]]
            if self.far == tunnel.peer and (tunnel.classes or tunnel.groups):
                kind = (tunnel.classes or self.into.classes)[shown]
                group = (tunnel.groups or self.into.groups)[kind]
            yield queue * PRIORITIES + group


_Outer = dict[tuple[int, int], int]
"""The outer DSCP by tunnel and inner DSCP."""


def _outer_dscps(
    qos: Qos, tunnels: Sequence[Tunnel], dscps: Iterable[int], findings: Findings
) -> _Outer:
    found = {}
    for number, tunnel in enumerate(tunnels):
        maps = {port.classes for name, port in qos[tunnel.source].items() if name}
        for dscp in dscps:
            if tunnel.dscps is None:
                found[number, dscp] = dscp
                continue
            shown = sorted({tunnel.dscps[of[dscp]] for of in maps} or {dscp})
            if len(shown) > 1:
                findings.unclear(f"the DSCP of DSCP {dscp} in the tunnel from {tunnel.source}")
            found[number, dscp] = shown[0]
    return found


def _lossless(ports: list[PortQos], maps: set[Map]) -> tuple[int, ...]:
    """Return the first of each set of DSCPs alike in all maps, if some port keeps it lossless.

    If no port is lossless, DSCP 0 stands for all packets.
    """
    kept = frozenset().union(*(port.lossless_dscps for port in set(ports)))
    kinds: dict[tuple[int, ...], int] = {}
    for dscp in range(DSCPS):
        kinds.setdefault(tuple(of[dscp] for of in sorted(maps)), dscp)
    return tuple(dscp for dscp in kinds.values() if dscp in kept) or (0,)


def irregular(made: RouterFabric, qos: Qos) -> Iterator[str]:
    """Yield what is unusual about PFC on cables between routers."""
    for near, far in channel_ends(made):
        out, into = port_qos(qos[near[0]], near[1]), port_qos(qos[far[0]], far[1])
        lost = sorted(frozenset().union(*into.pauses) - out.obeys)
        if lost:
            yield (
                f"{far[0]}:{far[1]} pauses priority {lost[0]}, which {near[0]}:{near[1]} does not"
                " obey: its packets can be lost"
            )
    for name, of_router in qos.items():
        for port, of in of_router.items():
            moved = [
                d
                for d in sorted(of.lossless_dscps)
                if of.queues[of.classes[d]] != of.groups[of.classes[d]]
            ]
            if moved and port:
                queue, group = of.queues[of.classes[moved[0]]], of.groups[of.classes[moved[0]]]
                yield (
                    f"{name}:{port}: DSCP {moved[0]} has queue {queue} but priority group {group}"
                )
