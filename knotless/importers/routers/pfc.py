"""The virtual channels of routers, and which of them wait for each other under PFC.

The virtual channel of a packet on a link is its queue at the sender and its priority group at the
receiver. A priority group at an input waits for each queue in which its packets stand; a queue
waits for each priority group whose pauses stop it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import RuleError
from knotless.base.model_limits import PRIORITIES
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.findings import Findings
from knotless.importers.next_hops import VcMap
from knotless.importers.routers.fabric import RouterFabric, channel_ends
from knotless.importers.routers.qos import (
    DSCPS,
    MARKS,
    MAX_QUEUE,
    Map,
    PortQos,
    mark_text,
    port_qos,
)
from knotless.importers.routers.tunnels import Tunnel

MAX_LABELS = 65_000
"""The most labels of packets whose DSCP changes."""
Qos = Mapping[str, Mapping[str, PortQos]]
"""By router and port; port ``""`` is that of ports that are not listed."""


@dataclass(frozen=True)
class Priorities:
    """The virtual channels of packets: for each of the marks that they may have, by label.

    A mark is what packets carry: ``64 * PCP + DSCP``. Label 0 is that of packets in no tunnel,
    label i + 1 that of tunnel i. ``marks``, of which the first ``sent`` are those that hosts send,
    are one for each set of marks that all ports treat alike and some port does not drop, or gives
    a mark that it does not drop. ``shown`` is what they are called, and what each is divided by to
    show it. ``pausing``
    (channels, priority groups, queues) is whether a priority group at the receiver stops a queue
    of the sender.
    """

    vcs: VcMap
    marks: tuple[int, ...]
    sent: int
    labels: int
    pausing: NDArray[np.bool_]
    shown: tuple[str, int] = ("DSCP", 1)

    @property
    def repetitions(self) -> int:
        """The number of labels for one of next hops: one for each mark, if these change."""
        return 1 if self.vcs.labels is None else len(self.marks)

    def of_mark(self, number: int) -> tuple[VcMap, list[int]]:
        """Return the virtual channels of what is sent with ``marks[number]``, and its marks.

        These are by label, as they are shown; packets in tunnels have the DSCP inside.
        """
        others = range(len(self.marks)) if self.repetitions > 1 else ()
        blocks = [number, *(other for other in others if other != number)]
        labels = [(block, label) for block in blocks for label in range(self.labels)]
        vcs = self.vcs.with_labels([block * self.labels + label for block, label in labels])
        return vcs, [self.marks[block] // self.shown[1] for block, _ in labels]


def priorities_of(
    routed: RouterFabric,
    qos: Qos,
    tunnels: Sequence[Tunnel],
    unread: Sequence[tuple[int, NamedEnd]],
    switched: Mapping[NamedEnd, Sequence[str]],
    findings: Findings,
) -> Priorities:
    """Return the virtual channels of the packets that some port does not drop.

    ``unread`` are the ports that send besides those of hosts, with their numbers among all ends.
    ``switched`` are the member ports of VLANs.
    """
    every = {port for settings in qos.values() for port in settings.values()}
    marks, sent, alike = _lossless(every)
    outer = _outer_marks(qos, tunnels, marks, findings)
    remarked = any(port.remarks for port in every)
    if remarked and tunnels:
        findings.unclear("what tc_to_dscp_map of ports does to packets in tunnels")
    place = {mark: number for number, mark in enumerate(marks)}
    labels = 1 + len(tunnels)
    if remarked and len(marks) * labels > MAX_LABELS:
        raise RuleError(f"{len(marks)} DSCPs in {len(tunnels)} tunnels are too many to follow")
    count = len(routed.channels)
    pausing = np.zeros((count, PRIORITIES, MAX_QUEUE + 1), dtype=bool)
    entering: list[list[tuple[int, Map]]] = [[] for _ in routed.names]
    ends = list(channel_ends(routed))
    for channel, (_, (receiver, port)) in enumerate(ends):
        head = int(routed.channels.head[channel])
        entering[head].append((channel, port_qos(qos[receiver], port).classes))
    for number, edge in (*enumerate(routed.edges), *unread):
        # Nothing waits for a host's own link: the map for what enters there matters only where
        # packets get another DSCP, by class.
        listed = ports_of_hosts(routed, qos, switched, edge)
        maps = sorted({settings.classes for settings in listed})
        if len(maps) != 1 and any(port.remarks for port in qos[edge[0]].values()):
            findings.unclear(
                f"which of {len(maps)} maps gives packets of {edge[0]}:{edge[1]} their class",
                findings.cause(edge[0], "PORT_QOS_MAP"),
            )
        classes = maps[0] if maps else qos[edge[0]][""].classes
        entering[routed.names.index(edge[0])].append((count + number, classes))
    numbers: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    columns: list[tuple[int, int, int]] = []
    for channel, (sender, receiving) in enumerate(ends):
        out, into = port_qos(qos[sender[0]], sender[1]), port_qos(qos[receiving[0]], receiving[1])
        for group, paused in enumerate(into.pauses):
            for priority in paused & out.obeys:
                pausing[channel, group, out.stopped[priority]] = True
        by_map: dict[Map, int] = {}
        for entering_channel, classes in entering[int(routed.channels.tail[channel])]:
            if classes not in by_map:
                turn = _Turn(classes, out, into, sender[0], receiving[0])
                row = tuple(vc for mark in marks for vc in turn.vcs(mark, tunnels, outer))
                onward = tuple(place[alike[turn.onward(mark)]] for mark in marks)
                by_map[classes] = numbers.setdefault((row, onward), len(numbers))
            columns.append((entering_channel, channel, by_map[classes]))
    rows = np.array([row for row, _ in numbers], dtype=np.uint8).reshape(-1, len(marks) * labels)
    channel_in, out_channel, of_row = np.array(columns, dtype=np.uint32).reshape(-1, 3).T.copy()
    blocks = np.array([onward for _, onward in numbers], np.uint16).reshape(-1, len(marks), 1)
    onward_labels = (blocks * labels + np.arange(labels, dtype=np.uint16)).reshape(rows.shape)
    vcs = VcMap(channel_in, out_channel, of_row, rows, onward_labels if remarked else None)
    return Priorities(vcs, marks, sent, labels, pausing, _shown(every, findings))


def groups_of_hosts(
    routed: RouterFabric,
    qos: Qos,
    switched: Mapping[NamedEnd, Sequence[str]],
    edge: NamedEnd,
    mark: int,
) -> frozenset[int]:
    """Return the priority groups that packets of hosts with a mark are in where they enter."""
    ports = ports_of_hosts(routed, qos, switched, edge)
    return frozenset(port.groups[port.classes[mark]] for port in ports)


def ports_of_hosts(
    routed: RouterFabric, qos: Qos, switched: Mapping[NamedEnd, Sequence[str]], edge: NamedEnd
) -> list[PortQos]:
    """Return the settings that the ports of hosts behind an interface have."""
    router, interface = edge
    ports = switched.get(edge) or routed.wiring.ports(router, interface)
    return [qos[router][port] for port in ports if port in qos[router]]


@dataclass(frozen=True)
class _Turn:
    """From an input port of router ``sender`` (its classes) to one of router ``receiver``."""

    classes: Map
    out: PortQos
    into: PortQos
    sender: str
    receiver: str

    def onward(self, mark: int) -> int:
        """Return the mark that packets leave with."""
        if self.out.remarks is None:
            return mark
        return _with_dscp(mark, self.out.remarks[self.classes[mark]])

    def vcs(self, mark: int, tunnels: Sequence[Tunnel], outer: _Outer) -> Iterator[int]:
        """Yield the virtual channel of packets in no tunnel, then in each."""
        group = self.into.groups[self.into.classes[self.onward(mark)]]
        yield self.out.queues[self.classes[mark]] * PRIORITIES + group
        for number, tunnel in enumerate(tunnels):
            shown = outer[number, mark]
            queue = self.out.queues[self.classes[shown]]
            if self.sender == tunnel.source and tunnel.queues is not None:
                queue = tunnel.queues[self.classes[mark]]
            elif self.sender == tunnel.source:
                queue = self.out.queues[self.classes[mark]]
            group = self.into.groups[self.into.classes[shown]]
            if self.receiver == tunnel.peer and (tunnel.classes or tunnel.groups):
                kind = self.into.classes[shown]
                if tunnel.classes:
                    kind = tunnel.classes[shown % DSCPS]
                group = (tunnel.groups or self.into.groups)[kind]
            yield queue * PRIORITIES + group


_Outer = dict[tuple[int, int], int]
"""The outer mark by tunnel and inner mark."""


def _with_dscp(mark: int, dscp: int) -> int:
    return mark - mark % DSCPS + dscp


def _shown(ports: Iterable[PortQos], findings: Findings) -> tuple[str, int]:
    """Return what marks are called, and what they are divided by to show them.

    A packet may lose its PCP with its tag; what PCP 0 means is known only if it is lossy.
    """
    trusting = [port for port in ports if port.trusts_pcp]
    if not trusting:
        return "DSCP", 1
    if any(not port.lossless_marks.isdisjoint(range(DSCPS)) for port in trusting):
        findings.gap("whether packets keep their PCP: untagged ones have PCP 0, which is lossless")
    mixed = any(len({*port.classes[:DSCPS]}) > 1 for port in ports)
    return ("64*PCP+DSCP", 1) if mixed else ("PCP", DSCPS)


def _outer_marks(
    qos: Qos, tunnels: Sequence[Tunnel], marks: Iterable[int], findings: Findings
) -> _Outer:
    outer = {}
    for number, tunnel in enumerate(tunnels):
        maps = {port.classes for name, port in qos[tunnel.source].items() if name}
        for mark in marks:
            if tunnel.dscps is None:
                outer[number, mark] = mark
                continue
            dscps = sorted({tunnel.dscps[classes[mark]] for classes in maps} or {mark % DSCPS})
            if len(dscps) > 1:
                what = mark_text(mark, qos[tunnel.source].values())
                findings.unclear(
                    f"the DSCP of {what} in the tunnel from {tunnel.source}",
                    findings.cause(tunnel.source, "TUNNEL"),
                )
            outer[number, mark] = _with_dscp(mark, dscps[0])
    return outer


def _lossless(ports: AbstractSet[PortQos]) -> tuple[tuple[int, ...], int, Map]:
    """Return the marks of packets that some port keeps lossless, one of each set treated alike.

    These are the marks that hosts send, whose number is the second value, and those that ports
    make of them. The third value is by mark the one that stands for it. If no port is lossless,
    mark 0 stands for all packets.
    """
    maps = sorted({port.classes for port in ports})
    first: dict[tuple[int, ...], int] = {}
    alike = tuple(first.setdefault(tuple(classes[m] for classes in maps), m) for m in range(MARKS))
    remarks = {port.remarks for port in ports if port.remarks is not None}
    remarked = {
        m: {alike[_with_dscp(m, to[classes[m]])] for to in remarks for classes in maps}
        for m in first.values()
    }
    lossless = {m for port in ports for m in port.lossless_marks}
    sent = [m for m in remarked if lossless & _closure({m}, remarked)] or [0]
    every = _closure({*sent}, remarked)
    return (*sent, *sorted(every - {*sent})), len(sent), alike


def _closure(marks: AbstractSet[int], remarked: Mapping[int, AbstractSet[int]]) -> set[int]:
    """Return marks with all that ports make of them, one after the other."""
    closure, pending = set(marks), [*marks]
    while pending:
        more = remarked[pending.pop()] - closure
        closure |= more
        pending += more
    return closure


def judge_pfc(routed: RouterFabric, qos: Qos, findings: Findings) -> None:
    """Add what is unusual about the classes of packets at the routers of ``qos``."""
    for text, ports in _irregular(routed, qos):
        causes = (findings.cause(name, "PORT_QOS_MAP", port) for name, port in ports)
        findings.problem(text, *causes)


_Irregular = Iterator[tuple[str, Sequence[NamedEnd]]]
"""What is unusual, and the ports at which it is."""


def _channels(routed: RouterFabric, qos: Qos) -> Iterator[list[tuple[NamedEnd, PortQos]]]:
    """Yield the two ends of each channel between routers of ``qos``, with their settings."""
    for ends in channel_ends(routed):
        if all(router in qos for router, _ in ends):
            yield [(end, port_qos(qos[end[0]], end[1])) for end in ends]


def _irregular(routed: RouterFabric, qos: Qos) -> _Irregular:
    for (sender, out), (receiver, into) in _channels(routed, qos):
        for tc, dscp in enumerate(out.remarks or () if not into.trusts_pcp else ()):
            group = into.groups[into.classes[dscp]]
            if into.pauses[group] and out.queues[tc] != group:
                yield (
                    f"{sender[0]}:{sender[1]}: class {tc} has queue {out.queues[tc]} but DSCP"
                    f" {dscp}, which has priority group {group} at {receiver[0]}:{receiver[1]}",
                    [sender, receiver],
                )
    for name, of_router in qos.items():
        for port, settings in of_router.items():
            if settings.remarks is not None:
                continue  # the next switch gets another DSCP
            moved = [
                mark
                for mark in sorted(settings.lossless_marks)
                if settings.queues[settings.classes[mark]]
                != settings.groups[settings.classes[mark]]
            ]
            if moved and port:
                queue, group = (
                    settings.queues[settings.classes[moved[0]]],
                    settings.groups[settings.classes[moved[0]]],
                )
                what = mark_text(moved[0], [settings])
                text = f"{name}:{port}: {what} has queue {queue} but priority group {group}"
                yield text, [(name, port)]
