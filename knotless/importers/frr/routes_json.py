"""Output of FRR's ``show ip route json``, also for all VRFs.

Older versions print an object for each VRF one after the other, without its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind, json_mark
from knotless.importers.route_dump import DEFAULT_VRF, DROP, NextHop, RouteDump


def _is_routes(value: object) -> bool:
    return isinstance(value, dict) and all(
        "/" in prefix and isinstance(entries, list) for prefix, entries in value.items()
    )


def _fits(content: Content) -> bool:
    if '"nexthops"' not in content.text:
        return False
    values = content.json_values
    if len(values) != 1:
        return bool(values) and all(map(_is_routes, values))
    return _is_routes(values[0]) or (
        isinstance(values[0], dict) and all(_is_routes(of_vrf) for of_vrf in values[0].values())
    )


def _read(content: Content) -> RouteDump:
    dump = RouteDump()
    shared: dict[tuple[NextHop, ...], tuple[NextHop, ...]] = {}
    for vrf, routes in _by_vrf(content.json_values, dump):
        if not isinstance(routes, dict):
            raise RuleError(f"VRF {vrf[:40]!r}: must be an object")
        for prefix, entries in routes.items():
            # Older versions escape the slash twice.
            _read_prefix(dump, vrf, prefix.replace("\\/", "/"), entries, shared)
    return dump


def _by_vrf(values: Sequence[Any], dump: RouteDump) -> Iterator[tuple[str, Any]]:
    """Yield the routes of each VRF; of several values without names, VRF 0 is the default one."""
    if len(values) == 1:
        yield from [(DEFAULT_VRF, values[0])] if _is_routes(values[0]) else values[0].items()
        return
    named: set[str] = set()
    for routes in values:
        vrf = _vrf_of(routes)
        if vrf in named:
            dump.unclear.append(f"any prefix: VRF {vrf[:40]} occurs twice")
        named.add(vrf)
        yield vrf, routes


def _vrf_of(routes: Mapping[str, Any]) -> str:
    """Return the name of the VRF of a route, or one made of its number."""
    for entry in (entry for entries in routes.values() for entry in entries):
        if isinstance(entry, dict) and "vrfName" in entry:
            return str(entry["vrfName"])
        if isinstance(entry, dict) and entry.get("vrfId"):
            return f"vrf{str(entry['vrfId'])[:10]}"
    return DEFAULT_VRF


def _read_prefix(
    dump: RouteDump,
    vrf: str,
    prefix: str,
    entries: object,
    shared: dict[tuple[NextHop, ...], tuple[NextHop, ...]],
) -> None:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise RuleError(f"{prefix[:60]}: must be a list of routes")
    for entry in entries:
        if not entry.get("selected") or entry.get("installed") is False:
            continue
        hops = entry.get("nexthops", [])
        if not isinstance(hops, list) or not all(isinstance(hop, dict) for hop in hops):
            raise RuleError(f"{prefix[:60]}: nexthops must be a list of objects")
        used = [hop for hop in hops if hop.get("fib") and not hop.get("recursive")]
        hop_vrf = str(entry.get("vrfName", vrf))
        if not used:
            dump.unclear.append(f"{prefix}: no next hop of the selected route is in use")
            continue
        next_hops = tuple(dict.fromkeys(_next_hop(hop) for hop in used))
        dump.routes[hop_vrf, prefix] = shared.setdefault(next_hops, next_hops)
        for hop in used:
            if "labels" in hop or "seg6" in hop or "seg6local" in hop:
                dump.unclear.append(f"{prefix}: a next hop with labels or segments")
            if hop.get("vrf", hop_vrf) != hop_vrf and "interfaceName" in hop:
                dump.unclear.append(f"{prefix}: a next hop in VRF {hop['vrf']}")


def _next_hop(hop: Mapping[str, Any]) -> NextHop:
    if any(hop.get(key) for key in ("blackhole", "reject", "unreachable")):
        return DROP
    interface = hop.get("interfaceName")
    if not isinstance(interface, str):
        raise RuleError(f"a next hop without an interface: {str(hop)[:80]}")
    address = hop.get("ip")
    return NextHop(str(address) if address else None, interface)


KIND = FileKind("FRR routes (JSON)", "routers", json_mark("{"), _read, _fits)
