"""Statements of FRR that change no route between routers once these have settled, with the reason.

A statement is followed by its reader, or listed here, or a missing fact. Names of statements are
matched from their first word; what ``no`` turns off is listed as well. Behaviour and defaults are
those of the FRR User Guide, chapters Basic Setup, Zebra, BGP and Route Maps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_LOG = "what is logged or shown"
_ACCESS = "who may change the configuration"
_TIMING = "when routes settle, not which"
_RESTART = "what happens while a daemon restarts"
_AT_USE = "a definition: a route map that matches it is a missing fact"
_INTERNAL = "internal sessions only, whose routes are a missing fact"
_OF_ROUTER = "the router's own packets"

Statements = Mapping[str, str]
"""The reason by the first words of a statement."""

TOP: Statements = {
    "log": _LOG,
    "debug": _LOG,
    "service": "where configurations are stored, and what the shell shows",
    "password": _ACCESS,
    "enable": _ACCESS,
    "username": _ACCESS,
    "banner": _LOG,
    "agentx": "SNMP",
    "allow-external-route-update": "routes that other programs change",
    "exit": "the end of a section",
    "exit-vrf": "the end of a section",
    "end": "the end of the configuration",
    "Building": "a line of vtysh's output",
    "Current": "a line of vtysh's output",
    "router-id": "how a router is called",
    "ip router-id": "how a router is called",
    "ipv6 router-id": "how a router is called",
    "ip forwarding": "the default of a router",
    "ipv6 forwarding": "the default of a router",
    "ip nht resolve-via-default": "next hops of routes here are on links of the router",
    "ipv6 nht resolve-via-default": "next hops of routes here are on links of the router",
    "zebra nexthop kernel": "how routes are written into the kernel",
    "zebra nexthop-group keep": "how routes are written into the kernel",
    "fpm": "how routes are written into the hardware",
    "ip access-list": _AT_USE,
    "ipv6 access-list": _AT_USE,
    "access-list": _AT_USE,
    "mac access-list": _AT_USE,
    "bgp community-list": _AT_USE,
    "bgp large-community-list": _AT_USE,
    "bgp extcommunity-list": _AT_USE,
    "bgp as-path": _AT_USE,
    "ip community-list": _AT_USE,
    "ip as-path": _AT_USE,
    "route-map optimization": "how route maps are searched",
    "ip multicast-routing": "multicast",
    "ip pim": "multicast",
    "ip igmp": "multicast",
}
SECTIONS: Statements = {
    "line": _ACCESS,
    "bfd": "a session that has never come up does not end that of BGP",
    "key": _ACCESS,
}
"""Sections that are skipped as a whole."""
INTERFACE: Statements = {
    "description": _LOG,
    "bandwidth": "the cost of other protocols, which are missing facts if they run",
    "link-detect": "the default: routes over a link end when it goes down",
    "multicast": "multicast",
    "ip ospf": "OSPF, which is a missing fact if it runs",
    "ipv6 ospf6": "OSPF, which is a missing fact if it runs",
    "ip router": "IS-IS, which is a missing fact if it runs",
    "ipv6 router": "IS-IS, which is a missing fact if it runs",
    "isis": "IS-IS, which is a missing fact if it runs",
    "ip pim": "multicast",
    "ip igmp": "multicast",
    "ipv6 nd": "what hosts and neighbours without addresses are told",
    "exit": "the end of a section",
}
BGP: Statements = {
    "bgp router-id": "which of equal paths is the best: all are used, or it is a missing fact",
    "bgp log-neighbor-changes": _LOG,
    "bgp default show-hostname": _LOG,
    "bgp default show-nexthop-hostname": _LOG,
    "bgp graceful-restart": _RESTART,
    "bgp graceful-restart-disable": _RESTART,
    "bgp max-med on-startup": "the first time after a start only",
    "bgp suppress-duplicates": "announcements that repeat what a neighbour has",
    "bgp deterministic-med": "metrics whose order matters are a missing fact",
    "bgp bestpath compare-routerid": "which of equal paths is the best, as with bgp router-id",
    "bgp cluster-id": _INTERNAL,
    "bgp update-delay": _TIMING,
    "bgp fast-external-failover": _TIMING,
    "bgp fast-convergence": _TIMING,
    "bgp session-dscp": _OF_ROUTER,
    "bgp conditional-advertisement timer": _TIMING,
    "timers bgp": _TIMING,
    "update-delay": _TIMING,
    "coalesce-time": _TIMING,
    "read-quanta": _TIMING,
    "write-quanta": _TIMING,
    "maximum-paths ibgp": _INTERNAL,
    "exit": "the end of a section",
}
NEIGHBOUR: Statements = {
    "advertisement-interval": _TIMING,
    "bfd": "a session that has never come up does not end that of BGP; 'strict' is not meant here",
    "capability dynamic": "how sessions are negotiated",
    "capability fqdn": _LOG,
    "capability software-version": _LOG,
    "description": _LOG,
    "disable-connected-check": "neighbours that are not on a link are a missing fact",
    "ebgp-multihop": "neighbours that are not on a link are a missing fact",
    "enforce-first-as": "each path begins with the number of its sender",
    "graceful-restart": _RESTART,
    "graceful-restart-helper": _RESTART,
    "graceful-restart-disable": _RESTART,
    "next-hop-self": "the next hop of an external session on a link of two is its sender",
    "soft-reconfiguration": "received routes are stored",
    "solo": "neighbours that are told the same together",
    "timers": _TIMING,
    "send-community extended": "extended communities only",
    "send-community large": "large communities only",
}
MAP: Statements = {
    "description": _LOG,
    "exit": "the end of a section",
    "set large-community": "an entry that matches it is a missing fact",
    "set extcommunity bandwidth": "how much of the traffic each next hop has, at least some",
    "set src": _OF_ROUTER,
    "set tag": "an entry that matches it is a missing fact",
    "set ipv6 next-hop prefer-global": "which address of the same neighbour is the next hop",
}


def is_without_effect(table: Statements, words: Sequence[str]) -> bool:
    """Tell whether a statement, or what it turns off, is in a table."""
    start = 1 if words[:1] == ["no"] else 0
    return any(" ".join(words[start:end]) in table for end in range(start + 1, len(words) + 1))


def leaves_state_alone(sections: Sequence[str], text: str) -> bool:
    """Tell whether a statement changes nothing of a running router but its logs and its access.

    Others without an effect on computed routes may have one on those of a router as it runs, such
    as the costs of protocols that are not followed. ``sections`` are those that it is in, the
    outermost first, or its own if it opens one.

    Examples
    --------
    >>> leaves_state_alone(["router bgp 1"], "neighbor 10.0.0.1 description spine 1")
    True
    >>> leaves_state_alone(["interface eth0"], "ip ospf cost 5")
    False

    """
    words = text.split()
    section = sections[0].split()[0] if sections else ""
    if section in ("line", "key") or (section == words[0] == "interface" and len(words) == 2):
        return True
    table = {"": TOP, "interface": INTERFACE, "router": BGP, "route-map": MAP}.get(section, {})
    if section == "router" and words[0] == "neighbor":
        table, words = NEIGHBOUR, words[2:]
    return is_without_effect({k: why for k, why in table.items() if why in (_LOG, _ACCESS)}, words)
