"""The part of the next-hop tables that one router's routes make, kept so that it can be read again.

The destinations of a fabric are kinds of ranges of addresses that all routers treat alike. Routes
of one router change one column of the fabric's table if they leave the kinds as they are: they
divide none, and make no two alike. Two kinds are alike if the sums of the hashes of their actions
are; these change by the hashes of one router.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import StateError
from knotless.base.sections import Sections
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.findings import Findings
from knotless.importers.next_hops import Actions, NextHops
from knotless.importers.prefixes import Prefix, Ranges
from knotless.importers.route_dump import NextHop
from knotless.importers.routers.cables import Cabling
from knotless.importers.routers.fabric import Wiring
from knotless.importers.routers.files import chosen_routes, connected_routes
from knotless.importers.routers.interfaces import Interfaces
from knotless.importers.routers.router import Router
from knotless.importers.routers.routes import (
    Addresses,
    PortsOfRouter,
    matched_actions,
    parsed_routes,
)

_END_BYTES = 17
"""Of the end of a range: IPv6 and Ethernet addresses follow those of IPv4."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
Action = tuple[int, tuple[int, ...]]
"""The kind and the ports of an action, see :class:`~knotless.importers.next_hops.Actions`."""


@dataclass(frozen=True)
class RouteState:
    """The numbering of routers, ports, ranges and kinds of addresses."""

    names: Sequence[str]
    port: Mapping[NamedEnd, int]
    peers: Mapping[NamedEnd, NamedEnd]
    addresses: Addresses
    hops: NextHops

    def sections(self) -> dict[str, bytes]:
        """Return it as sections of a state."""
        ports: dict[str, dict[str, int]] = {name: {} for name in self.names}
        for name, port in self.peers:
            ports[name][port] = self.port[name, port]
        ends = self.addresses.ranges.ends
        sums = row_sums(self.hops)
        by_kind = np.zeros(max([*self.addresses.kinds, -1]) + 1, dtype=np.uint64)
        for destination, kind in enumerate(self.addresses.kinds):
            if kind >= 0:
                by_kind[kind] = sums[destination]
        return {
            "routers": json.dumps({"ports": ports}).encode(),
            "ranges": b"".join(end.to_bytes(_END_BYTES, "big") for end in ends),
            "kind_of": self.addresses.kind_of.astype("<i8").tobytes(),
            "kinds": np.array(self.addresses.kinds, dtype="<i8").tobytes(),
            "sums": by_kind.tobytes(),
        }


@dataclass(frozen=True)
class ColumnChange:
    """The changes at a switch: the new action by destination.

    ``fewer`` is whether each new action only sends out of fewer ports, at least one.
    """

    switch: int
    actions: Mapping[int, Action]
    fewer: bool


def column_change(sections: Sections, before: Router, after: Router) -> ColumnChange:
    """Return what other routes change, if they change nothing else than the next hops of a router.

    ``before`` and ``after`` are the router with its routes of then and of now.

    Raises
    ------
    StateError
        They may change more, or the state does not fit.

    """
    names, ports = _ports_of(sections, before.name)
    switch = np.array([names.index(before.name)], dtype=np.uint64)
    ranges, kind_of = _ranges_of(sections)
    routers = [_ports(router, ports) for router in (before, after)]
    old, new = (
        _routes(column, ports_of[1])
        for column, ports_of in zip((before, after), routers, strict=True)
    )
    old_hops, new_hops = dict(old), dict(new)
    for prefix in {**old_hops, **new_hops}:
        if old_hops.get(prefix) != new_hops.get(prefix):
            changed_hops = (*old_hops.get(prefix, ()), *new_hops.get(prefix, ()))
            refuse_unless_onward(before.name, routers[0][1], prefix, changed_hops, ranges.place)
    actions = Actions()
    columns = [
        _columns(*of_router, ranges, actions) for of_router in zip(routers, (old, new), strict=True)
    ]
    depth = max(map(len, columns))
    none = np.full(len(ranges), -1, dtype=np.int32)
    was, now = (np.stack([*column, *[none] * (depth - len(column))]) for column in columns)
    changed = (was != now).any(axis=0)
    here = np.array(actions.to_hosts(), dtype=np.int32)
    if np.isin(was[:, changed], here).any() or np.isin(now[:, changed], here).any():
        raise StateError("networks of hosts have other routes")
    listed = actions.listed()
    hashes = hashes_of(listed)
    sums = _numbers(sections, "sums", "<u8").astype(np.uint64)
    new_actions: dict[int, Action] = {}
    fewer = True
    for kind in np.unique(kind_of[changed]).tolist():
        places = np.flatnonzero(kind_of == kind)
        if not 0 <= kind < len(sums):
            raise StateError("addresses are routed that were not")
        if (now[:, places] != now[:, places[:1]]).any():
            raise StateError("addresses that were routed alike no longer are")
        for layer in range(depth):
            of_layer = (layer, places[:1])
            sums[kind : kind + 1] -= mixed(hashes, was[of_layer], switch, layer)
            sums[kind : kind + 1] += mixed(hashes, now[of_layer], switch, layer)
        before_it, after_it = (listed[column[0, places[0]]] for column in (was, now))
        if before_it != after_it:
            new_actions[kind] = after_it
            fewer = fewer and bool(after_it[1]) and {*after_it[1]} < {*before_it[1]}
    if len(np.unique(sums)) != len(sums):
        raise StateError("addresses are routed alike that were not")
    kinds = _numbers(sections, "kinds", "<i8").tolist()
    by_destination = {n: new_actions[kind] for n, kind in enumerate(kinds) if kind in new_actions}
    return ColumnChange(int(switch[0]), by_destination, fewer)


def _routes(router: Router, wiring: Wiring) -> list[tuple[Prefix, tuple[NextHop, ...]]]:
    chosen = chosen_routes(router, Findings())
    if chosen is None:
        raise StateError(f"the routes of {router.name} are not known")
    routes = {**connected_routes(router), **chosen, **wiring.own_routes(router)}
    if any("@" in text for text in routes):
        raise StateError(f"{router.name} is a bridge")
    return parsed_routes(routes)


def refuse_unless_onward(
    name: str, wiring: Wiring, prefix: Prefix, hops: Sequence[NextHop], ends: Container[int]
) -> None:
    """Raise StateError unless a route is to other routers alone, which its ports are cabled to.

    ``ends`` are those of all ranges of addresses that routers tell apart.
    """
    if not (prefix.first in ends and prefix.end in ends):
        raise StateError(f"no router had a route to {prefix.text}")
    for hop in hops:
        members = () if hop.interface is None else wiring.ports(name, hop.interface)
        if (
            hop.interface is None
            or hop.address is None
            or wiring.is_own(name, hop)
            or wiring.is_edge(name, hop) is not False
            or not all((name, port) in wiring.cabling.peers for port in members)
        ):
            raise StateError(f"the route of {name} to {prefix.text} is to no other router")


def _columns(
    router: PortsOfRouter,
    routes: Sequence[tuple[Prefix, tuple[NextHop, ...]]],
    ranges: Ranges,
    actions: Actions,
) -> list[NDArray[np.int32]]:
    """Return the actions of a router as :func:`.destinations_of` makes its columns."""
    findings = Findings()
    longest, *shorter = matched_actions(router, routes, ranges, actions, findings)
    if findings != Findings():
        raise StateError(f"not all next hops of {router[0]} are known")
    nothing = np.int32(actions.send(()))
    return [np.where(longest < 0, nothing, longest), *shorter]


def _ports_of(sections: Sections, name: str) -> tuple[list[str], dict[str, int]]:
    ports: Any = sections.json("routers").get("ports")
    if not isinstance(ports, dict) or not isinstance(ports.get(name), dict):
        raise StateError(f"{name} is no router of the state")
    of_router = ports[name]
    if not all(type(number) is int for number in of_router.values()):
        raise StateError("ports of the state are no numbers")
    return [*ports], of_router


def _numbers(sections: Sections, name: str, kind: str) -> NDArray[Any]:
    data = sections.view(name)
    if len(data) % np.dtype(kind).itemsize:
        raise StateError("the numbers of the state do not fit")
    return np.frombuffer(data, dtype=kind)


def _ranges_of(sections: Sections) -> tuple[Ranges, NDArray[np.int64]]:
    data = bytes(sections.view("ranges"))
    places = range(0, len(data), _END_BYTES)
    ends = [int.from_bytes(data[place : place + _END_BYTES], "big") for place in places]
    kind_of = _numbers(sections, "kind_of", "<i8")
    if len(kind_of) != max(0, len(ends) - 1) or sorted({*ends}) != ends:
        raise StateError("ranges of the state do not fit")
    return Ranges(ends, {end: place for place, end in enumerate(ends)}), kind_of


def _ports(router: Router, ports: Mapping[str, int]) -> PortsOfRouter:
    """Return the ports of a router; where its cables lead does not matter here."""
    peers = {(router.name, port): (router.name, port) for port in ports}
    number = {(router.name, port): place for port, place in ports.items()}
    return router.name, Wiring(Interfaces([router]), Cabling(peers)), number


def hashes_of(actions: Sequence[Action]) -> NDArray[np.uint64]:
    """Return a hash of each action."""
    texts = [repr((kind, tuple(map(int, ports)))).encode() for kind, ports in actions]
    data = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


def mixed(
    hashes: NDArray[np.uint64], values: NDArray[Any], switches: NDArray[np.uint64], layer: int
) -> NDArray[np.uint64]:
    """Return the hashes of actions of switches in a layer, 0 where a switch has none."""
    mixed = hashes[np.maximum(values, 0)] ^ (switches * _ODD) ^ np.uint64(layer * 0x1000193)
    for factor in _MIX:
        mixed = (mixed ^ (mixed >> np.uint64(30))) * factor
    return np.where(values < 0, np.uint64(0), mixed ^ (mixed >> np.uint64(31)))


def row_sums(hops: NextHops) -> NDArray[np.uint64]:
    """Return by destination the sum of the hashes of what all switches do, in all layers."""
    layers = [hops.table, *(() if hops.fallbacks is None else hops.fallbacks)]
    hashes = hashes_of(hops.actions.listed())
    switches = np.arange(layers[0].shape[1], dtype=np.uint64)
    sums = np.zeros(len(layers[0]), dtype=np.uint64)
    for layer, values in enumerate(layers):
        sums += mixed(hashes, values, switches, layer).sum(axis=1, dtype=np.uint64)
    return sums
