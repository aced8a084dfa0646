"""The routes and addresses with which IP routers send a plan's packets along its paths.

A router forwards by the destination alone, out of any one of several next hops. So a plan can be
written for routers if its next hops depend on the switch and the destination switch: with ECMP, or
if paths that meet stay together. The hosts of a switch are in networks of its own, /24, behind one
interface; each link is a network of two addresses (RFC 3021) in 100.64.0.0/10 (RFC 6598).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from knotless.base.errors import PlanError
from knotless.routing.graphs.channels import Ints
from knotless.routing.plan import Plan, distinct_rows

_HOST_BITS = 24
_LINKS = ipaddress.IPv4Network("100.64.0.0/10")


@dataclass(frozen=True)
class LinkEnd:
    """A port to another router: its address with the length of the prefix, and that of the peer."""

    port: int
    address: str
    peer: str
    peer_port: int
    peer_address: str


@dataclass(frozen=True)
class RouterTables:
    """The tables of one router.

    Attributes
    ----------
    name : str
        Of the switch.
    links : tuple of LinkEnd
        Its ports to other routers, ascending.
    host_ports : tuple of int
        Its ports to hosts, ascending.
    gateways : tuple of str
        Its addresses in the networks of its hosts, each with the length of the prefix.
    routes : mapping of str to tuple of LinkEnd
        Prefixes of other routers' hosts, with the ports of which a packet takes any one.

    """

    name: str
    links: tuple[LinkEnd, ...]
    host_ports: tuple[int, ...]
    gateways: tuple[str, ...]
    routes: dict[str, tuple[LinkEnd, ...]]


def router_tables(plan: Plan) -> tuple[RouterTables, ...]:
    """Return the tables of each router, in the order of the fabric's switches.

    Raises
    ------
    PlanError
        The plan needs more than routers can do: several virtual channels, paths that split by
        source, a choice that is none of a hash, multicast groups, or hosts whose addresses do not
        fit.

    """
    _refuse(plan)
    gateways = _gateways(plan)
    links = _links(plan)
    routes: list[dict[str, tuple[LinkEnd, ...]]] = [{} for _ in links]
    for switch, destination, channels in _next_hops(plan):
        ends = {end.port: end for end in links[switch]}
        hops = tuple(ends[port] for port in sorted(plan.channels.out_port[channels].tolist()))
        for gateway in gateways[destination]:
            routes[switch][str(ipaddress.ip_interface(gateway).network)] = hops
    return tuple(
        RouterTables(
            switch.name,
            tuple(links[number]),
            tuple(sorted(plan.fabric.hosts_at[switch.name])),
            tuple(gateways[number]),
            routes[number],
        )
        for number, switch in enumerate(plan.fabric.switches)
    )


def _refuse(plan: Plan) -> None:
    plan.fabric.refuse_hub("exported")
    if plan.vcs > 1:
        raise PlanError(
            f"{plan.engine} uses {plan.vcs} virtual channels on {plan.fabric.name}, and routers are"
            " given one: use --vcs 1 or another engine"
        )
    if not plan.choice.has_rules:
        raise PlanError(
            f"routers choose among next hops by a hash: --multipath ecmp, not {plan.multipath}"
        )
    if plan.multicast:
        raise PlanError("--multicast: routers are given unicast routes only; omit it")
    if plan.tagging != "switch":
        raise PlanError("--tagging host: routers forward by address; omit it")


def _next_hops(plan: Plan) -> Iterator[tuple[int, int, Ints]]:
    """Yield a switch, a destination switch with hosts, and the channels of which any is taken."""
    channels = plan.channels
    if plan.next_hops is not None:
        for destination in np.flatnonzero(plan.receivers > 0).tolist():
            for switch in np.flatnonzero(plan.next_hops.sizes[destination]).tolist():
                if switch != destination:
                    taken = np.array(plan.next_hops.choices(switch, destination), dtype=np.int32)
                    yield switch, destination, taken
        return
    paths = np.where((plan.receivers > 0)[None, :, None], plan.routes.channels, -1)
    row, to, hop = np.nonzero(paths >= 0)
    channel: Ints = paths[row, to, hop].astype(np.int32)
    used: dict[tuple[int, int], int] = {}
    for switch, destination, c in distinct_rows(channels.tail[channel], to, channel):
        other = used.setdefault((switch, destination), c)
        if other != c:
            name, target = channels.names[switch], channels.names[destination]
            raise PlanError(
                f"paths from {name} to {target} split by source, on ports"
                f" {channels.out_port[other]} and {channels.out_port[c]}; a router forwards by"
                " destination only: use --multipath ecmp, --select low-port or another engine"
            )
        yield switch, destination, np.array([c], dtype=np.int32)


def _gateways(plan: Plan) -> list[list[str]]:
    """Return the addresses of each switch in the networks of its hosts: the last that is free."""
    fabric = plan.fabric
    owner: dict[ipaddress.IPv4Network, str] = {}
    used: dict[ipaddress.IPv4Network, set[ipaddress.IPv4Address]] = {}
    gateways: list[list[str]] = [[] for _ in fabric.switches]
    for host in fabric.hosts:
        address = ipaddress.IPv4Address(host.ip)
        network = ipaddress.IPv4Network((address, _HOST_BITS), strict=False)
        if address in _LINKS:
            raise PlanError(f"{host.name} has {host.ip}: {_LINKS} is for the links of routers")
        if owner.setdefault(network, host.switch) != host.switch:
            raise PlanError(
                f"{host.name} of {host.switch} and hosts of {owner[network]} are in {network}:"
                " each router needs networks of its own"
            )
        used.setdefault(network, set()).add(address)
    for network, switch in owner.items():
        free = next(
            (a for a in reversed(list(network.hosts())) if a not in used[network]),
            None,
        )
        if free is None:
            raise PlanError(f"{network} has no free address for the router {switch}")
        gateways[fabric.switch_index[switch]].append(f"{free}/{_HOST_BITS}")
    return gateways


def _links(plan: Plan) -> list[list[LinkEnd]]:
    """Return the ports of each switch to others, with an address for each, ascending."""
    fabric, first = plan.fabric, int(_LINKS.network_address)
    ends: list[list[LinkEnd]] = [[] for _ in fabric.switches]
    for number, link in enumerate(fabric.links):
        a, b = (str(ipaddress.IPv4Address(first + 2 * number + end)) for end in (0, 1))
        for own, other, mine, theirs in (
            ((link.a, link.a_port), (link.b, link.b_port), a, b),
            ((link.b, link.b_port), (link.a, link.a_port), b, a),
        ):
            place = fabric.switch_index[own[0]]
            ends[place].append(LinkEnd(own[1], f"{mine}/31", *other, theirs))
    return [sorted(of_switch, key=lambda end: end.port) for of_switch in ends]
