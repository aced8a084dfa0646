"""Files of routers: ``frr.conf`` of FRR on Linux, ``config_db.json`` of SONiC, and their cables.

References
----------
FRR User Guide, chapter STATIC. SONiC: Configuration.md (sonic-net/sonic-buildimage), tables
VLAN_INTERFACE, STATIC_ROUTE and PORT_QOS_MAP.

"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from knotless.forwarding.routed.tables import RouterTables

README = "README.txt"
CABLES = "layer1_topology.json"
FRR, SONIC = FILE_NAMES = ("frr.conf", "config_db.json")
"""The file of a router, in a folder with its name."""
_BRIDGE = "br0"
_VLAN = "Vlan10"
_LANES = 4
_PRIORITY = "3"
_MAP = "KNOTLESS"

_ORDER_FRR = """\
{name}: static routes for {routers} routers with FRR

NAME/frr.conf has the addresses and static routes of router NAME; its port N is called NAME-ethN.

1. On each router, turn on forwarding, and hash by addresses, so that all packets of two hosts take
   one path: sysctl net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=0
2. Make a bridge {bridge} of the ports to hosts, named in the descriptions in frr.conf:
   ip link add {bridge} type bridge; ip link set NAME-ethN master {bridge}
3. Install frr.conf, with staticd on, and start FRR.
4. Give each host the address of {bridge} as its gateway.

Flow control is not in these files: turn on PAUSE or PFC at each port.
Check what was written: knotless check DIR --routes static
"""
_ORDER_SONIC = """\
{name}: static routes for {routers} SONiC switches

NAME/config_db.json turns the ports of switch NAME on, and has what it needs besides: load it on top
of its own with config load NAME/config_db.json. Port N is called Ethernet(4 (N - 1)): if yours have
other names, change them here and in {cables}. All ports to hosts are in {vlan}. Give each host the
address of {vlan} as its gateway.

All DSCPs are in lossless priority {priority}. Packets that may be lost wait for nothing, so that
other priorities without PFC can be added. Buffers depend on the chip and are not in these files.
Check what was written: knotless check DIR --routes static
"""


def frr_files(name: str, routers: Sequence[RouterTables]) -> dict[str, str]:
    """Return the text of each file by its path, for FRR; ``name`` is that of the fabric."""
    readme = _ORDER_FRR.format(name=name, routers=len(routers), bridge=_BRIDGE)
    files = {README: readme, CABLES: _cables(routers, _port_of_linux)}
    return files | {f"{router.name}/{FRR}": _frr(router) for router in routers}


def sonic_files(name: str, routers: Sequence[RouterTables]) -> dict[str, str]:
    """Return the text of each file by its path, for SONiC; ``name`` is that of the fabric."""
    readme = _ORDER_SONIC.format(
        name=name, routers=len(routers), cables=CABLES, vlan=_VLAN, priority=_PRIORITY
    )
    files = {README: readme, CABLES: _cables(routers, _port_of_sonic)}
    return files | {
        f"{router.name}/{SONIC}": json.dumps(_sonic(router), indent=4) + "\n" for router in routers
    }


def _port_of_linux(router: str, port: int) -> str:
    return f"{router}-eth{port}"


def _port_of_sonic(_: str, port: int) -> str:
    return f"Ethernet{_LANES * (port - 1)}"


PORT_NAMES: Mapping[str, Callable[[str, int], str]] = {
    "frr": _port_of_linux,
    "sonic": _port_of_sonic,
}
"""What a port of a router (names and numbers of the fabric) is called there."""
FILES: Mapping[str, Callable[[str, Sequence[RouterTables]], dict[str, str]]] = {
    "frr": frr_files,
    "sonic": sonic_files,
}
"""The writers by the name of what runs on the routers."""


def _cables(routers: Sequence[RouterTables], port_name: Callable[[str, int], str]) -> str:
    edges = [
        {
            f"node{number}": {"hostname": router, "interfaceName": port_name(router, port)}
            for number, (router, port) in enumerate(ends, 1)
        }
        for router in routers
        for end in router.links
        if (ends := ((router.name, end.port), (end.peer, end.peer_port)))[0] < ends[1]
    ]
    return json.dumps({"edges": edges}, indent=1) + "\n"


def _frr(router: RouterTables) -> str:
    lines = ["frr defaults traditional", f"hostname {router.name}"]
    for port in router.host_ports:
        interface = _port_of_linux(router.name, port)
        lines += ["!", f"interface {interface}", f" description to a host, in {_BRIDGE}"]
    if router.gateways:
        lines += ["!", f"interface {_BRIDGE}"]
        lines += [f" ip address {gateway}" for gateway in router.gateways]
    for end in router.links:
        interface = _port_of_linux(router.name, end.port)
        lines += ["!", f"interface {interface}", f" description to {end.peer}"]
        lines += [f" ip address {end.address}"]
    lines += ["!"]
    lines += [
        f"ip route {prefix} {end.peer_address}"
        for prefix, ends in router.routes.items()
        for end in ends
    ]
    return "\n".join(lines) + "\n"


def _sonic(router: RouterTables) -> dict[str, dict[str, dict[str, str]]]:
    def port_name(port: int) -> str:
        return _port_of_sonic(router.name, port)

    ports = sorted([*router.host_ports, *(end.port for end in router.links)])
    tables: dict[str, dict[str, dict[str, str]]] = {
        "DEVICE_METADATA": {"localhost": {"hostname": router.name}}
    }
    tables["PORT"] = {port_name(port): {"admin_status": "up"} for port in ports}
    if router.gateways:
        tables["VLAN"] = {_VLAN: {"vlanid": _VLAN.removeprefix("Vlan")}}
        tables["VLAN_MEMBER"] = {
            f"{_VLAN}|{port_name(port)}": {"tagging_mode": "untagged"} for port in router.host_ports
        }
        tables["VLAN_INTERFACE"] = {
            _VLAN: {},
            **{f"{_VLAN}|{gateway}": {} for gateway in router.gateways},
        }
    tables["INTERFACE"] = {
        key: {}
        for end in router.links
        for key in (port_name(end.port), f"{port_name(end.port)}|{end.address}")
    }
    tables["STATIC_ROUTE"] = {
        f"default|{prefix}": {
            "nexthop": ",".join(end.peer_address for end in ends),
            "ifname": ",".join(port_name(end.port) for end in ends),
        }
        for prefix, ends in router.routes.items()
    }
    one = {_PRIORITY: _PRIORITY}
    tables["DSCP_TO_TC_MAP"] = {_MAP: {str(dscp): _PRIORITY for dscp in range(64)}}
    tables["TC_TO_PRIORITY_GROUP_MAP"] = {_MAP: one}
    tables["TC_TO_QUEUE_MAP"] = {_MAP: one}
    tables["MAP_PFC_PRIORITY_TO_QUEUE"] = {_MAP: one}
    tables["PORT_QOS_MAP"] = {
        port_name(port): {
            "dscp_to_tc_map": _MAP,
            "tc_to_pg_map": _MAP,
            "tc_to_queue_map": _MAP,
            "pfc_to_queue_map": _MAP,
            "pfc_enable": _PRIORITY,
        }
        for port in ports
    }
    return tables
