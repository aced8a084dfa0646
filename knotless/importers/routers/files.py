"""The files of each router, put together: its name, tables, routes and neighbours."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from knotless.base.errors import RuleError
from knotless.base.printable import listed
from knotless.importers.cabling.layer1_topology import NamedCables, NamedEnd
from knotless.importers.cabling.lldp_json import Neighbour, Neighbours
from knotless.importers.causes import Cause, Source
from knotless.importers.file_kinds import FoundFile
from knotless.importers.findings import Findings
from knotless.importers.frr.configuration import FrrConfiguration, merged
from knotless.importers.linux.network_interfaces import NetworkInterfaces
from knotless.importers.prefixes import prefix_of
from knotless.importers.route_dump import DEFAULT_VRF, DROP, NextHop, RouteDump
from knotless.importers.routers.cables import Routes
from knotless.importers.routers.interfaces import DeviceInterfaces
from knotless.importers.routers.router import INTERFACE_TABLES, Router, natural
from knotless.importers.routers.vrfs import by_vrf
from knotless.importers.sonic.database import Fields, SonicTables

_BRIDGE_OR_ROUTER = 0x28
"""Bits of the capabilities in LLDP as SNMP shows them: IEEE 802.1AB, 8.5.8."""
_SYSTEM_FOLDERS = (("etc", "frr"), ("etc", "network"), ("etc", "network", "interfaces.d"))
"""Where routers keep their configurations: folders in the folder of a router."""
_OCTET = re.compile(r"[0-9A-Fa-f]{1,2}")


def routers_of(
    files: Sequence[FoundFile], findings: Findings
) -> tuple[list[Router], list[tuple[NamedEnd, NamedEnd]]]:
    """Return the routers, by name, and the cables that a file of the whole fabric lists.

    The files in one folder are those of one router, unless its configurations of FRR name several.
    The name of a router is the host name in its configuration, otherwise that of the folder.

    Raises
    ------
    RuleError
        Two files contradict each other, or it is not known whose a configuration is.

    """
    by_device: dict[Path, list[FoundFile]] = {}
    cables: list[tuple[NamedEnd, NamedEnd]] = []
    for file in files:
        if isinstance(file.value, NamedCables):
            cables += file.value.cables
        else:
            by_device.setdefault(folder_of_router(file.device), []).append(file)
            for asic, tables in _asics(file.value):
                of_asic = replace(file, value=tables, device=file.device / asic, within=(asic,))
                by_device.setdefault(of_asic.device, []).append(of_asic)
    devices = [
        _router(name, of_router, findings)
        for device, of_device in by_device.items()
        for name, of_router in _by_host(device, of_device, findings)
    ]
    whole = {router.host for router in devices if router.name != router.host}
    routers: dict[str, Router] = {}
    for device in devices:
        if device.name in whole and not device.table("PORT"):
            continue  # the processor of a switch with several ASICs
        for router in by_vrf(device, findings):
            if router.name in routers:
                findings.unclear(
                    f"which of two switches called {router.name} is right",
                    routers[router.name].source.cause(),
                    router.source.cause(),
                )
            routers.setdefault(router.name, router)
            findings.sources.setdefault(router.name, router.source)
            findings.sources.setdefault(router.host, router.source)
    return [routers[name] for name in sorted(routers, key=natural)], cables


def _asics(value: object) -> Iterable[tuple[str, SonicTables]]:
    return value.asics.items() if isinstance(value, SonicTables) else ()


def folder_of_router(folder: Path) -> Path:
    """Return the folder of a router whose file is in this folder, such as ``leaf1/etc/frr``."""
    for inner in _SYSTEM_FOLDERS:
        if folder.parts[-len(inner) :] == inner and len(folder.parts) > len(inner) + 1:
            return Path(*folder.parts[: -len(inner)])
    return folder


def _by_host(
    folder: Path, files: Sequence[FoundFile], findings: Findings
) -> Iterable[tuple[str, Sequence[FoundFile]]]:
    """Return the files of each router of a folder, with what it is called there."""
    by_host: dict[str, list[FoundFile]] = {}
    for file in files:
        if isinstance(file.value, FrrConfiguration):
            by_host.setdefault(file.value.host, []).append(file)
    hosts = sorted(by_host.keys() - {""}, key=natural)
    if len(hosts) < 2:
        return [(folder.name, files)]
    for file in by_host.get("", ()):
        raise RuleError(
            f"{file.path}: no line 'hostname', and its folder has the configurations of"
            f" {listed(hosts, 3)}"
        )
    for file in files:
        if not isinstance(file.value, FrrConfiguration):
            findings.unclear(
                f"which of {listed(hosts, 3)} {file.path} is about", Cause((str(file.path),))
            )
    return [(host, by_host[host]) for host in hosts]


def _router(name: str, files: Sequence[FoundFile], findings: Findings) -> Router:
    within = next((file.within for file in files if file.within), ())
    source = Source(tuple(str(file.path) for file in files), within)
    router = Router(name, name, source=source)
    configurations: list[tuple[str, FrrConfiguration]] = []
    for file in files:
        value = file.value
        if isinstance(value, SonicTables):
            _merge(router, value, file, findings)
        elif isinstance(value, RouteDump):
            router.dumps.append((file.path.name, value))
        elif isinstance(value, Neighbours):
            router.heard = [*(router.heard or ()), *value.heard]
        elif isinstance(value, FrrConfiguration):
            configurations.append((str(file.path), value))
        elif isinstance(value, NetworkInterfaces):
            _merge(router, value.tables, file, findings)
            for text in value.unclear:
                findings.gap(
                    f"what {text!r} of {file.path} does to addresses and routes",
                    Cause((str(file.path),), ((text,),)),
                )
    if configurations:
        router.configuration = merged(configurations)
        _add_vrfs(router, router.configuration, findings)
    configured = router.configuration.host if router.configuration else ""
    metadata = router.table("DEVICE_METADATA").get("localhost", {})
    if configured and metadata.get("hostname", configured) != configured:
        findings.unclear(
            f"what {name} is called: {metadata['hostname']} or {configured} (FRR)",
            source.cause("DEVICE_METADATA", "localhost", "hostname"),
            source.cause("hostname", configured),
        )
    router.host = router.name = metadata.get("hostname", configured or name)
    if metadata.get("asic_name"):
        router.name = f"{router.host}-{metadata['asic_name']}"
    if "ROUTE_TABLE" in router.tables:
        router.dumps.insert(0, ("ROUTE_TABLE", _routes_of(router)))
    entries = router.table("LLDP_ENTRY_TABLE")
    if entries:
        router.heard = [*(router.heard or ()), *map(_heard, entries, entries.values())]
    if router.heard is not None:
        router.heard = list(dict.fromkeys(router.heard))
    return router


def _add_vrfs(router: Router, configuration: FrrConfiguration, findings: Findings) -> None:
    """Let tables and configuration agree about the VRFs of interfaces, and name the ports.

    Cables find by its ports which VRF they lead to.
    """
    for interface, vrf in _vrfs_in_tables(router):
        if configuration.vrf_of.setdefault(interface, vrf) != vrf:
            findings.unclear(
                f"which VRF {interface} of {router.name} is in", router.source.cause(interface)
            )
    if not configuration.vrf_of:
        return
    of_router = DeviceInterfaces(router)
    interfaces = {name for name in configuration.interfaces if not of_router.own(name, routed=True)}
    rows = router.tables.setdefault("INTERFACE", {})
    for interface in sorted(interfaces, key=natural):
        row = rows.setdefault(interface, {})
        if interface in configuration.vrf_of:
            row["vrf_name"] = configuration.vrf_of[interface]
    if not router.table("PORT"):
        ports = {of_router.base(name) for name in interfaces}
        router.tables["PORT"] = {port: {} for port in sorted(ports, key=natural)}


def _vrfs_in_tables(router: Router) -> Iterable[tuple[str, str]]:
    for table in (*INTERFACE_TABLES, "LOOPBACK_INTERFACE"):
        for interface, fields in router.table(table).items():
            if fields.get("vrf_name"):
                yield interface, fields["vrf_name"]


def _merge(router: Router, value: SonicTables, file: FoundFile, findings: Findings) -> None:
    for table, rows in value.tables.items():
        merged = router.tables.setdefault(table, {})
        for key, fields in rows.items():
            if merged.setdefault(key, fields) != fields:
                findings.unclear(
                    f"which of two files is right about {table}|{key}: {file.path}",
                    Cause((str(file.path),), ((*file.within, table, key),)),
                )
                return


def _heard(interface: str, entry: Fields) -> Neighbour:
    enabled = entry.get("lldp_rem_sys_cap_enabled", "").split(" ")
    return Neighbour(
        interface,
        entry.get("lldp_rem_sys_name", ""),
        entry.get("lldp_rem_port_id", ""),
        entry.get("lldp_rem_port_desc", ""),
        bool(_hex(enabled[0]) & _BRIDGE_OR_ROUTER) if any(map(_hex, enabled)) else None,
    )


def _hex(text: str) -> int:
    return int(text, 16) if _OCTET.fullmatch(text) else 0


def _routes_of(router: Router) -> RouteDump:
    """Return the routes of APPL_DB."""
    dump = RouteDump()
    groups = router.table("NEXTHOP_GROUP_TABLE")
    vrfs = {*router.table("VRF"), *router.table("VRF_TABLE"), *router.table("VNET_TABLE")}
    read: dict[tuple[str, str], tuple[NextHop, ...]] = {}
    for key, fields in router.table("ROUTE_TABLE").items():
        vrf, prefix = _vrf_and_prefix(key, vrfs)
        next_hop = fields
        if "nexthop_group" in fields:
            next_hop = groups.get(fields["nexthop_group"], {})
        if fields.get("blackhole") == "true":
            hops: tuple[NextHop, ...] = (DROP,)
        elif not next_hop.get("ifname"):
            dump.unclear.append(f"{prefix}: no interface of a next hop is known")
            continue
        else:
            key_of = (next_hop["ifname"], next_hop.get("nexthop", ""))
            if key_of not in read:
                read[key_of] = _hops(prefix, next_hop, dump)
            hops = read[key_of]
        if any(next_hop.get(name, "na") not in ("na", "") for name in ("vni_label", "mpls_nh")):
            dump.unclear.append(f"{prefix}: a next hop in a tunnel or with labels")
        dump.routes[vrf, prefix] = hops
    return dump


def _vrf_and_prefix(key: str, vrfs: Container[str]) -> tuple[str, str]:
    """Return the parts of a key such as ``Vrf1:10.0.0.0/24``; IPv6 prefixes have colons too."""
    vrf, colon, prefix = key.partition(":")
    if colon and (vrf in vrfs or not _is_prefix(key)) and _is_prefix(prefix):
        return vrf, prefix
    return DEFAULT_VRF, key


def _is_prefix(text: str) -> bool:
    try:
        prefix_of(text)
    except RuleError:
        return False
    return True


def _hops(prefix: str, fields: Fields, dump: RouteDump) -> tuple[NextHop, ...]:
    interfaces = fields["ifname"].split(",")
    addresses = fields.get("nexthop", "").split(",")
    if addresses == [""]:
        addresses = [""] * len(interfaces)
    if len(addresses) != len(interfaces):
        dump.unclear.append(f"{prefix}: {len(addresses)} next hops by {len(interfaces)} ports")
    connected = {"", "0.0.0.0", "::"}  # noqa: S104 - no address that is bound to
    hops = zip(addresses, interfaces, strict=False)
    return tuple(
        NextHop(None if address in connected else address, interface) for address, interface in hops
    )


def chosen_routes(router: Router, findings: Findings) -> dict[str, tuple[NextHop, ...]] | None:
    """Return the next hops by prefix; None if there are no routes.

    If there are several dumps, the first one counts; they must agree about the prefixes of all.
    """
    routes: dict[str, tuple[NextHop, ...]] = {}
    for name, dump in router.dumps:
        if dump.unclear:
            findings.unclear(
                f"the route of {router.name} to {listed(dump.unclear, 1)} ({name})",
                router.source.route(dump.unclear[0].partition(": ")[0]),
            )
        for (_, text), hops in dump.routes.items():
            if text.lower().startswith("fe80:"):
                continue  # link-local addresses are not forwarded
            if not _is_prefix(text):
                findings.unclear(
                    f"the route of {router.name} to {text[:60]!r}: no prefix ({name})",
                    router.source.route(text),
                )
                continue
            prefix = prefix_of(text).text
            first = routes.setdefault(prefix, hops)
            if first is not hops and set(first) != set(hops):
                findings.unclear(
                    f"which route of {router.name} to {prefix} is right ({name})",
                    router.source.route(prefix),
                )
    return routes if router.dumps else None


def connected_routes(router: Router) -> Routes:
    """Return the routes to the networks of interfaces, from keys ``Ethernet0|10.0.0.1/31``."""
    networks: dict[str, tuple[NextHop, ...]] = {}
    for key in (key for table in INTERFACE_TABLES for key in router.table(table)):
        interface, _, address = key.partition("|")
        if "/" in address:
            networks[prefix_of(address).text] = (NextHop(None, interface),)
    return networks


def missing_routes(router: Router, dumped: Routes | None) -> Iterable[str]:
    """Yield which routes of a router are missing; a whole dump has the router's own networks."""
    if dumped is None:
        yield f"the routes of {router.name}"
        return
    networks = [text for text in connected_routes(router) if not text.startswith("fe80:")]
    for family, of_family in (
        ("IPv4", [text for text in networks if ":" not in text]),
        ("IPv6", [text for text in networks if ":" in text]),
    ):
        if of_family and not any(text in dumped for text in of_family):
            yield f"all {family} routes of {router.name}: those known lack its own {of_family[0]}"
