"""One router of an imported fabric, before the fabric is put together, and its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from knotless.importers.cabling.lldp_json import Neighbour
from knotless.importers.route_dump import RouteDump
from knotless.importers.sonic.database import Fields


@dataclass
class Router:
    """A router: the tables of its databases, its routes by source, and what its ports hear.

    ``host`` is what the device calls itself: a device with several chips (ASICs) or VRFs is one
    router for each. ``heard`` is None if nothing is known of its neighbours.
    """

    name: str
    host: str
    tables: dict[str, dict[str, Fields]] = field(default_factory=dict)
    dumps: list[tuple[str, RouteDump]] = field(default_factory=list)
    heard: list[Neighbour] | None = None

    def table(self, name: str) -> dict[str, Fields]:
        """Return a table; empty if there is none."""
        return self.tables.get(name, {})


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key by which leaf2 comes before leaf10."""
    parts: list[tuple[int, int, str]] = []
    digits = text = ""
    for character in name + "\0":
        if character in "0123456789":
            if text:
                parts.append((1, 0, text))
            digits, text = digits + character, ""
        else:
            if digits:
                parts.append((0, int(digits[:18]), digits))
            digits, text = "", text + character
    return [*parts, (1, 0, text)]


_READ = """
BRIDGE BRIDGE_MEMBER DCB BUFFER_PG BUFFER_PROFILE DEVICE_METADATA DEVICE_NEIGHBOR
DEVICE_NEIGHBOR_METADATA DSCP_TO_TC_MAP
INTERFACE LLDP_ENTRY_TABLE LOOPBACK_INTERFACE MAP_PFC_PRIORITY_TO_QUEUE NEXTHOP_GROUP_TABLE
PFC_PRIORITY_TO_PRIORITY_GROUP_MAP PFC_WD PORT PORTCHANNEL PORTCHANNEL_INTERFACE PORTCHANNEL_MEMBER
PORT_QOS_MAP ROUTE_TABLE TC_TO_PRIORITY_GROUP_MAP TC_TO_QUEUE_MAP VLAN VLAN_INTERFACE VLAN_MEMBER
VLAN_SUB_INTERFACE MUX_CABLE MUX_CABLE_TABLE HW_MUX_CABLE_TABLE PEER_SWITCH TUNNEL TC_TO_DSCP_MAP
"""
_HARMLESS = """
AAA ACL_TABLE ACL_TABLE_TYPE ASIC_STATE AUTO_TECHSUPPORT BANNER_MESSAGE BGP_AGGREGATE_ADDRESS
BGP_ALLOWED_PREFIXES BGP_BBR BGP_DEVICE_GLOBAL BGP_INTERNAL_NEIGHBOR BGP_MONITORS BGP_NEIGHBOR
BGP_PEER_RANGE BGP_SENTINELS BGP_VOQ_CHASSIS_NEIGHBOR BREAKOUT_CFG BUFFER_POOL
BUFFER_PORT_EGRESS_PROFILE_LIST BUFFER_PORT_INGRESS_PROFILE_LIST BUFFER_QUEUE CABLE_LENGTH
CHASSIS_MODULE CONFIG_DB_INITIALIZED CONSOLE_PORT CONSOLE_SWITCH COPP_GROUP COPP_TRAP COREDUMP CRM
DEBUG_COUNTER DEBUG_COUNTER_DROP_REASON DEBUG_DROP_MONITOR DEFAULT_LOSSLESS_BUFFER_PARAMETER
DHCP_RELAY DHCP_SERVER DNS_NAMESERVER ECMP_LOADSHARE_TABLE_IPV4 ECMP_LOADSHARE_TABLE_IPV6
FABRIC_MONITOR FABRIC_PORT FEATURE FG_NHG FG_NHG_MEMBER FG_NHG_PREFIX FLEX_COUNTER_TABLE GNMI
HARDWARE INTF_TABLE KDUMP KUBERNETES_MASTER LAG_MEMBER_TABLE LAG_TABLE LLDP LLDP_LOC_CHASSIS
LLDP_PORT LLR_PORT LOGGER LOOPBACK LOSSLESS_TRAFFIC_PATTERN MGMT_INTERFACE MGMT_PORT
MGMT_VRF_CONFIG MIRROR_SESSION NEIGH NEIGH_TABLE NTP NTP_SERVER PASSW_HARDENING
PORT_STORM_CONTROL PORT_TABLE QUEUE RESTAPI ROUTE_REDISTRIBUTE SAG SCHEDULER SFLOW SFLOW_COLLECTOR
SFLOW_SESSION SNMP SNMP_AGENT_ADDRESS_CONFIG SSH_SERVER STP STP_PORT STP_VLAN SWITCH SWITCH_HASH
SYSLOG_CONFIG SYSLOG_CONFIG_FEATURE SYSLOG_SERVER SYSTEM_DEFAULTS TACPLUS TACPLUS_SERVER TELEMETRY
TELEMETRY_CLIENT VERSIONS WRED_PROFILE XCVRD_LOG ZTP LOOPBACK_ACTION STATIC_ROUTE ROUTE_MAP
PREFIX_LIST PREFIX_SET MCLAG_UNIQUE_IP MPLS_TC_TO_TC_MAP MUX_LINKMGR
TUNNEL_DECAP_TABLE TUNNEL_DECAP_TERM_TABLE TUNNEL_ROUTE_TABLE
VLAN_TABLE VLAN_MEMBER_TABLE NEIGH_RESOLVE_TABLE FDB_TABLE COPP_TABLE BUFFER_PG_TABLE
BUFFER_POOL_TABLE BUFFER_PROFILE_TABLE BUFFER_QUEUE_TABLE BUFFER_PORT_EGRESS_PROFILE_LIST_TABLE
BUFFER_PORT_INGRESS_PROFILE_LIST_TABLE PFC_WD_TABLE SWITCH_TABLE BFD_SESSION_TABLE SFLOW_TABLE
STORM_CONTROL_TABLE DOT1P_TO_TC_MAP CLASSIFIER_TABLE POLICY_TABLE POLICY_SECTIONS_TABLE
"""
"""Tables that cannot change where unicasts of hosts go, nor in which priority.

Policies have an effect only where POLICY_BINDING_TABLE binds them.
MPLS_TC_TO_TC_MAP and DOT1P_TO_TC_MAP have an effect only where another table names them.
"""
_KNOWN = frozenset(_READ.split()) | frozenset(_HARMLESS.split())


def unsupported(router: Router) -> Iterator[str]:
    """Yield what the tables of a router say that could matter and is not followed."""
    for table, rows in router.tables.items():
        if table == "ACL_RULE":
            for key, fields in rows.items():
                redirects = "REDIRECT" in fields.get("PACKET_ACTION", "")
                if redirects or "REDIRECT_ACTION" in fields:
                    yield f"what the redirection ACL_RULE|{key} of {router.name} does"
        elif table == "NAT_GLOBAL":
            if any(fields.get("admin_mode") == "enabled" for fields in rows.values()):
                yield f"what NAT_GLOBAL of {router.name} does"
        elif table == "POLICY_BINDING_TABLE":
            bound = [key for key in rows if not key.startswith("CtrlPlane")]
            if bound:
                yield f"what the policy of {bound[0]} of {router.name} does"
        elif table == "VRF":
            for key, fields in rows.items():
                if fields.get("vni", "0") not in ("0", "") or fields.get("fallback") == "true":
                    yield f"what vni or fallback of VRF {key} of {router.name} does"
        elif table not in _KNOWN and rows:
            yield f"what the table {table} of {router.name} does"
