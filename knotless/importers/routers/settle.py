"""The last stage of reading routers: which packets wait in which priority, and what stops whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from knotless.forwarding.state import ForwardingState
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.fabric import TableTraffic, no_groups
from knotless.importers.findings import Findings
from knotless.importers.host_links import HostLinks
from knotless.importers.next_hops import DROPPED, VcMap
from knotless.importers.routers.buffers import judge_buffers
from knotless.importers.routers.cables import Cabling
from knotless.importers.routers.fabric import RouterFabric
from knotless.importers.routers.host_links import HostPorts
from knotless.importers.routers.link_ends import judge_link_ends
from knotless.importers.routers.pfc import (
    Priorities,
    Qos,
    groups_of_hosts,
    judge_pfc,
    priorities_of,
)
from knotless.importers.routers.qos import PortQos, port_qos, qos_of
from knotless.importers.routers.router import Router
from knotless.importers.routers.routes import Destinations
from knotless.importers.routers.tunnels import Tunnel


@dataclass(frozen=True)
class Settled:
    """The packets of all priorities.

    ``destinations`` have a label for each mark, if marks change; ``label`` says what marks are.
    The others are those of :class:`~knotless.importers.fabric.TableFabric`.
    """

    destinations: Destinations
    traffics: tuple[TableTraffic, ...]
    pausing: NDArray[np.bool_] | None
    label: str = "DSCP"
    first_groups: Callable[[int, int], frozenset[int]] = no_groups
    host_links: Callable[[], HostLinks] | None = None


def settle(
    routers: Sequence[Router],
    routed: RouterFabric,
    destinations: Destinations,
    tunnels: Sequence[Tunnel],
    bridges: AbstractSet[str],
    findings: Findings,
) -> Settled:
    """Return the packets by the settings of switches; without these, of one lossless priority.

    ``bridges`` never send a frame back to where it came from.
    """
    qos = _qos(routers, routed.wiring.cabling, findings)
    judge_link_ends(routers, routed, qos, findings)
    if qos is None:
        return Settled(destinations, (_one_traffic(routed, destinations, bridges),), None)
    members = vlan_members(routers)
    priorities = priorities_of(routed, qos, tunnels, destinations.unread, members, findings)
    hops = destinations.hops.repeated(priorities.repetitions)
    destinations = replace(destinations, hops=hops)
    judge_pfc(routed, {router.name: qos[router.name] for router in routers}, findings)
    judge_buffers(routers, qos, routed.wiring.cabling.peers, findings)
    traffics = tuple(_traffics(routed, destinations, priorities))
    ports = HostPorts(routed, qos, members, priorities, traffics, bool(tunnels))
    return Settled(
        destinations,
        traffics,
        priorities.pausing,
        priorities.shown[0],
        partial(_first_groups, routed, qos, members, priorities),
        lambda: ports.links,
    )


def vlan_members(routers: Sequence[Router]) -> dict[NamedEnd, list[str]]:
    """Return the member ports of VLANs by (router, VLAN)."""
    members: dict[NamedEnd, list[str]] = {}
    for router in routers:
        for key in router.table("VLAN_MEMBER"):
            vlan, _, port = key.partition("|")
            members.setdefault((router.name, vlan), []).append(port)
    return members


def has_flow_control(routers: Iterable[Router]) -> bool:
    """Return whether the files of any router say what its ports pause."""
    return any(router.table("PORT_QOS_MAP") or "DCB" in router.tables for router in routers)


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


def _qos(
    routers: Sequence[Router],
    cabling: Cabling,
    findings: Findings,
) -> Qos | None:
    """Return the settings of all routers; None if those of one that was read are not known."""
    settings = {router.name: qos_of(router, findings) for router in routers}
    without = [text for router in routers for text in _missing_qos(router, cabling)]
    if not has_flow_control(routers):
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
            f"{len(hosts)} switches have a PFC watchdog with action {action[:20]}, {does}",
            *(findings.cause(host, "PFC_WD") for host in sorted(hosts)[:3]),
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
