"""Output of Linux's ``ip -j route`` and ``ip -6 -j route``, also with ``show table all``.

The local table has the addresses of the router itself. Other tables than the main one take effect
by rules (``ip rule``) or VRFs, which this output does not name.
"""

from __future__ import annotations

from typing import Any

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind, json_mark
from knotless.importers.route_dump import DEFAULT_VRF, DROP, NextHop, RouteDump

_DROPS = {"blackhole", "unreachable", "prohibit"}
_OWN = {"local", "broadcast", "multicast", "anycast"}
_WHOLE = {4: "0.0.0.0/0", 6: "::/0"}


def _fits(content: Content) -> bool:
    return isinstance(content.json, list) and all(
        isinstance(route, dict) and "dst" in route and "mac" not in route for route in content.json
    )


def _read(content: Content) -> RouteDump:
    dump = RouteDump()
    best: dict[str, int] = {}
    six = any(":" in str(route["dst"]) for route in content.json)
    for route in content.json:
        kind, table = str(route.get("type", "unicast")), str(route.get("table", "main"))
        text = str(route["dst"])
        if kind in _OWN or table == "local":
            continue
        prefix = _WHOLE[6 if six and not _is_ipv4(route) else 4] if text == "default" else text
        if table not in ("main", "default"):
            dump.unclear.append(f"{prefix}: table {table}, which rules or a VRF use")
            continue
        if kind not in _DROPS | {"unicast"} or "tos" in route:
            dump.unclear.append(f"{prefix}: a route of type {kind}, or of one type of service")
        metric = route.get("metric", 0)
        if not isinstance(metric, int):
            raise RuleError(f"{prefix[:60]}: the metric must be a number")
        hops = (DROP,) if kind in _DROPS else _hops(prefix, route, dump)
        if not hops:
            continue  # all are dead: the kernel goes on to the next route that fits
        if metric < best.get(prefix, 1 << 32):
            best[prefix] = metric
            dump.routes[DEFAULT_VRF, prefix] = hops
        elif metric == best[prefix]:  # IPv6: the next hops of a set may be routes of their own
            earlier = dump.routes[DEFAULT_VRF, prefix]
            dump.routes[DEFAULT_VRF, prefix] = tuple(dict.fromkeys((*earlier, *hops)))
    return dump


def _is_ipv4(route: dict[str, Any]) -> bool:
    return "." in str(route.get("gateway", "")) or "." in str(route.get("prefsrc", ""))


def _hops(prefix: str, route: dict[str, Any], dump: RouteDump) -> tuple[NextHop, ...]:
    listed = route.get("nexthops", [route])
    if not isinstance(listed, list) or not all(isinstance(hop, dict) for hop in listed):
        raise RuleError(f"{prefix[:60]}: nexthops must be a list of objects")
    hops = []
    for hop in listed:
        if "encap" in hop:
            dump.unclear.append(f"{prefix}: a next hop with labels, segments or a tunnel")
        flags = hop.get("flags", [])
        if isinstance(flags, list) and "dead" in flags:
            continue
        via = hop.get("via")
        address = via.get("host") if isinstance(via, dict) else hop.get("gateway")
        if not isinstance(hop.get("dev"), str):
            raise RuleError(f"{prefix[:60]}: a next hop without dev: {str(hop)[:80]}")
        hops.append(NextHop(str(address) if address else None, hop["dev"]))
    return tuple(dict.fromkeys(hops))


KIND = FileKind("Linux routes (ip -j route)", "routers", json_mark("[", "dst"), _read, _fits)
