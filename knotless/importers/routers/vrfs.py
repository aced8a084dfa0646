"""VRFs: a router with several is treated as several, which share nothing but the device.

A port, and with it its buffers and its pauses, belongs to one VRF. The management VRF is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from knotless.importers.findings import Findings
from knotless.importers.route_dump import DEFAULT_VRF, RouteDump
from knotless.importers.routers.interfaces import DeviceInterfaces
from knotless.importers.routers.router import INTERFACE_TABLES, Router
from knotless.importers.sonic.database import Fields

_INTERFACES = (*INTERFACE_TABLES, "LOOPBACK_INTERFACE", "INTF_TABLE")
_OF_PORTS = ("PORT", "DEVICE_NEIGHBOR", "PORT_QOS_MAP", "DCB")
_OF_DEFAULT = {"MUX_CABLE", "PEER_SWITCH", "TUNNEL", "VRF"}
"""Tables of the whole device, which the router of its default VRF keeps."""
MANAGEMENT = "mgmt"


def by_vrf(device: Router, findings: Findings) -> list[Router]:
    """Return the routers of a device: that of the default VRF, then one for each other VRF."""
    of_interface: dict[str, str] = {}
    for interface, vrf in _vrf_of_interfaces(device):
        if of_interface.setdefault(interface, vrf) != vrf:
            findings.unclear(
                f"which VRF {interface} of {device.name} is in", device.source.cause(interface)
            )
    routed = {vrf for _, dump in device.dumps for vrf, _ in dump.routes}
    named = {*routed, *of_interface.values()} - {DEFAULT_VRF, MANAGEMENT}
    _find_leaks(device, of_interface, findings)
    if not named:
        configuration = device.configuration and device.configuration.of_vrf(None)
        return [replace(device, dumps=_dumps(device, DEFAULT_VRF), configuration=configuration)]
    of_port: dict[str, str] = {}
    for interface, vrf in of_interface.items():
        for port in _ports(device, interface):
            if of_port.setdefault(port, vrf) != vrf:
                findings.unclear(
                    f"{port} of {device.name} is in VRF {vrf} and {of_port[port]}",
                    device.source.cause(interface),
                    device.source.cause(port),
                )
    routers = []
    for vrf in (DEFAULT_VRF, *sorted(named)):
        is_default = vrf == DEFAULT_VRF
        heard = device.heard
        routers.append(
            replace(
                device,
                name=device.name if is_default else f"{device.name}-{vrf}",
                tables={
                    table: _rows(table, rows, vrf, of_interface, of_port)
                    for table, rows in device.tables.items()
                    if is_default or table not in _OF_DEFAULT
                },
                dumps=_dumps(device, vrf),
                configuration=device.configuration
                and device.configuration.of_vrf(None if is_default else vrf),
                source=device.source._replace(vrf="" if is_default else vrf),
                heard=heard
                and [
                    neighbour
                    for neighbour in heard
                    if of_port.get(neighbour.interface, DEFAULT_VRF) == vrf
                ],
            )
        )
    names = ", ".join(router.name for router in routers[1:])
    findings.note(
        f"VRFs of {device.name} are shown as switches of their own: {names}", device.source.cause()
    )
    if not _has_interfaces(routers[0]) and not any(dump.routes for _, dump in routers[0].dumps):
        routers = routers[1:]
    return routers


def _has_interfaces(router: Router) -> bool:
    return any(router.table(table) for table in _INTERFACES if table != "LOOPBACK_INTERFACE")


def _vrf_of_interfaces(device: Router) -> Iterator[tuple[str, str]]:
    """Yield interfaces with their VRF: those that are configured, then those that routes name."""
    configured = {}
    for table in _INTERFACES:
        for key, fields in device.table(table).items():
            if fields.get("vrf_name"):
                configured[key] = fields["vrf_name"]
            elif "|" not in key and ":" not in key:
                configured.setdefault(key, DEFAULT_VRF)
    for _, dump in device.dumps:
        for (vrf, _), hops in dump.routes.items():
            for hop in hops:
                if hop.address is None and hop.interface and hop.interface not in configured:
                    yield hop.interface, vrf
    yield from configured.items()


def _ports(device: Router, interface: str) -> list[str]:
    base = DeviceInterfaces(device).base(interface)
    members = [
        key[len(base) + 1 :]
        for table in ("PORTCHANNEL_MEMBER", "LAG_MEMBER_TABLE", "VLAN_MEMBER")
        for key in device.table(table)
        if key.startswith((f"{base}|", f"{base}:"))
    ]
    return members or [base]


def _find_leaks(device: Router, of_interface: Mapping[str, str], findings: Findings) -> None:
    for _, dump in device.dumps:
        for (vrf, prefix), hops in dump.routes.items():
            for hop in hops:
                out = of_interface.get(hop.interface or "", vrf)
                if out != vrf and vrf != MANAGEMENT:
                    findings.unclear(
                        f"the route of {device.name} in VRF {vrf} to {prefix} by {hop.interface},"
                        f" which is in VRF {out}",
                        device.source._replace(vrf="" if vrf == DEFAULT_VRF else vrf).route(prefix),
                    )


def _dumps(device: Router, vrf: str) -> list[tuple[str, RouteDump]]:
    """Return the routes of a VRF as if they were those of the default one."""
    return [
        (
            name,
            RouteDump(
                {
                    (DEFAULT_VRF, prefix): hops
                    for (route_vrf, prefix), hops in dump.routes.items()
                    if route_vrf == vrf
                },
                dump.unclear,
            ),
        )
        for name, dump in device.dumps
    ]


def _rows(
    table: str,
    rows: Mapping[str, Fields],
    vrf: str,
    of_interface: Mapping[str, str],
    of_port: Mapping[str, str],
) -> dict[str, Fields]:
    """Return the rows of a table that belong to a VRF."""
    if table in _INTERFACES:
        mark = ":" if table == "INTF_TABLE" else "|"
        return {
            key: fields
            for key, fields in rows.items()
            if of_interface.get(key.partition(mark)[0], DEFAULT_VRF) == vrf
        }
    if table in _OF_PORTS:
        return {
            key: fields
            for key, fields in rows.items()
            if key == "global"
            or any(of_port.get(port, DEFAULT_VRF) == vrf for port in key.split(","))
        }
    return dict(rows)
