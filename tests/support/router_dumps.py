"""Fabrics of IP routers as files, in the forms that SONiC, FRR and lldpd write, and an oracle."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.cycles import has_cycle

End = tuple[str, str]
Hops = list[tuple[str, str]]
"""The next hops of a route: (address, "" if connected; interface)."""
Values = dict[str, Any]
HOST_PORT = "Ethernet400"
"""The port of hosts on all routers."""


@dataclass
class Qos:
    """The maps of a router by table and name, and what each port uses."""

    maps: dict[str, dict[str, dict[int, int]]] = field(default_factory=dict)
    ports: dict[str, dict[str, str]] = field(default_factory=dict)
    of_hosts: dict[str, str] = field(default_factory=dict)

    def value(self, port: str, use: str, table: str, key: int, otherwise: int) -> int:
        """Look a number up in the map that a port uses."""
        name = (self.of_hosts if port == HOST_PORT else self.ports.get(port, {})).get(use)
        return otherwise if name is None else self.maps[table][name].get(key, otherwise)

    def enabled(self, port: str) -> set[int]:
        """Return the priorities with PFC."""
        listed = self.ports.get(port, {}).get("pfc_enable", "")
        return {int(text) for text in listed.split(",") if text}


def plain_qos(ports: list[str], enabled: str = "3,4") -> Qos:
    """Return the usual settings: DSCP 3 and 4 are lossless, each in a priority of its own."""
    same = {n: n for n in range(8)}
    maps = {
        "DSCP_TO_TC_MAP": {"AZURE": {d: {3: 3, 4: 4, 48: 6}.get(d, 1) for d in range(64)}},
        "TC_TO_QUEUE_MAP": {"AZURE": same},
        "TC_TO_PRIORITY_GROUP_MAP": {"AZURE": {n: n if n in (3, 4) else 0 for n in range(8)}},
        "MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": same},
    }
    uses = ("dscp_to_tc_map", "tc_to_queue_map", "tc_to_pg_map", "pfc_to_queue_map")
    of_port = {**dict.fromkeys(uses, "AZURE"), "pfc_enable": enabled}
    return Qos(maps, {port: dict(of_port) for port in ports}, dict(of_port))


@dataclass
class RouterNet:
    """Routers with cables, LAGs (by router and name), host networks, routes and QoS."""

    cables: list[tuple[End, End]]
    lags: dict[End, list[str]] = field(default_factory=dict)
    hosts: dict[End, str] = field(default_factory=dict)
    routes: dict[str, dict[str, Hops]] = field(default_factory=dict)
    qos: dict[str, Qos] = field(default_factory=dict)
    more: dict[str, dict[str, dict[str, Values]]] = field(default_factory=dict)
    """More tables of CONFIG_DB, by router."""

    @property
    def routers(self) -> list[str]:
        """The names of all routers."""
        return sorted(self.routes)

    @property
    def peers(self) -> dict[End, End]:
        """The peer of each port: the other end of its cable."""
        return {a: b for cable in self.cables for a, b in (cable, cable[::-1])}

    def ports(self, router: str) -> list[str]:
        """Return the physical ports of a router."""
        return sorted({port for name, port in self.peers if name == router})

    def config(self, router: str) -> dict[str, dict[str, Values]]:
        """Return the tables of CONFIG_DB."""
        qos = self.qos[router]
        used: dict[str, dict[str, Values]] = {
            "DEVICE_METADATA": {"localhost": {"hostname": router, "type": "LeafRouter"}},
            "PORT": {
                port: {
                    "alias": f"Eth{n}/1",
                    "index": str(n),
                    "speed": "100000",
                    "admin_status": "up",
                }
                for n, port in enumerate(self.ports(router), 1)
            },
            "PORTCHANNEL": {lag: {"admin_status": "up"} for r, lag in self.lags if r == router},
            "PORTCHANNEL_MEMBER": {
                f"{lag}|{port}": {}
                for (r, lag), ports in self.lags.items()
                if r == router
                for port in ports
            },
            "VLAN_INTERFACE": {
                f"{port}|{prefix}": {} for (r, port), prefix in self.hosts.items() if r == router
            },
            "VLAN_MEMBER": {
                f"{vlan}|{HOST_PORT}": {}
                for r, vlan in self.hosts
                if r == router and "Vlan" in vlan
            },
            "PORT_QOS_MAP": {**qos.ports, HOST_PORT: qos.of_hosts} if qos.ports else {},
        }
        for table, maps in qos.maps.items():
            used[table] = {
                name: {str(key): str(value) for key, value in entries.items()}
                for name, entries in maps.items()
            }
        for table, rows in self.more.get(router, {}).items():
            used[table] = {**used.get(table, {}), **rows}
        return {table: rows for table, rows in used.items() if rows}

    def appl_routes(self, router: str) -> dict[str, Values]:
        """Return the routes of APPL_DB."""
        routes = {}
        for prefix, hops in self.routes[router].items():
            key = f"ROUTE_TABLE:{prefix.removesuffix('/32')}"
            routes[key] = (
                {"blackhole": "true", "nexthop": "", "ifname": ""}
                if not hops
                else {
                    "nexthop": ",".join(address or "0.0.0.0" for address, _ in hops),  # noqa: S104
                    "ifname": ",".join(port for _, port in hops),
                }
            )
        return routes

    def frr_json(self, router: str, *, older: bool = False) -> dict[str, Any]:
        """Return what show ip route json prints; older versions escape slashes twice."""
        routes = {}
        for prefix, hops in self.routes[router].items():
            used: Values = {"fib": True, "active": True}
            listed: list[Values] = [
                {**used, "interfaceName": port, "ip": address, "directlyConnected": not address}
                for address, port in hops
            ] or [{**used, "blackhole": True}]
            text = prefix.replace("/", "\\/") if older else prefix
            best = {"prefix": text, "protocol": "bgp", "selected": True, "nexthops": listed}
            worse = {"prefix": text, "protocol": "static", "nexthops": [{"ip": "9.9.9.9"}]}
            routes[text] = [worse, best]
        return routes

    def frr_text(self, router: str) -> str:
        """Return what show ip route prints."""
        lines = [
            "",
            "Codes: K - kernel route, C - connected, S - static, R - RIP,",
            "       > - selected route, * - FIB route",
            "",
        ]
        for prefix, hops in self.routes[router].items():
            shown = [
                f"via {address}, {port}, weight 1, 00:00:06"
                if address
                else f"is directly connected, {port}, 00:00:06"
                for address, port in hops
            ] or ["unreachable (blackhole), weight 1, 00:00:06"]
            lines.append(f"B>* {prefix} [20/0] {shown[0]}")
            lines += [f"  *  {' ' * len(prefix)} {text}" for text in shown[1:]]
        return "\n".join(lines) + "\n"

    def lldp_json(self, router: str) -> Values:
        """Return what lldpctl -f json prints: a list, or an object if there is one neighbour."""
        neighbours = [
            {
                port: {
                    "chassis": {peer: {"id": {"type": "mac", "value": "02:00:00:00:00:01"}}},
                    "port": {"id": {"type": "ifname", "value": peer_port}, "descr": peer_port},
                }
            }
            for (name, port), (peer, peer_port) in sorted(self.peers.items())
            if name == router
        ]
        return {"lldp": {"interface": neighbours[0] if len(neighbours) == 1 else neighbours}}

    def lldp_json0(self, router: str) -> Values:
        """Return what lldpctl -f json0 prints."""
        neighbours = [
            {
                "name": port,
                "chassis": [{"id": [{"type": "mac", "value": "x"}], "name": [{"value": peer}]}],
                "port": [
                    {"id": [{"type": "ifname", "value": peer_port}], "descr": [{"value": "x"}]}
                ],
            }
            for (name, port), (peer, peer_port) in sorted(self.peers.items())
            if name == router
        ]
        return {"lldp": [{"interface": neighbours}]}

    def lldp_appl(self, router: str) -> dict[str, Values]:
        """Return the neighbours of APPL_DB; the far port by its alias."""
        neighbours = {}
        for (name, port), (peer, peer_port) in sorted(self.peers.items()):
            if name == router:
                alias = self.config(peer)["PORT"][peer_port]["alias"]
                neighbours[f"LLDP_ENTRY_TABLE:{port}"] = {
                    "lldp_rem_sys_name": peer,
                    "lldp_rem_port_id": alias,
                    "lldp_rem_port_id_subtype": "7",
                    "lldp_rem_port_desc": peer_port,
                    "lldp_rem_sys_cap_enabled": "28 00",
                }
        return neighbours

    def write(self, folder: Path, form: str = "sonic") -> Path:
        """Write the files: ``sonic``, ``flat``, ``redis``, ``frr``, ``older`` or ``text``."""
        for router in self.routers:
            directory = folder / router
            directory.mkdir(parents=True, exist_ok=True)
            config: Values = self.config(router)
            if form in ("flat", "redis", "older"):
                flat = {
                    f"{t}|{key}": row for t, rows in config.items() for key, row in rows.items()
                }
                config = flat
            if form == "redis":
                config = {
                    key: {"type": "hash", "ttl": -1, "value": row} for key, row in config.items()
                }
            if form == "older":
                for key, row in config.items():
                    if key.startswith("PORT_QOS_MAP|"):
                        config[key] = {
                            use: f"[TABLE|{name}]" if use != "pfc_enable" else name.split(",")
                            for use, name in row.items()
                        }
            contents: dict[str, Any] = {"config_db.json": config}
            if form in ("sonic", "flat", "redis"):
                contents["appl_db.json"] = {**self.appl_routes(router), **self.lldp_appl(router)}
            elif form == "text":
                (directory / "routes.txt").write_text(self.frr_text(router))
                contents["lldp.json"] = self.lldp_json0(router)
            else:
                contents["routes.json"] = self.frr_json(router, older=form == "older")
                contents["lldp.json"] = self.lldp_json(router)
            for name, value in contents.items():
                (directory / name).write_text(json.dumps(value))
        return folder

    # The oracle: every packet alone, over every member of every next-hop set.

    def judged(self) -> tuple[bool, int]:
        """Return whether nothing can wait for itself, and the pairs that may not be delivered."""
        edges: set[tuple[Any, Any]] = set()
        lost = 0
        for source in self.hosts:
            for target in self.hosts:
                if source == target:
                    continue
                address = ipaddress.ip_network(self.hosts[target], strict=False)[1]
                lost += not self._arrives(source, target, address)
                for dscp in range(64):
                    edges |= set(self._waits(source, address, dscp))
        for a, b in self.peers.items():
            edges |= set(self._pauses(a, b))
        return not has_cycle(edges), lost

    def acyclic_for_all(self, uplinks: Iterable[End] = ()) -> bool:
        """Return whether nothing can wait for itself, whatever is sent to any address.

        Hosts send, and what is behind ``uplinks``. Of each part of the address space that no route
        divides one address is tried, whether or not a host has it.
        """
        networks = {ipaddress.ip_network(p) for routes in self.routes.values() for p in routes}
        firsts = {int(network[0]) for network in networks}
        firsts |= {int(network[-1]) + 1 for network in networks}
        edges: set[tuple[Any, Any]] = set()
        for source in (*self.hosts, *uplinks):
            for first in sorted(firsts - {1 << 32}):
                for dscp in range(64):
                    edges |= set(self._waits(source, ipaddress.ip_address(first), dscp))
        for a, b in self.peers.items():
            edges |= set(self._pauses(a, b))
        return not has_cycle(edges)

    def next_ends(self, router: str, address: Any) -> list[End]:
        """Return the ports and host interfaces to which an address may go; none: it is dropped."""
        matches = [
            (ipaddress.ip_network(prefix).prefixlen, hops)
            for prefix, hops in self.routes[router].items()
            if address in ipaddress.ip_network(prefix)
        ]
        hops = max(matches, key=lambda row: row[0])[1] if matches else []
        return [(router, port) for _, lag in hops for port in self.lags.get((router, lag), [lag])]

    def steps(self, source: End, address: Any, dscp: int = 0) -> Iterator[tuple[End, End, int]]:
        """Yield (end where a packet enters, end where it leaves, DSCP) for all that can happen."""
        seen, waiting = {(source, dscp)}, [(source, dscp)]
        while waiting:
            into, shown = waiting.pop()
            qos, port = self.qos[into[0]], into[1] if into in self.peers else HOST_PORT
            tc = qos.value(port, "dscp_to_tc_map", "DSCP_TO_TC_MAP", shown, 0)
            for out in self.next_ends(into[0], address):
                yield into, out, shown
                peer = self.peers.get(out)
                onward = qos.value(out[1], "tc_to_dscp_map", "TC_TO_DSCP_MAP", tc, shown)
                if peer is not None and (peer, onward) not in seen:
                    seen.add((peer, onward))
                    waiting.append((peer, onward))

    def _arrives(self, source: End, target: End, address: Any) -> bool:
        steps = {(into, out) for into, out, _ in self.steps(source, address)}
        graph = {(a, self.peers.get(out)) for a, out in steps}
        if has_cycle({(a, b) for a, b in graph if b is not None}):
            return False
        ends = {source} | {b for _, b in graph if b is not None}
        if any(not self.next_ends(end[0], address) for end in ends):
            return False
        return all(out == target for _, out in steps if out not in self.peers)

    def _waits(self, source: End, address: Any, dscp: int) -> Iterator[tuple[Any, Any]]:
        for into, out, shown in self.steps(source, address, dscp):
            if into in self.peers and out in self.peers:
                qos = self.qos[into[0]]
                tc = qos.value(into[1], "dscp_to_tc_map", "DSCP_TO_TC_MAP", shown, 0)
                group = qos.value(into[1], "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", tc, 0)
                queue = qos.value(out[1], "tc_to_queue_map", "TC_TO_QUEUE_MAP", tc, 0)
                yield ("buffer", into, group), ("queue", out, queue)

    def _pauses(self, out: End, into: End) -> Iterator[tuple[Any, Any]]:
        sender, receiver = self.qos[out[0]], self.qos[into[0]]
        for p in sender.enabled(out[1]) & receiver.enabled(into[1]):
            table = "MAP_PFC_PRIORITY_TO_QUEUE"
            queue = sender.value(out[1], "pfc_to_queue_map", table, p, p)
            yield ("queue", out, queue), ("buffer", into, p)
