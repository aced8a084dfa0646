"""The tables of SONiC: those that are interpreted, and those that would have to be.

Only a table that forwards, tunnels, remarks, remaps, buffers or pauses can change the verdict. If
one of these is used and not interpreted, the verdict is unknown; other tables are named in a note.

References
----------
sonic-net/sonic-buildimage, src/sonic-yang-models (CONFIG_DB); sonic-net/sonic-swss-common,
common/schema.h (APPL_DB).

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from knotless.base.printable import listed
from knotless.importers.causes import Cause
from knotless.importers.findings import Findings
from knotless.importers.routers.router import Router
from knotless.importers.sonic.database import Fields

_SHOWN = 20


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INTERPRETED = _names(
    """
ACL_RULE ACL_RULE_TABLE BRIDGE BRIDGE_MEMBER BUFFER_PG BUFFER_PG_TABLE BUFFER_PROFILE
BUFFER_PROFILE_TABLE CABLE_LENGTH DCB DEVICE_METADATA DEVICE_NEIGHBOR DEVICE_NEIGHBOR_METADATA
DOT1P_TO_TC_MAP DSCP_TO_TC_MAP HW_MUX_CABLE_TABLE INTERFACE INTF_TABLE LAG_MEMBER_TABLE
LLDP_ENTRY_TABLE LOOPBACK_INTERFACE LOSSLESS_TRAFFIC_PATTERN MAP_PFC_PRIORITY_TO_QUEUE MUX_CABLE
MUX_CABLE_TABLE NAT_GLOBAL NAT_GLOBAL_TABLE NEXTHOP_GROUP_TABLE PEER_SWITCH MIRROR_SESSION
PFC_PRIORITY_TO_PRIORITY_GROUP_MAP PFC_WD PFC_WD_TABLE_INSTORM POLICY_BINDING_TABLE PORT
PORTCHANNEL PORTCHANNEL_INTERFACE PORTCHANNEL_MEMBER PORT_QOS_MAP ROUTE_TABLE STATIC_ROUTE
SUBNET_DECAP TC_TO_DSCP_MAP
TC_TO_PRIORITY_GROUP_MAP TC_TO_QUEUE_MAP TUNNEL VLAN VLAN_INTERFACE VLAN_MEMBER VLAN_SUB_INTERFACE
VRF VRF_TABLE
"""
)
_SIZES = _names(
    """
BUFFER_POOL BUFFER_POOL_TABLE BUFFER_PORT_EGRESS_PROFILE_LIST
BUFFER_PORT_EGRESS_PROFILE_LIST_TABLE BUFFER_PORT_INGRESS_PROFILE_LIST
BUFFER_PORT_INGRESS_PROFILE_LIST_TABLE BUFFER_QUEUE BUFFER_QUEUE_TABLE
COUNTERS COUNTERS_PORT_NAME_MAP COUNTERS_QUEUE_NAME_MAP DEFAULT_LOSSLESS_BUFFER_PARAMETER
PFCWD_STATS PFC_COUNTERS PFC_HISTORY QUEUE QUEUE_TABLE QUEUE_WATERMARKS SCHEDULER
SCHEDULER_TABLE
"""
)
"""Sizes, rates and counters, which no verdict depends on."""
MATTERING: Mapping[str, frozenset[str]] = {
    what: _names(names)
    for what, names in {
        "forwards": """
CLASS_BASED_NEXT_HOP_GROUP_TABLE DASH_ENI_FORWARD_TABLE DASH_ENI_ROUTE_TABLE
DASH_OUTBOUND_PORT_MAP_RANGE_TABLE DASH_OUTBOUND_PORT_MAP_TABLE DASH_ROUTE_GROUP_TABLE
DASH_ROUTE_RULE_TABLE DASH_ROUTE_TABLE DASH_VNET DASH_VNET_MAPPING_TABLE DASH_VNET_TABLE
EVPN_ETHERNET_SEGMENT EVPN_MH_GLOBAL EVPN_SPLIT_HORIZON_TABLE FC_TO_NHG_INDEX_MAP_TABLE
FIXED_IPV4_TABLE FIXED_IPV6_TABLE FIXED_NEXTHOP_TABLE FIXED_WCMP_GROUP_TABLE L2_NEXTHOP_GROUP_TABLE
LABEL_ROUTE_TABLE MCLAG_DOMAIN MCLAG_FDB_TABLE MCLAG_INTERFACE P4RT_TABLE PASS_THROUGH_ROUTE_TABLE
PIC_CONTEXT_TABLE SYSTEM_PORT SYSTEM_PORT_TABLE VNET VNET_ROUTE VNET_ROUTE_TABLE VNET_TABLE
VOQ_INBAND_INTERFACE
""",
        "tunnels": """
DASH_TUNNEL_TABLE FIXED_IPV6_TUNNEL_TERMINATION_TABLE FIXED_TUNNEL_TABLE NVGRE_TUNNEL
NVGRE_TUNNEL_MAP SRV6_MY_LOCATORS SRV6_MY_SIDS SRV6_MY_SID_TABLE SRV6_SID_LIST_TABLE
VNET_ROUTE_TUNNEL VNET_ROUTE_TUNNEL_TABLE VXLAN_EVPN_NVO VXLAN_EVPN_NVO_TABLE VXLAN_FDB_TABLE
VXLAN_REMOTE_VNI_TABLE VXLAN_TUNNEL VXLAN_TUNNEL_MAP VXLAN_TUNNEL_MAP_TABLE VXLAN_TUNNEL_TABLE
VXLAN_VRF_TABLE
""",
        "gives packets other addresses or tags": """
NAPT_TABLE NAPT_TWICE_TABLE NAT_BINDINGS NAT_TABLE NAT_TWICE_TABLE STATIC_NAPT STATIC_NAT
VLAN_STACKING VLAN_STACKING_TABLE VLAN_TRANSLATION VLAN_TRANSLATION_TABLE
""",
        "gives packets other priorities": "DASH_QOS DASH_QOS_TABLE SWITCH_TRIMMING",
        "maps, buffers or pauses": "PORT_QOS_MAP_TABLE",
    }.items()
}
"""What each table does that is not interpreted and changes where packets go or wait."""
READ = _INTERPRETED | _SIZES
"""Tables that are interpreted, or have sizes and rates."""
_KIND = {name: what for what, names in MATTERING.items() for name in names}

ROUTES_WITHOUT_EFFECT = frozenset({"weight", "protocol", "router_mac", "NULL"})
"""Fields of routes that choose no next hop."""
_ROUTE_FIELDS = ROUTES_WITHOUT_EFFECT | _names(
    "nexthop ifname nexthop_group blackhole vni_label mpls_nh"
)
_OF_INTERFACES = "vrf_name vnet_name"
_OF_INTERFACES_WITHOUT_EFFECT = """
nat_zone mpls ipv6_use_link_local_only mac_addr loopback_action scope family secondary grat_arp
proxy_arp static_anycast_gateway admin_status vlan
"""
FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    table: (_names(interpreted), _names(without_effect))
    for table, interpreted, without_effect in (
        ("BUFFER_PG", "profile", ""),
        (
            "BUFFER_PROFILE",
            "pool size xoff static_th dynamic_th xon_offset",
            "xon headroom_type packet_discard_action",
        ),
        ("INTERFACE", _OF_INTERFACES, _OF_INTERFACES_WITHOUT_EFFECT),
        ("LOOPBACK_INTERFACE", _OF_INTERFACES, _OF_INTERFACES_WITHOUT_EFFECT),
        ("VLAN_INTERFACE", _OF_INTERFACES, _OF_INTERFACES_WITHOUT_EFFECT),
        ("VLAN_SUB_INTERFACE", _OF_INTERFACES, _OF_INTERFACES_WITHOUT_EFFECT),
        ("PORTCHANNEL_INTERFACE", _OF_INTERFACES, _OF_INTERFACES_WITHOUT_EFFECT),
        (
            "MUX_CABLE",
            "server_ipv4 server_ipv6 state cable_type",
            "prober_type neighbor_mode soc_ipv4 soc_ipv6",
        ),
        ("PEER_SWITCH", "address_ipv4", ""),
        ("PFC_WD", "action", "detection_time restoration_time pfc_stat_history POLL_INTERVAL"),
    )
}
"""The fields of tables that are interpreted, and those that change nothing in the verdict."""
_ACTIONS_WITHOUT_EFFECT = _names(
    """
MIRROR_ACTION MIRROR_INGRESS_ACTION MIRROR_EGRESS_ACTION DO_NOT_NAT_ACTION POLICER_ACTION
INNER_SRC_MAC_REWRITE_ACTION
"""
)
"""Actions of ACL rules that drop, copy, count or leave the packet where it goes."""
_VRF_UNUSED = ("", "0", "false")


_READ_ELSEWHERE = _names(
    """
BGP_INTERNAL_NEIGHBOR BGP_NEIGHBOR BGP_PEER_RANGE BGP_VOQ_CHASSIS_NEIGHBOR STATIC_ROUTE WRED_PROFILE
"""
)
"""Tables of which only settings of queues and computed routes are taken."""


def is_named_alone(table: str) -> bool:
    """Tell whether nothing of a table counts except that it is there, which a note says."""
    return table not in READ | _KIND.keys() | _READ_ELSEWHERE


def judge_tables(routers: Sequence[Router], findings: Findings) -> None:
    """Add what the tables say that could matter and is not followed; name the others."""
    unclear: dict[str, dict[str, Cause]] = {}
    others: dict[str, Cause] = {}
    fields: dict[str, Cause] = {}
    for router in routers:
        cause = router.source.cause
        for name, table in unknown_fields(router):
            fields.setdefault(f"{_shown(name)} of {table}", cause(table, name))
        for text, *keys in _unsupported(router):
            unclear.setdefault(text, {}).setdefault(router.host, cause(*keys))
        for table, rows in router.tables.items():
            if rows and table not in READ | _KIND.keys():
                others.setdefault(table, cause(table))
        if router.table("MIRROR_SESSION"):
            findings.note(
                f"the copies that MIRROR_SESSION of {router.host} makes are not followed",
                cause("MIRROR_SESSION"),
            )
        if router.table("PFC_WD_TABLE_INSTORM"):
            findings.note(
                f"{router.host}: the PFC watchdog sees a storm (PFC_WD_TABLE_INSTORM)",
                cause("PFC_WD_TABLE_INSTORM"),
            )
    for text, hosts in unclear.items():
        findings.unclear(text.format(listed(hosts, 1)), *[*hosts.values()][:_SHOWN])
    if fields:
        findings.note(
            f"fields that are not interpreted: {listed(sorted(fields), _SHOWN)}",
            *(fields[name] for name in sorted(fields)[:_SHOWN]),
        )
    if others:
        findings.note(
            "tables that are not interpreted, since they neither forward, remark, buffer nor pause:"
            f" {listed(sorted(others), _SHOWN)}",
            *(others[name] for name in sorted(others)[:_SHOWN]),
        )


def unknown_fields(router: Router) -> Iterator[tuple[str, str]]:
    """Yield the fields of tables that are read and are not interpreted, each with its table."""
    for table, (interpreted, without_effect) in FIELDS.items():
        used = {name for fields in router.table(table).values() for name in fields}
        for name in used - interpreted - without_effect - {"NULL", ""}:
            yield name, table


def _unsupported(router: Router) -> Iterator[tuple[str, ...]]:
    """Yield what tables say that could matter and is not followed, and the keys that lead there.

    ``{}`` in a text stands for the device.
    """
    for table, rows in router.tables.items():
        if table in ("ACL_RULE", "ACL_RULE_TABLE"):
            yield from _acl_actions(table, rows)
        elif table in ("NAT_GLOBAL", "NAT_GLOBAL_TABLE"):
            if any(fields.get("admin_mode") == "enabled" for fields in rows.values()):
                yield f"what {table} of {{}} does", table
        elif table == "SUBNET_DECAP":
            if any(fields.get("status") == "enable" for fields in rows.values()):
                yield f"what {table} of {{}} does: packets in tunnels end there", table
        elif table == "POLICY_BINDING_TABLE":
            for key in [key for key in rows if not key.startswith("CtrlPlane")][:1]:
                yield f"what the policy of {_shown(key)} of {{}} does", table, key
        elif table in ("VRF", "VRF_TABLE"):
            for key, fields in rows.items():
                if any(fields.get(name, "") not in _VRF_UNUSED for name in ("vni", "fallback")):
                    yield f"what vni or fallback of VRF {_shown(key)} of {{}} does", table, key
        elif table in ("ROUTE_TABLE", "NEXTHOP_GROUP_TABLE"):
            used = {
                name
                for fields in rows.values()
                for name in fields.keys() - _ROUTE_FIELDS
                if fields[name] not in ("", "na")
            }
            for name in sorted(used):
                yield f"what {_shown(name)} of {table} of {{}} does", table, name
        elif table.endswith("INTERFACE") and any(row.get("vnet_name") for row in rows.values()):
            yield f"what vnet_name of {table} of {{}} does", table, "vnet_name"
        elif table in _KIND and rows:
            yield f"what the table {table} of {{}} does: it {_KIND[table]}", table


def _acl_actions(table: str, rows: Mapping[str, Fields]) -> Iterator[tuple[str, str, str]]:
    """Yield each action that sends packets elsewhere or in another priority, with its first rule.

    What a rule drops does not wait. Fields that are no actions are matches.
    """
    rules: dict[str, str] = {}
    for key, fields in rows.items():
        for name, value in fields.items():
            if name == "PACKET_ACTION":
                if "REDIRECT" in value.upper():
                    rules.setdefault("the redirection", key)
            elif name == "REDIRECT_ACTION":
                rules.setdefault("the redirection", key)
            elif "ACTION" in name and name not in _ACTIONS_WITHOUT_EFFECT:
                rules.setdefault(name, key)
    for name, key in rules.items():
        yield f"what {_shown(name)} of {table}|{_shown(key)} of {{}} does", table, key


def _shown(text: str) -> str:
    return text[:80].replace("{", "(").replace("}", ")")
