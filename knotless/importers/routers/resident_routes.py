"""The routes of all routers, kept so that those of one router can change.

Destinations of a fabric are kinds of ranges of addresses that all routers treat alike. Other routes
of one router change what it does with some kinds if they leave the kinds as they are: they divide
none, and make no two alike. Two kinds are alike if the sums of the hashes of their actions are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from knotless.base.errors import StateError
from knotless.importers.causes import Cause
from knotless.importers.findings import Findings
from knotless.importers.next_hops import Actions
from knotless.importers.prefixes import Prefix, prefix_of
from knotless.importers.route_dump import NextHop
from knotless.importers.routers.cables import Routes
from knotless.importers.routers.fabric import RouterFabric
from knotless.importers.routers.files import chosen_routes, connected_routes
from knotless.importers.routers.route_state import (
    Action,
    hashes_of,
    mixed,
    refuse_unless_onward,
    row_sums,
)
from knotless.importers.routers.router import Router
from knotless.importers.routers.routes import Destinations, action_of

_Table = dict[tuple[int, int], tuple[Prefix, tuple[NextHop, ...]]]
"""The routes of a router by the first address and the end of their prefixes."""


ChangedRoutes = tuple[str, Mapping[str, tuple[NextHop, ...] | None]]
"""The name of a router and its next hops by prefix, None: the route has gone."""


@dataclass(frozen=True)
class RouteChange:
    """Other routes of a router: by destination its new action. ``commit`` makes them current."""

    switch: int
    actions: Mapping[int, Action]
    commit: Callable[[], None]


class ResidentRoutes:
    """The routes of the routers of a fabric, and what each kind of addresses is treated like."""

    def __init__(
        self,
        routers: Sequence[Router],
        routed: RouterFabric,
        routes: Mapping[str, Routes],
        destinations: Destinations,
        inferred: bool,
    ) -> None:
        self._routed, self._wiring, self._inferred = routed, routed.wiring, inferred
        self._index = {name: number for number, name in enumerate(routed.names)}
        self._sources = {router.name: router.source for router in routers}
        self._routes = {name: dict(of_router) for name, of_router in routes.items()}
        self._tables: dict[str, _Table] = {}
        self._destinations = destinations
        self._actions = Actions()
        addresses = destinations.addresses
        self._ends, self._place = addresses.ranges.ends, addresses.ranges.place
        self._kind_of = addresses.kind_of

    @cached_property
    def _places(self) -> dict[int, list[int]]:
        """The places of the ranges of each kind."""
        order = np.argsort(self._kind_of, kind="stable")
        kinds, first = np.unique(self._kind_of[order], return_index=True)
        parts = np.split(order, first[1:])
        return {int(kind): part.tolist() for kind, part in zip(kinds, parts, strict=True)}

    @cached_property
    def _numbers(self) -> dict[int, list[int]]:
        """The destinations of each kind."""
        numbers: dict[int, list[int]] = {}
        for number, kind in enumerate(self._destinations.addresses.kinds):
            numbers.setdefault(kind, []).append(number)
        return numbers

    @cached_property
    def _sums(self) -> dict[int, int]:
        """The sums of the hashes of each kind."""
        sums = row_sums(self._destinations.hops).tolist()
        return {kind: sums[of_kind[-1]] for kind, of_kind in self._numbers.items() if kind >= 0}

    @cached_property
    def _alike(self) -> Counter[int]:
        """The number of kinds with each sum: one."""
        return Counter(self._sums.values())

    def differing(self, router: Router) -> ChangedRoutes:
        """Return the routes of a router that are not what they were, as its files list them.

        Raises StateError if they are not known.
        """
        name = router.name
        if name not in self._index:
            raise StateError(f"{name} is no switch of the fabric")
        chosen = chosen_routes(router, Findings())
        if chosen is None:
            raise StateError(f"the routes of {name} are not known")
        new = {**connected_routes(router), **chosen, **self._wiring.own_routes(router)}
        old = self._routes[name]
        return name, {t: new.get(t) for t in {**old, **new} if old.get(t) != new.get(t)}

    def change(self, name: str, changed: Mapping[str, tuple[NextHop, ...] | None]) -> RouteChange:
        """Return what a router does after some of its routes have changed, None: they have gone.

        Raises
        ------
        StateError
            They may change more than what the router does with destinations.

        """
        if self._inferred:
            raise StateError("cables are inferred, perhaps from routes")
        old, table = self._routes[name], self._table(name)
        new = dict(table)
        prefixes = []
        for text, hops in changed.items():
            prefixes.append(prefix := prefix_of(text))
            every = (*old.get(text, ()), *(hops or ()))
            refuse_unless_onward(name, self._wiring, prefix, every, self._place)
            new.pop((prefix.first, prefix.end), None)
            if hops is not None:
                new[prefix.first, prefix.end] = prefix, hops
        switch = self._index[name]
        actions, sums = self._actions_of(switch, prefixes, (table, new))

        def commit() -> None:
            self._tables[name] = new
            for text, hops in changed.items():
                old.pop(text, None)
                if hops is not None:
                    old[text] = hops
            for kind, value in sums.items():
                self._alike[self._sums[kind]] -= 1
                self._alike[value] += 1
                self._sums[kind] = value

        return RouteChange(switch, actions, commit)

    def _actions_of(
        self, switch: int, changed: Sequence[Prefix], tables: tuple[_Table, _Table]
    ) -> tuple[dict[int, Action], dict[int, int]]:
        """Return the new actions by destination, and the new sums by kind."""
        places = {
            place
            for prefix in changed
            for place in range(self._place[prefix.first], self._place[prefix.end])
        }
        before, after = (self._layers(switch, table) for table in tables)
        actions: dict[int, Action] = {}
        sums: dict[int, int] = {}
        for kind in sorted({int(self._kind_of[place]) for place in places}):
            whole = self._places[kind] if kind in self._sums else sorted(places)
            if kind not in self._sums:
                if any(before(p) != after(p) for p in whole if self._kind_of[p] == kind):
                    raise StateError("addresses are routed that were not")
                continue
            old, new = before(whole[0]), after(whole[0])
            if any(after(place) != new for place in whole):
                raise StateError("addresses that were routed alike no longer are")
            if old == new:
                continue
            if {*old, *new} & {*self._actions.to_hosts()}:
                raise StateError("networks of hosts have other routes")
            sums[kind] = self._sum(switch, kind, old, new)
            if old[0] != new[0]:
                kind_of_action, ports = self._actions.listed()[new[0]]
                for number in self._numbers[kind]:
                    actions[number] = kind_of_action, ports
        self._refuse_alike(sums)
        return actions, sums

    def _refuse_alike(self, sums: Mapping[int, int]) -> None:
        left = Counter(self._sums[kind] for kind in sums)
        now = Counter(sums.values())
        if any(self._alike[value] - left[value] + count > 1 for value, count in now.items()):
            raise StateError("addresses are routed alike that were not")

    def _sum(self, switch: int, kind: int, old: Sequence[int], new: Sequence[int]) -> int:
        total = np.array([self._sums[kind]], dtype=np.uint64)
        hashes = hashes_of(self._actions.listed())
        switches = np.array([switch], dtype=np.uint64)
        for layer, action in enumerate(old):
            total -= mixed(hashes, np.array([action]), switches, layer)
        for layer, action in enumerate(new):
            total += mixed(hashes, np.array([action]), switches, layer)
        return int(total[0])

    def _layers(self, switch: int, table: _Table) -> Callable[[int], list[int]]:
        """Return a function: the actions of a router for a range, by its prefixes, longest first.

        As :meth:`Ranges.matched`, without one that is that of the next longer prefix.
        """
        router = self._routed.names[switch], self._wiring, self._routed.port
        numbers: dict[str, int] = {}
        by_place: dict[int, list[int]] = {}

        def layers(place: int) -> list[int]:
            if place in by_place:
                return by_place[place]
            actions: list[int] = []
            for prefix, hops in _holding(table, self._ends[place]):
                if prefix.text not in numbers:
                    findings = Findings()
                    number = action_of(router, hops, self._actions, findings, prefix)
                    if findings != Findings():
                        raise StateError(f"not all next hops of {router[0]} are known")
                    numbers[prefix.text] = number
                if actions[-1:] != [numbers[prefix.text]]:
                    actions.append(numbers[prefix.text])
            by_place[place] = actions or [self._actions.send(())]
            return by_place[place]

        return layers

    def _table(self, name: str) -> _Table:
        if name not in self._tables:
            parsed = [(prefix_of(text), hops) for text, hops in self._routes.get(name, {}).items()]
            self._tables[name] = {(p.first, p.end): (p, hops) for p, hops in parsed}
        return self._tables[name]

    def causes_at(self, switch: int, _port: int | None, destination: int) -> list[Cause]:
        """Return the source of the route that a router has for a destination, by its numbers."""
        address = self._destinations.an_address(destination)
        if address is None or switch >= len(self._routed.names):
            return []
        name = self._routed.names[switch]
        longest = next(_holding(self._table(name), address), None)
        return [] if longest is None else [self._sources[name].route(longest[0].text)]


def _holding(table: _Table, address: int) -> Iterator[tuple[Prefix, tuple[NextHop, ...]]]:
    """Yield the routes whose prefixes hold an address, the longest first."""
    for bits in range(129):
        first = address >> bits << bits
        route = table.get((first, first + (1 << bits)))
        if route is not None:
            yield route
