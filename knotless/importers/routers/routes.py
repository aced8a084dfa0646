"""The routes of all routers as next-hop tables, for the addresses of hosts and all others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import RuleError
from knotless.base.memory import Cost, refuse_beyond
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.findings import Findings
from knotless.importers.next_hops import HERE, NOT_SENT, Actions, NextHops, classes_of
from knotless.importers.prefixes import ROUTED, Prefix, Ranges, prefix_of, ranges_of
from knotless.importers.route_dump import NextHop
from knotless.importers.routers.cables import Routes
from knotless.importers.routers.fabric import RouterFabric, Wiring
from knotless.importers.routers.onward import onward_of
from knotless.importers.routers.tunnels import Server, Tunnel
from knotless.importers.routers.unassigned import unassigned_ranges
from knotless.routing.graphs.channels import End

_Attached = list[tuple[int, Prefix]]
"""Hosts with a prefix behind their interface."""
_Parsed = Mapping[str, list[tuple[Prefix, tuple[NextHop, ...]]]]
"""Routes by router."""
PortsOfRouter = tuple[str, Wiring, Mapping[NamedEnd, int]]
"""The name of a router, where interfaces lead, and the numbers of ports."""


@dataclass(frozen=True)
class Destinations:
    """The next hops of all routers. Destinations are the hosts, then those called ``more``.

    ``sent`` (ends, destinations) is whether an end sends to a destination. Label 0 is that of
    packets in no tunnel, label i + 1 that of tunnel i. ``unread`` are the ports whose far end is
    not known, with their numbers: they send to all. The last destinations are addresses that no
    host has.
    """

    hops: NextHops
    more: tuple[str, ...]
    sent: NDArray[np.bool_]
    labels: int
    addresses: Addresses
    unread: tuple[tuple[int, NamedEnd], ...]

    @property
    def pairs(self) -> int:
        """The number of pairs whose packets are to arrive."""
        ends = len(self.hops.ends)
        sent = self.sent[: ends - len(self.unread), :ends]
        return int(np.count_nonzero(sent) - np.count_nonzero(sent.diagonal()))

    def an_address(self, number: int) -> int | None:
        """Return an address of a destination, as a number; None if it is a tunnel."""
        addresses = self.addresses
        if addresses.kinds[number] >= 0:
            places = np.flatnonzero(addresses.kind_of == addresses.kinds[number])
            return addresses.ranges.ends[int(places[0])]
        try:
            return prefix_of(self.more[number - addresses.hosts].split(" ")[0]).first
        except RuleError:
            return None

    @property
    def first_labels(self) -> NDArray[np.uint16]:
        """The labels of packets when hosts send them, shape of ``sent``: in no tunnel."""
        return np.where(self.sent, 0, NOT_SENT).astype(np.uint16)


@dataclass(frozen=True)
class Addresses:
    """The addresses of destinations.

    ``kind_of`` is the kind of each range of ``ranges``, ``kinds`` that of each destination, -1: not
    known. The first ``hosts`` are hosts, whose addresses are also ``attached``.
    """

    ranges: Ranges
    kind_of: NDArray[np.int64]
    kinds: Sequence[int]
    attached: _Attached
    hosts: int

    def number_of(self, address: str) -> int | None:
        """Return the destination that an address belongs to, or None; a host before others."""
        try:
            place = bisect_right(self.ranges.ends, prefix_of(address).first) - 1
        except RuleError:
            return None
        if not 0 <= place < len(self.ranges) or self.kind_of[place] < 0:
            return None
        numbers = [n for n, kind in enumerate(self.kinds) if kind == self.kind_of[place]]
        behind = {
            host
            for host, prefix in self.attached
            if self.ranges.places(prefix).start <= place < self.ranges.places(prefix).stop
        }
        owned = [number for number in numbers if number >= self.hosts or number in behind]
        return min(owned, default=None)

    def prefixes(self, destination: int) -> list[str]:
        """Return the addresses of a destination as prefixes; those of tunnels are not known."""
        if self.kinds[destination] < 0:
            return []
        places = np.flatnonzero(self.kind_of == self.kinds[destination])
        if destination < self.hosts:
            behind = [
                self.ranges.places(prefix) for host, prefix in self.attached if host == destination
            ]
            places = np.array(
                [
                    place
                    for place in places
                    if any(block.start <= place < block.stop for block in behind)
                ],
                dtype=int,
            )
        return [text for place in places.tolist() for text in self.ranges.prefixes(place)]


def destinations_of(
    routed: RouterFabric,
    routes: Mapping[str, Routes | None],
    tunnels: Sequence[Tunnel],
    servers: Sequence[Server],
    unread: Sequence[NamedEnd],
    findings: Findings,
) -> Destinations:
    """Return the tables for every range of addresses that some router forwards.

    Ranges that all routers treat alike are one destination. A host is the destination of a range
    behind its interface; nothing is sent to a host without one. Ranges that are attached to no
    router, as those of a default route, are sent too. ``unread`` ports send to everything.
    """
    parsed = {
        name: parsed_routes(router_routes)
        for name, router_routes in routes.items()
        if router_routes is not None
    }
    prefixes = [prefix for router_routes in parsed.values() for prefix, _ in router_routes]
    ends = [tunnel.address for tunnel in tunnels] + [server.address for server in servers]
    ranges = ranges_of([*prefixes, *ends])
    spaces = ranges.spaces
    actions = Actions()
    unknown = actions.unknown()
    layers, flooded = _layers(routed, parsed, ranges, actions, findings)
    _settle_exits(layers, actions)
    table = layers[0]
    attached = list(_attached(routed, parsed))
    special = _special_rows(routed, tunnels, servers, ranges, table, actions)
    arrives: NDArray[np.bool_] = np.isin(table, actions.with_port(HERE))
    delivered = arrives.copy()
    for end in ends:
        delivered[ranges.places(end)] = False
    is_server = np.zeros(len(ranges), dtype=bool)
    for server in servers:
        is_server[ranges.places(server.address)] = True
    nobodys = np.flatnonzero(~delivered.any(axis=1) & ~is_server)
    nothing = actions.send(())
    unassigned = unassigned_ranges(layers, nobodys, ranges, prefixes, flooded, nothing)
    used = np.flatnonzero(delivered.any(axis=1))
    alike = np.column_stack([*(layer[used] for layer in layers), spaces[used]])
    kinds, first, kind = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    of_range = np.full(len(ranges), -1, dtype=np.int64)
    of_range[used] = kind.reshape(-1)
    of_range[unassigned.places] = len(kinds) + unassigned.kind
    own_kinds = _own_kinds(routed, attached, ranges, of_range, delivered)
    others = sorted({*range(len(kinds))} - {*own_kinds})
    owner_of = _owners(routed, attached, ranges, arrives)
    owners = [int(host) for host in owner_of[used[first[others]]]]
    starts = np.array([ranges.places(end).start for end in ends], dtype=int)
    homes = [int(host) for host in owner_of[starts]]
    texts = [ranges.text(int(used[first[number]])) for number in others]
    texts += [f"the tunnel from {tunnel.source}" for tunnel in tunnels]
    texts += [server.text for server in servers]
    switches = routed.fabric.switches
    index = {name: router for router, name in enumerate(routed.names)}
    texts += [f"{switches[index[router]].name}:{port}" for router, port in unread]
    texts += unassigned.names(ranges, {*texts})
    count = len(own_kinds) + len(owners) + len(ends) + len(unread)
    more = len(unassigned.rows[0])
    refuse_beyond("this fabric", Cost.ROUTER_PAIR.bytes_for(count * (count + more)), RuleError)
    nowhere = np.full((1, kinds.shape[1]), unknown)
    plain = np.concatenate([kinds, nowhere])[[*own_kinds, *others]]
    below = [layer[starts] for layer in layers[1:]]
    rows = np.concatenate(
        [plain[:, :-1].astype(np.int32), np.concatenate([special, *below], axis=1)]
    )
    of_unread = np.full((len(unread), rows.shape[1]), nothing, dtype=np.int32)
    rows = np.concatenate([rows, of_unread, np.concatenate(unassigned.rows, axis=1)])
    by_layer = np.stack(np.split(rows, len(layers), axis=1))
    sent = _sent(own_kinds, owners, (len(tunnels), len(servers)), (len(unread), more))
    sent_spaces = np.concatenate(
        [plain[:, -1], np.full(len(ends) + len(unread), ROUTED), unassigned.spaces]
    )
    sent[: len(own_kinds)] &= _in_one_space(attached, sent_spaces, len(own_kinds))
    next_hops = _next_hops(routed, by_layer, [*owners, *homes], actions, len(plain), len(tunnels))
    ends_of_unread = [(index[router], routed.port[router, port]) for router, port in unread]
    return Destinations(
        replace(next_hops, ends=[*next_hops.ends, *ends_of_unread], unread=len(unread)),
        tuple(texts),
        sent,
        1 + len(tunnels),
        Addresses(
            ranges,
            of_range,
            [
                *own_kinds,
                *others,
                *([-1] * (len(ends) + len(unread))),
                *range(len(kinds), len(kinds) + more),
            ],
            attached,
            len(own_kinds),
        ),
        tuple(enumerate(unread, len(next_hops.ends))),
    )


def _layers(
    routed: RouterFabric, parsed: _Parsed, ranges: Ranges, actions: Actions, findings: Findings
) -> tuple[list[NDArray[np.int32]], dict[int, NDArray[np.bool_]]]:
    """Return the actions of all routers, (ranges, routers), and the ranges that bridges flood.

    First those of the longest prefixes, then those of shorter ones; see :meth:`Ranges.matched`.
    """
    unknown, spaces = actions.unknown(), ranges.spaces
    refuse_beyond("this fabric", 24 * len(ranges) * len(routed.names), RuleError)
    layers: list[NDArray[np.int32]] = [
        np.full((len(ranges), len(routed.names)), unknown, dtype=np.int32)
    ]
    flooded: dict[int, NDArray[np.bool_]] = {}
    for router, name in enumerate(routed.names):
        if name not in parsed:
            continue
        otherwise = np.full(len(ranges), actions.send(()), dtype=np.int32)
        if any(prefix.space != ROUTED for prefix, _ in parsed[name]):
            otherwise[spaces != ROUTED] = unknown  # a bridge sends it to all ports
        longest, *shorter = matched_actions(
            (name, routed.wiring, routed.port), parsed[name], ranges, actions, findings
        )
        if unknown in otherwise:
            flooded[router] = (longest < 0) & (spaces != ROUTED)
        matched = [np.where(longest < 0, otherwise, longest), *shorter]
        while len(layers) < len(matched):
            layers.append(np.full_like(layers[0], -1))
        for layer, column in zip(layers, matched, strict=False):
            layer[:, router] = column
    return layers, flooded


def _special_rows(
    routed: RouterFabric,
    tunnels: Sequence[Tunnel],
    servers: Sequence[Server],
    ranges: Ranges,
    table: NDArray[np.int32],
    actions: Actions,
) -> NDArray[np.int32]:
    """Return the actions of all routers for the end of each tunnel, then for each server."""
    rows = np.empty((len(tunnels) + len(servers), len(routed.names)), dtype=np.int32)
    for number, tunnel in enumerate(tunnels):
        rows[number] = table[ranges.places(tunnel.address).start]
        rows[number, routed.names.index(tunnel.peer)] = actions.relabel(0)
    encap = {tunnel.source: number for number, tunnel in enumerate(tunnels, 1)}
    for number, server in enumerate(servers, len(tunnels)):
        rows[number] = table[ranges.places(server.address).start]
        for name in (name for name, standby in server.standby.items() if standby):
            into = actions.relabel(encap[name]) if name in encap else actions.unknown()
            rows[number, routed.names.index(name)] = into
    return rows


def parsed_routes(routes: Routes) -> list[tuple[Prefix, tuple[NextHop, ...]]]:
    """Return routes with their prefixes read; raises RuleError."""
    return [(prefix_of(text), hops) for text, hops in routes.items()]


def _attached(routed: RouterFabric, parsed: _Parsed) -> Iterator[tuple[int, Prefix]]:
    """Yield the hosts with each prefix that is routed to their interface."""
    host = {edge: number for number, edge in enumerate(routed.edges)}
    for name, router_routes in parsed.items():
        behind: dict[int, list[int]] = {}
        for prefix, hops in router_routes:
            if id(hops) not in behind:
                ends = dict.fromkeys((name, hop.interface or "") for hop in hops)
                behind[id(hops)] = [host[end] for end in ends if end in host]
            for number in behind[id(hops)]:
                yield number, prefix


def matched_actions(
    router: PortsOfRouter,
    routes: Sequence[tuple[Prefix, tuple[NextHop, ...]]],
    ranges: Ranges,
    actions: Actions,
    findings: Findings,
) -> list[NDArray[np.int32]]:
    """Return by range the action of a router's longest prefix that holds it, -1: it has none.

    Those of shorter prefixes follow, see :meth:`Ranges.matched`.
    """
    name, wiring, _ = router
    numbers: dict[tuple[int, tuple[bool, ...]], int] = {}
    direct: dict[int, list[NextHop]] = {}
    numbered: list[tuple[Prefix, int]] = []
    for prefix, hops in routes:
        # Routes mostly share their next hops; which of the direct ones are exits depends on the
        # prefix as well.
        if id(hops) not in direct:
            direct[id(hops)] = [hop for hop in hops if hop.address is None]
        exits = tuple(wiring.leaves(name, hop, prefix) for hop in direct[id(hops)])
        if (id(hops), exits) not in numbers:
            numbers[id(hops), exits] = action_of(router, hops, actions, findings, prefix)
        numbered.append((prefix, numbers[id(hops), exits]))
    return ranges.matched(numbered)


def action_of(
    router: PortsOfRouter,
    hops: Sequence[NextHop],
    actions: Actions,
    findings: Findings,
    prefix: Prefix,
) -> int:
    """Return the action of a route; unknown if that of one of its next hops is."""
    name, wiring, number = router
    onward = onward_of(name, wiring, hops, prefix, findings)
    if onward is None:
        return actions.unknown()
    if onward.ends:
        return actions.end()
    ports = sorted(
        {number[name, port] for port in onward.links} | ({HERE} if onward.hosts else set())
    )
    if onward.of_link:
        return actions.link(ports)
    return actions.send(ports, sorted({number[name, port] for port in onward.exits}))


def _own_kinds(
    routed: RouterFabric,
    attached: _Attached,
    ranges: Ranges,
    of_range: NDArray[np.int64],
    delivered: NDArray[np.bool_],
) -> list[int]:
    """Return for each host the kind of a range behind its interface, -1: it has none.

    ``delivered`` (ranges, routers) is whether a router has the range behind some interface.
    """
    index = {name: router for router, name in enumerate(routed.names)}
    kinds = [-1] * len(routed.edges)
    for host, prefix in attached:
        if kinds[host] < 0:
            of_prefix = ranges.places(prefix)
            places = np.arange(of_prefix.start, of_prefix.stop)
            places = places[delivered[places, index[routed.edges[host][0]]]]
            kinds[host] = int(of_range[places[0]]) if len(places) else -1
    return kinds


def _owners(
    routed: RouterFabric, attached: _Attached, ranges: Ranges, arrives: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return by range a host behind whose interface it is: that with the longest prefix.

    ``arrives`` (ranges, routers) is whether a router has the range behind some interface.
    """
    index = {name: router for router, name in enumerate(routed.names)}
    best = np.full(len(ranges), -1, dtype=np.int64)
    for host, prefix in sorted(attached, key=lambda attachment: -attachment[1].size):
        places = ranges.places(prefix)
        here = arrives[places, index[routed.edges[host][0]]]
        best[places] = np.where(here, host, best[places])
    return best


def _settle_exits(layers: Sequence[NDArray[np.int32]], actions: Actions) -> None:
    """Let a packet that leaves by a route out of the fabric arrive, if its network is nowhere else.

    ``layers`` (ranges, routers) are changed. A packet for a network that a router is connected to
    arrives there alone; elsewhere it has left the fabric.
    """
    here = [*actions.with_port(HERE), actions.end()]
    connected = np.isin(layers[0], here).any(axis=1)
    arriving = np.array(actions.arriving(), dtype=np.int32)
    for layer in layers:
        rows = layer[~connected]
        layer[~connected] = np.where(rows < 0, rows, arriving[rows])


def _next_hops(
    routed: RouterFabric,
    rows: NDArray[np.int32],
    owners: Sequence[int],
    actions: Actions,
    first_tunnel: int,
    tunnels: int,
) -> NextHops:
    """Return the tables; ``rows`` (layers, destinations, routers) are the actions.

    ``owners`` are the hosts at which destinations after the hosts are, -1: at none.
    """
    classes, action_of = classes_of(rows[0], actions)
    index = routed.fabric.switch_index
    ends: list[End] = [(index[host.switch], host.port) for host in routed.fabric.hosts]
    ends += [ends[owner] if owner >= 0 else (0, 0) for owner in owners]
    towards = np.array([-1, *range(first_tunnel, first_tunnel + tunnels)], dtype=np.int64)
    labels = np.arange(tunnels + 1, dtype=np.uint16)
    relabelled = np.repeat(labels[:, None], tunnels + 1, axis=1)
    return NextHops(
        routed.channels,
        ends,
        classes,
        action_of,
        actions,
        towards,
        np.ascontiguousarray(relabelled),
        np.ascontiguousarray(rows[1:]),
    )


def _in_one_space(attached: _Attached, spaces: NDArray[np.int64], hosts: int) -> NDArray[np.bool_]:
    """Return whether a destination is an address of a kind that a host has: IP, or of its VLAN.

    ``spaces`` are those of the destinations; the result is (hosts, destinations).
    """
    of_host: list[set[int]] = [set() for _ in range(hosts)]
    for host, prefix in attached:
        of_host[host].add(prefix.space)
    reachable = np.zeros((hosts, len(spaces)), dtype=bool)
    for host, spaces_of_host in enumerate(of_host):
        reachable[host] = np.isin(spaces, [*(spaces_of_host or {ROUTED})])
    return reachable


def _sent(
    own_kinds: Sequence[int], owners: Sequence[int], ends: tuple[int, int], more: tuple[int, int]
) -> NDArray[np.bool_]:
    """Return who sends to whom: hosts to all hosts and servers, but to no tunnel.

    ``ends`` are the numbers of tunnels and of servers. ``more`` are those of unread ports, which
    send to all that hosts send to, and of addresses that no host has.
    """
    hosts, (tunnels, servers), (unread, unassigned) = len(own_kinds), ends, more
    others = hosts + len(owners)
    count = others + tunnels + servers + unread
    sent = np.zeros((count, count + unassigned), dtype=bool)
    sent[:hosts] = True
    sent[count - unread :] = True
    np.fill_diagonal(sent[hosts:, hosts:], False)
    sent[:, [host for host, kind in enumerate(own_kinds) if kind < 0]] = False
    for place, owner in enumerate(owners, hosts):
        sent[owner, place] = False
    sent[:, others : others + tunnels] = False
    sent[:, count - unread : count] = False
    return sent
