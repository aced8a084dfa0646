"""The routes of all routers as next-hop tables for the destinations that hosts have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forwarding.imported.findings import Findings
from forwarding.imported.next_hops import HERE, NOT_SENT, Actions, NextHops, classes_at
from forwarding.imported.prefixes import Prefix, Ranges, prefix_of, ranges_of
from forwarding.imported.router_cables import Routes, is_own
from forwarding.imported.router_fabric import RouterFabric
from forwarding.route_dump import NextHop
from routing.graphs.channels import End

_Attached = list[tuple[int, Prefix]]
"""Hosts with a prefix behind their interface."""


@dataclass(frozen=True)
class Destinations:
    """The next hops of all routers. Destinations are the hosts, then those called ``more``.

    ``sent`` (destinations, destinations) is whether a host sends to a destination.
    """

    hops: NextHops
    more: tuple[str, ...]
    sent: NDArray[np.bool_]


def destinations_of(
    made: RouterFabric, routes: Mapping[str, Routes | None], findings: Findings
) -> Destinations:
    """Return the tables for every range of addresses that is attached to some router.

    Ranges that all routers treat alike are one destination. A host is the destination of a range
    behind its interface; no one sends to a host without one.
    """
    parsed = {of: _parsed(found) for of, found in routes.items() if found is not None}
    ranges = ranges_of([prefix for found in parsed.values() for prefix, _ in found])
    actions = Actions()
    drop, unknown = actions.send(()), actions.unknown()
    table = np.full((len(ranges), len(made.names)), unknown, dtype=np.int32)
    attached: list[tuple[int, Prefix]] = []
    host = {edge: number for number, edge in enumerate(made.edges)}
    for at, name in enumerate(made.names):
        if name not in parsed:
            continue
        rows = []
        for prefix, hops in parsed[name]:
            rows.append((prefix, _action(made, at, hops, actions, findings, prefix)))
            interfaces = {hop.interface for hop in hops if hop.interface}
            attached += [(host[name, i], prefix) for i in interfaces if (name, i) in host]
        table[:, at] = ranges.matched(rows, drop)
    here = np.array(actions.with_port(HERE), dtype=np.int32)
    used = np.flatnonzero(np.isin(table, here).any(axis=1))
    kinds, first, kind = np.unique(table[used], axis=0, return_index=True, return_inverse=True)
    of_range = np.full(len(ranges), -1, dtype=np.int64)
    of_range[used] = kind.reshape(-1)
    own = _own_kinds(made, attached, ranges, of_range, table, here)
    left = [number for number in range(len(kinds)) if number not in set(own)]
    rows_of = [*own, *left]
    owners = _owners(attached, ranges, used[first[left]])
    return Destinations(
        _next_hops(made, kinds, rows_of, owners, actions, unknown),
        tuple(ranges.text(int(used[first[number]])) for number in left),
        _sent(len(own), own, left, owners),
    )


def _parsed(routes: Routes) -> list[tuple[Prefix, tuple[NextHop, ...]]]:
    return [(prefix_of(text), hops) for text, hops in routes.items()]


def _action(
    made: RouterFabric,
    at: int,
    hops: Sequence[NextHop],
    actions: Actions,
    findings: Findings,
    prefix: Prefix,
) -> int:
    """Return the action of a route; one with a next hop that nobody knows is unknown."""
    name = made.names[at]
    ports: set[int] = set()
    for hop in hops:
        interface = hop.interface
        if interface is None or is_own(interface):
            continue
        edge = made.interfaces.is_edge(name, interface, hop.address is not None)
        if edge is None:
            findings.gap(f"what port {interface} of {name} leads to")
            return actions.unknown()
        members = made.interfaces.ports(name, interface)
        linked = [port for port in members if (name, port) in made.interfaces.cabling.far]
        if not edge and not linked:
            findings.gap(f"the next hop of {name} to {prefix.text} by {interface}")
            return actions.unknown()
        ports.update([HERE] if edge else [made.port[name, port] for port in linked])
    return actions.send(sorted(ports))


def _own_kinds(
    made: RouterFabric,
    attached: _Attached,
    ranges: Ranges,
    of_range: NDArray[np.int64],
    table: NDArray[np.int32],
    here: NDArray[np.int32],
) -> list[int]:
    """Return for each host the kind of a range behind its interface, -1: it has none."""
    index = {name: at for at, name in enumerate(made.names)}
    own = [-1] * len(made.edges)
    for host, prefix in attached:
        if own[host] < 0:
            at = index[made.edges[host][0]]
            places = np.arange(len(ranges))[ranges.of(prefix)]
            places = places[np.isin(table[places, at], here)]
            own[host] = int(of_range[places[0]]) if len(places) else -1
    return own


def _owners(attached: _Attached, ranges: Ranges, places: NDArray[np.int64]) -> list[int]:
    """Return a host behind whose interface each range is: that with the longest prefix."""
    best = np.full(len(ranges), -1, dtype=np.int64)
    for host, prefix in sorted(attached, key=lambda of: -of[1].size):
        best[ranges.of(prefix)] = host
    return [int(host) for host in best[places]]


def _next_hops(
    made: RouterFabric,
    kinds: NDArray[np.int32],
    rows_of: Sequence[int],
    owners: Sequence[int],
    actions: Actions,
    unknown: int,
) -> NextHops:
    classes = np.zeros((len(rows_of), len(made.names)), dtype=np.uint16)
    action_of: list[NDArray[np.uint32]] = []
    rows = np.array(rows_of, dtype=np.int64)
    here = np.array(actions.with_port(HERE), dtype=np.int32)
    for at in range(len(made.names)):
        of = (
            np.where(rows >= 0, kinds[rows, at], unknown)
            if len(kinds)
            else np.full(len(rows), unknown)
        )
        classes[:, at], found = classes_at(of, np.isin(of, here))
        action_of.append(found.astype(np.uint32) if len(found) else np.array([0], np.uint32))
    index = made.fabric.switch_index
    ends: list[End] = [(index[host.switch], host.port) for host in made.fabric.hosts]
    ends += [ends[owner] for owner in owners]
    return NextHops(made.channels, ends, classes, action_of, actions)


def _sent(
    hosts: int, own: Sequence[int], left: Sequence[int], owners: Sequence[int]
) -> NDArray[np.bool_]:
    count = hosts + len(left)
    sent = np.zeros((count, count), dtype=bool)
    sent[:hosts] = True
    np.fill_diagonal(sent, False)
    sent[:, [host for host, kind in enumerate(own) if kind < 0]] = False
    for place, owner in enumerate(owners, hosts):
        sent[owner, place] = False
    return sent


def first_labels(sent: NDArray[np.bool_], label: int) -> NDArray[np.uint16]:
    """Return the labels at the start of what is sent."""
    return np.where(sent, label, NOT_SENT).astype(np.uint16)


def connected(keys: Iterable[str]) -> dict[str, tuple[NextHop, ...]]:
    """Return the routes to the prefixes of interfaces, from keys ``Ethernet0|10.0.0.1/31``."""
    found: dict[str, tuple[NextHop, ...]] = {}
    for key in keys:
        interface, _, address = key.partition("|")
        if "/" in address:
            found[prefix_of(address).text] = (NextHop(None, interface),)
    return found
