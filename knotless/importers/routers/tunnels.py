"""Pairs of top-of-rack switches (dual-ToR): servers on both, and tunnels between the two.

A server is cabled to two switches, one of which is active. The other, standby, encapsulates what
it has for the server (IP in IP) for the loopback address of its peer, so that it goes back up. Maps
can give packets in the tunnel another DSCP, queue and priority group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knotless.base.model_limits import PRIORITIES
from knotless.importers.findings import Findings
from knotless.importers.prefixes import Prefix, prefix_of
from knotless.importers.routers.qos import CLASSES, DSCPS, MAX_QUEUE, Map, number_map
from knotless.importers.routers.router import Router
from knotless.importers.sonic.database import Fields

INTERPRETED = {
    "tunnel_type",
    "dst_ip",
    "dscp_mode",
    "encap_tc_to_queue_map",
    "encap_tc_to_dscp_map",
    "encap_tc_color_to_dscp_map",
    "decap_dscp_to_tc_map",
    "decap_tc_to_pg_map",
}
WITHOUT_EFFECT = {"src_ip", "ecn_mode", "encap_ecn_mode", "ttl_mode", "NULL", ""}
"""Fields that change neither where packets in the tunnel go nor their priority."""


@dataclass(frozen=True)
class Tunnel:
    """A tunnel from router ``source`` to ``peer``, whose loopback address is ``address``.

    ``dscps`` (by class, None: the DSCP stays) and ``queues`` (by class, None: those of the port)
    hold where packets enter the tunnel; ``classes`` (by DSCP) and ``groups`` (by class; None:
    those of the port) where they leave it.
    """

    source: str
    peer: str
    address: Prefix
    dscps: Map | None
    queues: Map | None
    classes: Map | None
    groups: Map | None


@dataclass(frozen=True)
class Server:
    """A server and for each of its routers whether it is standby there."""

    address: Prefix
    standby: Mapping[str, bool]
    text: str


def tunnels_of(routers: Sequence[Router], findings: Findings) -> tuple[Tunnel, ...]:
    """Return the tunnels between the switches of all pairs."""
    ends: dict[Prefix, Router] = {}
    for router in routers:
        for key in router.table("LOOPBACK_INTERFACE"):
            loopback = key.partition("|")[2].partition("/")[0]
            if loopback:
                ends[prefix_of(loopback)] = router
        for fields in router.table("TUNNEL").values():
            if fields.get("dst_ip"):
                ends[prefix_of(fields["dst_ip"])] = router
    tunnels = []
    for router in routers:
        texts = [row.get("address_ipv4", "") for row in router.table("PEER_SWITCH").values()]
        if not router.table("MUX_CABLE") or not any(texts):
            continue
        address = prefix_of(texts[0])
        if address not in ends:
            findings.gap(
                f"the files of the peer of {router.name}, {address.text}",
                router.source.cause("PEER_SWITCH"),
            )
            continue
        into, out = _fields(router, findings), _fields(ends[address], findings)
        dscps = number_map(router, into, "encap_tc_to_dscp_map", CLASSES, DSCPS - 1, findings)
        if dscps is not None and out.get("dscp_mode") == "uniform":
            findings.unclear(
                f"the DSCP after the tunnel to {ends[address].name}: dscp_mode uniform takes that"
                " of the tunnel",
                ends[address].source.cause("TUNNEL"),
            )
        tunnels.append(
            Tunnel(
                router.name,
                ends[address].name,
                address,
                dscps
                or number_map(
                    router, into, "encap_tc_color_to_dscp_map", CLASSES, DSCPS - 1, findings
                ),
                number_map(router, into, "encap_tc_to_queue_map", CLASSES, MAX_QUEUE, findings),
                number_map(
                    ends[address], out, "decap_dscp_to_tc_map", DSCPS, CLASSES - 1, findings
                ),
                number_map(
                    ends[address], out, "decap_tc_to_pg_map", CLASSES, PRIORITIES - 1, findings
                ),
            )
        )
    return tuple(tunnels)


def _fields(router: Router, findings: Findings) -> Fields:
    """Return the fields of a router's tunnel."""
    rows = router.table("TUNNEL")
    if not rows:
        findings.note(
            f"{router.name} has no TUNNEL: the tunnel is taken not to change priorities",
            router.source.cause("PEER_SWITCH"),
        )
        return {}
    fields = next(iter(rows.values()))
    for name in sorted(set(fields) - INTERPRETED - WITHOUT_EFFECT):
        findings.unclear(
            f"what {name} of TUNNEL does at {router.name}",
            router.source.cause("TUNNEL", next(iter(rows)), name),
        )
    if fields.get("tunnel_type", "IPINIP").upper() != "IPINIP":
        findings.unclear(
            f"what a tunnel of type {fields['tunnel_type'][:20]} does at {router.name}",
            router.source.cause("TUNNEL", next(iter(rows)), "tunnel_type"),
        )
    return fields


def servers_of(routers: Sequence[Router], findings: Findings) -> list[Server]:
    """Return the servers; one whose state is not known is returned with each of its routers active.

    A router that is alone with a server, or an active-active cable, need not be standby.
    """
    states: dict[Prefix, dict[str, str]] = {}
    for router in routers:
        mux_states = {**router.table("MUX_CABLE_TABLE"), **router.table("HW_MUX_CABLE_TABLE")}
        for port, fields in router.table("MUX_CABLE").items():
            for address in (fields.get("server_ipv4"), fields.get("server_ipv6")):
                if address:
                    state = mux_states.get(port, {}).get("state", fields.get("state", "auto"))
                    if state == "auto" and fields.get("cable_type") == "active-active":
                        state = "active"
                    states.setdefault(prefix_of(address), {})[router.name] = state
    servers: list[Server] = []
    for prefix, state_of in sorted(states.items()):
        open_at = [name for name, state in state_of.items() if state not in ("active", "standby")]
        fixed = {
            name: state == "standby" for name, state in state_of.items() if name not in open_at
        }
        if not open_at:
            servers.append(Server(prefix, fixed, prefix.text))
            continue
        findings.note(
            f"which switch is active for {prefix.text} is not known: both are tried",
            *(findings.cause(name, "MUX_CABLE", prefix.text) for name in open_at),
        )
        for active in state_of:
            if fixed.get(active) is not True:
                standby = {name: fixed.get(name, name != active) for name in state_of}
                servers.append(Server(prefix, standby, f"{prefix.text} (active at {active})"))
    return servers
