"""The configuration of FRR that SONiC's own templates make of CONFIG_DB.

References
----------
sonic-net/sonic-buildimage: dockers/docker-fpm-frr/frr/bgpd/bgpd.main.conf.j2, templates/general,
tsa/bgpd.tsa.isolate.conf.j2 and staticd/staticd.loopback_route.conf.j2 there;
src/sonic-bgpcfgd/bgpcfgd (managers_bgp.py, managers_bbr.py, managers_static_rt.py);
src/sonic-yang-models.

"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from knotless.importers.findings import Findings
from knotless.importers.frr.configuration import (
    FAMILIES,
    IPV4,
    IPV6,
    FrrConfiguration,
    MapEntry,
    NeighbourSettings,
    PrefixRule,
    StaticRoute,
    family_of,
)
from knotless.importers.frr.reader import number_of
from knotless.importers.prefixes import prefix_of
from knotless.importers.routers.interfaces import addresses_of
from knotless.importers.routers.router import Router
from knotless.importers.sonic.database import Fields

_LOOPBACK = "Loopback0"
_FOLLOWED = {"BGP_NEIGHBOR", "BGP_BBR", "BGP_DEVICE_GLOBAL"}
_TABLES_WITHOUT_EFFECT = {
    "BGP_MONITORS": "templates/monitors/policies.conf.j2: 'route-map FROM_BGPMON deny 10'",
}
_POLICIES = ("ROUTE_MAP", "ROUTE_REDISTRIBUTE", "PREFIX_", "COMMUNITY_SET", "AS_PATH_SET")
"""First parts of the names of tables that change routes, as those that begin with ``BGP_``."""
_NEIGHBOUR_FIELDS = {
    "asn": "followed",
    "admin_status": "followed",
    "local_addr": "followed",
    "name": "templates/general/instance.conf.j2: 'description', and the names of tags",
    "holdtime": "instance.conf.j2: 'timers', when routes settle",
    "keepalive": "instance.conf.j2: 'timers', when routes settle",
    "nhopself": "instance.conf.j2: 'next-hop-self', as external sessions have",
    "rrclient": "instance.conf.j2: 'route-reflector-client', of internal sessions only",
}
_GLOBAL_FIELDS = {
    "tsa_enabled": "followed",
    "chassis_tsa_supported": "sonic-bgp-device-global.yang: where 'tsa_enabled' comes from",
    "wcmp_enabled": "wcmp/bgpd.wcmp.conf.j2: 'set extcommunity bandwidth', shares of next hops",
}
"""Fields of BGP_DEVICE_GLOBAL|STATE; an isolation (``idf_isolation_state``) is a missing fact."""
_STATIC_FIELDS = ("nexthop", "ifname", "blackhole", "distance", "nexthop-vrf", "advertise", "bfd")
_ADVERTISED, _NOT_ADVERTISED = 1, 2
"""Tags of static routes: managers_static_rt.py, ROUTE_ADVERTISE_ENABLE_TAG and DISABLE."""
_FILTER = "STATIC_ROUTE_FILTER"
_OTHER_TYPES = ("spinechassisfrontendrouter", "upperspinerouter", "lowerspinerouter")
"""Types of devices whose templates have more than that of a leaf or spine."""


def of_sonic(router: Router, findings: Findings) -> FrrConfiguration:
    """Return the configuration that SONiC's own templates make of CONFIG_DB."""
    metadata = router.table("DEVICE_METADATA").get("localhost", {})
    configuration = FrrConfiguration(
        relaxed=True, activates_ipv4=False, requires_policy=False, waits_for_fib=True
    )
    _add_static(router, configuration)
    if metadata.get("bgp_asn", "none").lower() in ("none", "null"):
        return configuration
    configuration.asn = number_of(metadata["bgp_asn"])
    findings.note(
        f"BGP of {router.name}: as SONiC's template, it announces loopback and VLAN networks",
        router.source.cause("DEVICE_METADATA", "localhost", "bgp_asn"),
    )
    configuration.unclear += _not_followed(router, metadata)
    is_tor, is_leaf = (metadata.get("type") == kind for kind in ("ToRRouter", "LeafRouter"))
    bounces = router.table("BGP_BBR").get("all", {}).get("status") == "enabled"
    allowed = 1 if is_tor or (is_leaf and bounces) else 0
    own = {str(ipaddress.ip_interface(address).ip) for _, address in addresses_of(router)}
    for key, fields in router.table("BGP_NEIGHBOR").items():
        vrf, _, address = key.rpartition("|")
        if vrf not in ("", "default") or "asn" not in fields:
            continue
        status = fields.get("admin_status", metadata.get("default_bgp_status", "up"))
        configuration.neighbours[address] = NeighbourSettings(
            remote_as=number_of(fields["asn"]),
            shutdown=status == "down",
            active={family_of(address): True},
            own_as_allowed=dict.fromkeys(FAMILIES, allowed),
        )
        local = fields.get("local_addr", "")
        if local and local.partition("/")[0] not in own:
            configuration.unclear.append(f"BGP_NEIGHBOR|{key}: local_addr {local}"[:100])
        others = fields.keys() - _NEIGHBOUR_FIELDS - {"NULL"}
        configuration.unclear += [f"{name} of BGP_NEIGHBOR|{key}"[:100] for name in sorted(others)]
    _announce(router, metadata, configuration)
    return configuration


def _not_followed(router: Router, metadata: Fields) -> Iterator[str]:
    """Yield the tables and fields that change the configuration otherwise than is known here."""
    handled = _FOLLOWED | _TABLES_WITHOUT_EFFECT.keys()
    for table, rows in router.tables.items():
        if rows and table.startswith(("BGP_", *_POLICIES)) and table not in handled:
            yield table
    for key, fields in router.table("BGP_DEVICE_GLOBAL").items():
        for name, value in fields.items():
            isolated = name == "idf_isolation_state" and value != "unisolated"
            if isolated or (name != "idf_isolation_state" and name not in _GLOBAL_FIELDS):
                yield f"{name} of BGP_DEVICE_GLOBAL|{key}"[:100]
    for name, wrong in (
        ("frr_mgmt_framework_config", ("true",)),
        ("docker_routing_config_mode", ("split", "split-unified")),
        ("switch_type", ("voq", "chassis-packet")),
        ("sub_role", ("frontend", "backend")),
        ("type", _OTHER_TYPES),
        ("subtype", ("upstreamlc", "downstreamlc")),
    ):
        if metadata.get(name, "").lower() in wrong:
            yield f"{name} {metadata[name]} of DEVICE_METADATA: frr.conf is needed"


def _announce(router: Router, metadata: Fields, configuration: FrrConfiguration) -> None:
    """Add what bgpd.main.conf.j2 announces: Loopback0, and the networks of VLANs."""
    networks: dict[str, None] = {}
    whole = metadata.get("bgp_adv_lo_prefix_as_128") == "true"
    for interface, text in addresses_of(router):
        family = family_of(text)
        if interface == _LOOPBACK:
            length = "32" if family == IPV4 else "128" if whole else "64"
            prefix = prefix_of(f"{text.partition('/')[0]}/{length}")
            networks[prefix.text] = None
            if family == IPV6:
                configuration.static.append(StaticRoute(prefix.text, None, interface))
            rule = PrefixRule(True, prefix, int(length), int(length))
            name = f"PL_LoopbackV{family[-1]}"
            configuration.prefix_lists[family, name] = [(5, rule)]
    vlans = router.table("VLAN_INTERFACE")
    for key in vlans:
        vlan, bar, address = key.partition("|")
        if vlan and bar and "/" in address and "vnet_name" not in vlans.get(vlan, {}):
            networks[prefix_of(address).text] = None
    configuration.networks = dict(networks)
    if router.table("BGP_DEVICE_GLOBAL").get("STATE", {}).get("tsa_enabled") == "true":
        # tsa/bgpd.tsa.isolate.conf.j2: 'permit 20' for the loopback, 'deny 40' for all else
        for settings in configuration.neighbours.values():
            for family in FAMILIES:
                name = f"PL_LoopbackV{family[-1]}"
                settings.lists[family, "out"] = name
                configuration.prefix_lists.setdefault((family, name), [])


def _add_static(router: Router, configuration: FrrConfiguration) -> None:
    """Add the rows of STATIC_ROUTE: lists of next hops, interfaces and distances of equal length.

    See sonic-static-route.yang, and bgpcfgd's managers_static_rt.py.
    """
    for key, fields in router.table("STATIC_ROUTE").items():
        vrf, _, text = key.rpartition("|")
        if vrf not in ("", "default"):
            continue
        routes = _static_routes(prefix_of(text).text, fields)
        if routes is None:
            configuration.unclear.append(f"STATIC_ROUTE|{key}"[:100])
        else:
            configuration.static += routes
    if configuration.static:
        configuration.route_maps[_FILTER] = {10: MapEntry(permit=True, tags=[_ADVERTISED])}
        for family in FAMILIES:
            configuration.redistributed[family, "static"] = _FILTER


def _static_routes(prefix: str, fields: Mapping[str, str]) -> list[StaticRoute] | None:
    """Return the next hops of a row; None if it has something that is not followed."""
    columns = [
        fields[name].split(",") if fields.get(name) else []
        for name in ("nexthop", "ifname", "blackhole", "distance", "nexthop-vrf")
    ]
    count = max(map(len, columns[:3]))
    if (
        fields.keys() - {*_STATIC_FIELDS, "NULL"}
        or fields.get("bfd", "false").startswith("true")
        or any(len(column) not in (0, count) for column in columns)
        or not {*columns[4]} <= {"", "default"}
    ):
        return None
    tag = _NOT_ADVERTISED if fields.get("advertise") == "false" else _ADVERTISED
    routes = []
    rows = zip(*(column or [""] * count for column in columns[:4]), strict=True)
    for address, interface, blackhole, distance in rows:
        far = int(distance) if distance.isdecimal() else 0
        gateway = None if address in ("", "0.0.0.0", "::") else address  # noqa: S104
        if blackhole == "true":
            routes.append(StaticRoute(prefix, None, None, max(far, 1), tag))
        elif gateway or interface:
            # managers_static_rt.py: 'ip route PREFIX GATEWAY INTERFACE', both if both are given
            routes.append(StaticRoute(prefix, gateway, interface or None, max(far, 1), tag))
        else:
            return None
    return routes
