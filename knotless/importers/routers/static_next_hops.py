"""The static routes of a speaker that are in its table, with their next hops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from knotless.importers.findings import Findings
from knotless.importers.frr.configuration import BGP_DISTANCE, StaticRoute
from knotless.importers.route_dump import DROP, NextHop
from knotless.importers.routers.bgp_sessions import Speaker
from knotless.importers.routers.cables import Cabling

_Hops = dict[str, tuple[NextHop, ...]]


@dataclass
class StaticTable:
    """Next hops by prefix: ``near`` ones count before those of BGP, ``far`` ones after them."""

    near: _Hops = field(default_factory=dict)
    far: _Hops = field(default_factory=dict)
    tags: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def gateways(self, prefix: str) -> frozenset[str]:
        """Return the addresses of the next hops of a prefix."""
        hops = {**self.far, **self.near}.get(prefix, ())
        return frozenset(hop.address for hop in hops if hop.address is not None)


def static_table(speaker: Speaker, cabling: Cabling, findings: Findings) -> StaticTable:
    """Return the static routes whose next hops are on links that are up.

    Of the next hops of a prefix, those of the smallest distance count.
    """
    active: dict[str, dict[int, list[tuple[NextHop, int]]]] = {}
    for route in speaker.configuration.static:
        hop = _hop(speaker, route, cabling.peers, findings)
        if hop is not None:
            of_prefix = active.setdefault(route.prefix, {})
            of_prefix.setdefault(route.distance, []).append((hop, route.tag))
    table = StaticTable()
    for prefix, by_distance in active.items():
        nearest = min(by_distance)
        if nearest == BGP_DISTANCE:
            findings.gap(
                f"whether the static route of {speaker.router.name} to {prefix} counts before those"
                f" of BGP: both have distance {BGP_DISTANCE}",
                speaker.router.source.cause(prefix),
            )
        hops = tuple(dict.fromkeys(hop for hop, _ in by_distance[nearest]))
        (table.near if nearest <= BGP_DISTANCE else table.far)[prefix] = hops
        table.tags[prefix] = tuple(dict.fromkeys(tag for _, tag in by_distance[nearest]))
    return table


def _hop(
    speaker: Speaker,
    route: StaticRoute,
    peers: Mapping[tuple[str, str], tuple[str, str]],
    findings: Findings,
) -> NextHop | None:
    """Return a next hop that is in use; None if its link is down, or it is not known."""
    name = speaker.router.name
    if route.drops:
        return DROP
    interface = route.interface
    if route.gateway is not None:
        try:
            towards = speaker.interface_towards(route.gateway)
        except ValueError:
            towards = None
        interface = route.interface or towards
        if interface is None:
            findings.gap(
                f"the next hop of the static route of {name} to {route.prefix}",
                speaker.router.source.cause(route.prefix),
            )
            return None
        is_local = route.gateway.lower().startswith("fe80:")
        is_known = interface in speaker.interfaces and not is_local
        if is_known and not speaker.is_on_link(route.gateway, interface):
            findings.note(
                f"the static route of {name} to {route.prefix} is not used: {route.gateway} is not"
                f" on {interface}",
                speaker.router.source.cause(route.prefix),
            )
            return None
    if interface in speaker.down:
        return None
    if route.gateway is None and interface is not None and speaker.is_link(interface):
        far = peers.get((name, interface))
        if far is not None:
            findings.unclear(
                f"whether {far[0]} answers ARP for {route.prefix} (proxy ARP), which the static"
                f" route of {name} by {interface} alone needs",
                speaker.router.source.cause(route.prefix),
            )
    return NextHop(route.gateway, interface)
