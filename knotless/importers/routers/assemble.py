"""Fabrics of IP routers: SONiC switches, FRR on Linux.

Routers forward by the longest matching prefix, out of any one of its next hops. Hosts are the
networks behind a port or VLAN that leads to no other router; all of them send to all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache, partial

import numpy as np

from knotless.base.errors import RuleError
from knotless.base.flow_control import FlowControl
from knotless.base.printable import listed
from knotless.forwarding.state import ForwardingState
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.fabric import TableFabric, TableTraffic, no_groups
from knotless.importers.file_kinds import FoundFile
from knotless.importers.findings import Findings
from knotless.importers.next_hops import DROPPED, VcMap
from knotless.importers.route_dump import distinct
from knotless.importers.routers.bgp import computed_routes, static_routes
from knotless.importers.routers.buffers import judge_buffers
from knotless.importers.routers.cables import Cabling, Routes, cabling_of
from knotless.importers.routers.fabric import RouterFabric, Wiring, router_fabric
from knotless.importers.routers.files import (
    chosen_routes,
    connected_routes,
    missing_routes,
    routers_of,
)
from knotless.importers.routers.interfaces import Interfaces
from knotless.importers.routers.pfc import (
    Priorities,
    Qos,
    groups_of_hosts,
    judge_pfc,
    priorities_of,
)
from knotless.importers.routers.qos import PortQos, port_qos, qos_of
from knotless.importers.routers.route_state import RouteState
from knotless.importers.routers.router import Router, natural
from knotless.importers.routers.routes import Destinations, destinations_of
from knotless.importers.routers.static_routes import RoutesRead
from knotless.importers.routers.switch_settings import settings_of
from knotless.importers.routers.tables import judge_tables
from knotless.importers.routers.tunnels import servers_of, tunnels_of
from knotless.importers.routers.unread import described, unread_ports
from knotless.importers.switch_settings import ReadSettings


def assemble(
    name: str,
    files: Sequence[FoundFile],
    hosts: Sequence[str] = (),
    *,
    routes_by: str | None = None,
) -> TableFabric:
    """Return the fabric called ``name`` that ``files`` describe.

    ``hosts`` are patterns of the names of neighbours that are hosts. ``routes_by`` is ``bgp`` if
    routes are to be computed from configurations, ``static`` if they are those of interfaces and
    static ones in configurations, or None: they are those that files list.

    Raises
    ------
    RuleError
        A file says something impossible, there are no files of a router, or a pattern of
        ``hosts`` fits no neighbour.
    FabricError
        The cables contradict each other.

    """
    findings = Findings()
    routers, cables = routers_of(files, findings)
    if not routers:
        raise RuleError(
            "there are cables, but no routes or tables of a router (those in frr.conf are read with"
            " --routes)"
        )
    dumped = {
        router.name: chosen_routes(router, findings) if routes_by is None else None
        for router in routers
    }
    routes: dict[str, Routes] = {
        router.name: {**connected_routes(router), **(dumped[router.name] or {})}
        for router in routers
    }
    judge_tables(routers, findings)
    interfaces = Interfaces(routers)
    cabling = cabling_of(routers, routes, cables, interfaces, findings, hosts)
    if routes_by is None:
        for router in routers:
            for text in missing_routes(router, dumped[router.name]):
                findings.gap(text)
    else:
        computed = (
            static_routes(routers, cabling, findings)
            if routes_by == "static"
            else computed_routes(routers, cabling, findings)
        )
        dumped = {name: dict(of) for name, of in computed.items()}
        routes = computed
    for absent in sorted(cabling.absent):
        findings.gap(f"the files of {absent}")
    if cabling.absent:
        findings.note(f"if {listed(sorted(cabling.absent), 3)} are hosts, name them by --hosts")
    routers = _of_the_fabric(routers, routes, cabling, findings)
    wiring = Wiring(interfaces, cabling)
    routes = {
        router.name: {**routes[router.name], **wiring.own_routes(router)} for router in routers
    }
    for text in (text for router in routers for text in _switched(router, wiring)):
        findings.gap(text)
    tunnels, servers = tunnels_of(routers, findings), servers_of(routers, findings)
    known_routes = {
        router_name: routes[router_name] if dumped[router_name] is not None else None
        for router_name in routes
    }

    def reached(routed: RouterFabric) -> Destinations:
        unread = unread_ports(routed, routers, routes)
        return destinations_of(routed, known_routes, tunnels, servers, unread, findings)

    routed = router_fabric(name, routers, routes, wiring)
    destinations = reached(routed)
    if not destinations.pairs:
        routed = router_fabric(name, routers, routes, replace(wiring, loopbacks=True))
        destinations = reached(routed)
        findings.note("no two networks of hosts are known: loopback addresses are taken instead")
    unread = [port for _, port in destinations.unread]
    if unread:
        findings.note(described(unread))
    if not destinations.pairs:
        findings.gap(f"networks of hosts with routes between them: {len(routed.edges)} are known")
    qos = _qos(routers, cabling, findings)
    traffics: tuple[TableTraffic, ...]
    bridges = {
        name
        for name, router_routes in routes.items()
        if router_routes and all("@" in text for text in router_routes)
    }
    for name in _in_a_loop(bridges, wiring):
        findings.gap(
            f"which ports spanning tree blocks at {name}: it floods what is for unknown addresses,"
            " and its cables to other bridges close a loop"
        )
    label = "DSCP"
    first_groups = None
    if qos is None:
        traffics, pausing = (_one_traffic(routed, destinations, bridges),), None
    else:
        priorities = priorities_of(
            routed, qos, tunnels, destinations.unread, _vlan_members(routers), findings
        )
        destinations = replace(
            destinations, hops=destinations.hops.repeated(priorities.repetitions)
        )
        traffics, pausing = tuple(_traffics(routed, destinations, priorities)), priorities.pausing
        label = priorities.shown[0]
        first_groups = partial(_first_groups, routed, qos, _vlan_members(routers), priorities)
        judge_pfc(routed, {name: qos[name] for name in routes}, findings)
        judge_buffers(routers, qos, cabling.peers, findings)
    ordinary = not (tunnels or servers or bridges or routes_by)
    route_state = (
        RouteState(
            routed.names,
            routed.port,
            cabling.peers,
            destinations.addresses,
            destinations.hops,
        )
        if ordinary
        else None
    )
    names = [switch.name for switch in routed.fabric.switches]
    read = RoutesRead(routers, names, routes, interfaces, destinations.addresses)
    return TableFabric(
        fabric=routed.fabric,
        channels=routed.channels,
        flow_control=FlowControl.PFC if _has_flow_control(routers) else FlowControl.PAUSE,
        traffics=traffics,
        pairs=destinations.pairs,
        label=label,
        hops=destinations.hops,
        findings=findings,
        pausing=pausing,
        configs=tuple(router.tables for router in routers),
        routes_without=read.without,
        switch_settings=cache(partial(_settings, routers, routed)),
        unread=tuple(unread),
        number_of=destinations.addresses.number_of,
        ends_at=destinations.hops.ends_at,
        explain=partial(_explained, wiring, [router.name for router in routers]),
        assumed_routes=routes_by is not None,
        sections=dict if route_state is None else route_state.sections,
        first_groups=first_groups or no_groups,
    )


def _explained(wiring: Wiring, routers: Sequence[str], port: str) -> str:
    """Return what a port leads to; raises RuleError if there is no such router."""
    router, colon, interface = port.partition(":")
    if router not in routers or not colon:
        raise RuleError(
            f"{port[:60]!r}: give a router and its port, such as {routers[0]}:Ethernet0; there are"
            f" {listed(routers, 5)}"
        )
    return f"{port}: {wiring.explain(router, interface)}"


def _first_groups(
    routed: RouterFabric,
    qos: Qos,
    members: Mapping[NamedEnd, Sequence[str]],
    priorities: Priorities,
    traffic: int,
    source: int,
) -> frozenset[int]:
    """Return the priority groups of the port of a source in which packets of a traffic may be."""
    if source >= len(routed.edges):
        return frozenset()
    return groups_of_hosts(routed, qos, members, routed.edges[source], priorities.marks[traffic])


def _of_the_fabric(
    routers: Sequence[Router],
    routes: Mapping[str, Routes],
    cabling: Cabling,
    findings: Findings,
) -> list[Router]:
    """Return the routers without those VRFs that lead to no other router."""
    cabled = {name for name, _ in cabling.peers}
    kept = []
    for router in routers:
        hops = (hop for hops in distinct(routes[router.name]) for hop in hops)
        if router.name == router.host or router.name in cabled or any(hop.address for hop in hops):
            kept.append(router)
        else:
            findings.note(f"{router.name} is left out: it leads to no other router")
    return kept


def _settings(routers: Sequence[Router], routed: RouterFabric) -> dict[str, ReadSettings]:
    """Return the settings of all switches, by name; a VLAN has those of its member ports."""
    members = _vlan_members(routers)
    ports: dict[str, dict[int, list[str]]] = {router.name: {} for router in routers}
    for (name, interface), place in routed.port.items():
        of_vlan = members.get((name, interface), [])
        listed_ports = of_vlan or routed.wiring.ports(name, interface)
        ports.setdefault(name, {})[place] = sorted(listed_ports, key=natural)
    names = [switch.name for switch in routed.fabric.switches]
    return {
        name: settings_of(router, ports[router.name])
        for name, router in zip(names, routers, strict=False)
    }


def _switched(router: Router, wiring: Wiring) -> Iterable[str]:
    """Yield VLANs and bridges with ports to other routers: addresses behind them are not known."""
    for key in (*router.table("VLAN_MEMBER"), *router.table("BRIDGE_MEMBER")):
        bridge, _, port = key.partition("|")
        for member in wiring.ports(router.name, port):
            peer = wiring.cabling.peers.get((router.name, member))
            if peer is not None:
                sends = f"what {bridge} of {router.name} sends to {peer[0]} by {member}"
                yield f"{sends}: it is switched"


def _in_a_loop(bridges: AbstractSet[str], wiring: Wiring) -> Iterator[str]:
    """Yield a bridge of each loop that cables, or LAGs, between bridges close."""
    part = {name: name for name in bridges}

    def first(name: str) -> str:
        while part[name] != name:
            name = part[name]
        return name

    lag_of = {
        (name, port): lag
        for name in bridges
        for lag, ports in wiring.interfaces[name].lags.items()
        for port in ports
    }
    ends = {
        frozenset((end[0], lag_of.get(end, end[1])) for end in cable)
        for cable in wiring.cabling.peers.items()
        if all(name in bridges for name, _ in cable)
    }
    for a, *b in sorted(sorted(cable) for cable in ends):
        one, other = first(a[0]), first(b[0][0] if b else a[0])
        if one == other:
            yield a[0]
        part[one] = other


def _vlan_members(routers: Sequence[Router]) -> dict[NamedEnd, list[str]]:
    """Return the member ports of VLANs by (router, VLAN)."""
    members: dict[NamedEnd, list[str]] = {}
    for router in routers:
        for key in router.table("VLAN_MEMBER"):
            vlan, _, port = key.partition("|")
            members.setdefault((router.name, vlan), []).append(port)
    return members


def _qos(
    routers: Sequence[Router],
    cabling: Cabling,
    findings: Findings,
) -> Qos | None:
    """Return the settings of all routers; None if those of one that was read are not known."""
    settings = {router.name: qos_of(router, findings) for router in routers}
    without = [text for router in routers for text in _missing_qos(router, cabling)]
    if not _has_flow_control(routers):
        findings.note(
            "no switch has settings of flow control (PORT_QOS_MAP, dcb):"
            " all links are taken to PAUSE"
        )
    elif without:
        findings.doubt(f"{without[0]}: which priorities it pauses")
        findings.note(
            f"no {without[0]}: all packets are taken to be lossless, in one priority everywhere"
        )
    if any("DCB" in router.tables for router in routers):
        findings.note("Linux: packets are taken to keep their DSCP")
    _judge_watchdogs(routers, findings)
    by_router = {router_name: ports for router_name, ports in settings.items() if ports is not None}
    return None if without else {**by_router, **_of_absent(by_router, cabling)}


def _of_absent(qos: Qos, cabling: Cabling) -> Qos:
    """Return settings for routers without files: those of the ports that lead to them.

    No verdict rests on these: what such a router does with packets is not known.
    """
    settings: dict[str, dict[str, PortQos]] = {}
    for (name, far), (peer, port) in cabling.peers.items():
        if name in cabling.absent and peer in qos:
            of_peer = port_qos(qos[peer], port)
            settings.setdefault(name, {"": of_peer})[far] = of_peer
    return settings


def _has_flow_control(routers: Iterable[Router]) -> bool:
    """Return whether the files of any router say what its ports pause."""
    return any(router.table("PORT_QOS_MAP") or "DCB" in router.tables for router in routers)


_WATCHDOG = {
    "drop": "which ends a deadlock by dropping but does not prevent it",
    "alert": "which only reports a deadlock and does not end it",
    "forward": (
        "which sends what is paused all the same, so that the next switch can lose it; it neither"
        " prevents a deadlock nor ends one without loss"
    ),
}
"""What a PFC watchdog does, by its action: SONiC, sonic-pfcwd.yang and orchagent."""


def _judge_watchdogs(routers: Sequence[Router], findings: Findings) -> None:
    switches: dict[str, set[str]] = {}
    for router in routers:
        for port, fields in router.table("PFC_WD").items():
            if port != "GLOBAL":
                switches.setdefault(fields.get("action", "drop"), set()).add(router.host)
    for action, hosts in sorted(switches.items()):
        does = _WATCHDOG.get(action, "which is not known here")
        findings.note(
            f"{len(hosts)} switches have a PFC watchdog with action {action[:20]}, {does}"
        )


def _missing_qos(router: Router, cabling: Cabling) -> Iterator[str]:
    """Yield the settings of a router that are needed and not known."""
    settings = router.table("PORT_QOS_MAP")
    if "DCB" in router.tables:
        for fields in router.table("DCB").values():
            yield f"{fields['missing']} of {router.name}"
        for name, port in sorted(cabling.peers):
            if name == router.name and port not in settings and port not in router.table("DCB"):
                yield f"dcb pfc show dev {port} of {name}"
    elif not settings:
        yield f"PORT_QOS_MAP of {router.name}"


def _one_traffic(
    routed: RouterFabric, destinations: Destinations, bridges: AbstractSet[str]
) -> TableTraffic:
    """Return packets that all use one lossless priority.

    ``bridges`` never send a frame back to where it came from.
    """
    channels = routed.channels
    leaving: list[list[int]] = [[] for _ in routed.names]
    for channel, tail in enumerate(channels.tail.tolist()):
        leaving[tail].append(channel)
    senders = [*enumerate(routed.edges), *destinations.unread]
    heads = [
        *enumerate(channels.head.tolist()),
        *((len(channels) + end, routed.names.index(port[0])) for end, port in senders),
    ]
    pairs = [(channel_in, channel) for channel_in, head in heads for channel in leaving[head]]
    channels_in, outs = np.array(pairs, dtype=np.uint32).reshape(-1, 2).T.copy()
    back = {
        (channel_in, int(channels.leaving[end]))
        for end, channel_in in channels.entering.items()
        if routed.names[end[0]] in bridges
    }
    row = np.array([pair in back for pair in pairs], dtype=np.uint32)
    rows = np.repeat(np.array([[0], [DROPPED]], dtype=np.uint8), destinations.labels, axis=1)
    return _traffic(routed, destinations, VcMap(channels_in, outs, row, rows), 0, (0,), True)


def _traffics(
    routed: RouterFabric, destinations: Destinations, priorities: Priorities
) -> Iterable[TableTraffic]:
    for number in range(priorities.sent):
        vcs, marks = priorities.of_mark(number)
        yield _traffic(routed, destinations, vcs, marks[0], marks, number == 0)


def _traffic(
    routed: RouterFabric,
    destinations: Destinations,
    vcs: VcMap,
    mark: int,
    marks: Sequence[int],
    counted: bool,
) -> TableTraffic:
    first_labels = destinations.first_labels
    core = destinations.hops.state(vcs, first_labels)
    state = ForwardingState(routed.fabric, routed.channels, (), core, more=destinations.more)
    return TableTraffic(
        state, lambda _source, _destination: mark, vcs, first_labels, marks, counted=counted
    )
